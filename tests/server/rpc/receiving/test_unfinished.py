"""What is on its way is told from what was handed over, and from what was thrown away."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.rpc.receiving.unfinished import Unfinished

_MIB = 1 << 20


def test_what_came_before_the_first_look_is_nobodys_fault() -> None:
    unfinished = Unfinished()
    assert unfinished.look({"a": 900 * _MIB}, {}, {"a"}, 0.0) == {}
    assert unfinished.look({"a": 930 * _MIB}, {}, {"a"}, 0.1) == {"a": 30 * _MIB}


def test_what_was_handed_over_is_not_on_its_way() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    assert unfinished.look({"a": 30 * _MIB, "b": 5 * _MIB}, {"a": 28 * _MIB}, {"a", "b"}, 0.1) == {
        "a": 2 * _MIB,
        "b": 5 * _MIB,
    }


def test_what_was_sent_with_calls_that_were_refused_is_over_once_none_waits() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    assert unfinished.look({"a": 60 * _MIB}, {}, {"a"}, 0.1) == {"a": 60 * _MIB}
    assert unfinished.look({"a": 60 * _MIB}, {}, set(), 0.2) == {}
    assert unfinished.look({"a": 61 * _MIB}, {}, {"a"}, 0.3) == {"a": _MIB}


def test_where_some_call_always_waits_it_is_over_after_a_while() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    found = {}
    for tenth in range(1, 2000):
        found = unfinished.look({"proxy": tenth * 10_000}, {}, {"proxy"}, tenth / 10)
    assert 600 * 10_000 <= found["proxy"] <= 1201 * 10_000


def test_an_address_that_is_used_again_has_no_credit() -> None:
    unfinished = Unfinished()
    delivered = {"a": 500 * _MIB}
    unfinished.look({"a": 500 * _MIB}, delivered, set(), 0.0)
    unfinished.look({}, delivered, set(), 0.1)
    unfinished.look({"a": _MIB}, delivered, {"a"}, 0.2)
    assert unfinished.look({"a": 30 * _MIB}, delivered, {"a"}, 0.3) == {"a": 29 * _MIB}


def test_after_a_pause_nobody_knows_what_was_thrown_away() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    unfinished.look({"a": 10 * _MIB}, {}, {"a"}, 0.1)
    assert unfinished.look({"a": 50 * _MIB}, {}, {"a"}, 10.0) == {}


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
            st.sets(st.sampled_from("abc")),
            st.floats(0, 40),
        ),
        max_size=30,
    )
)
def test_it_tells_of_callers_that_wait_and_of_no_more_than_they_have_sent(
    looks: list[tuple[dict[str, int], dict[str, int], set[str], float]],
) -> None:
    unfinished, now_s = Unfinished(), 0.0
    received: dict[str, int] = {}
    delivered: dict[str, int] = {}
    for more, taken, waiting, pause_s in looks:
        now_s += pause_s
        for peer, count in more.items():
            received[peer] = received.get(peer, 0) + count
        for peer, count in taken.items():
            delivered[peer] = min(received.get(peer, 0), delivered.get(peer, 0) + count)
        found = unfinished.look(received, delivered, waiting, now_s)
        assert set(found) <= waiting
        assert all(0 < count <= received[peer] - delivered.get(peer, 0) for peer, count in found.items())
