import pytest

from gradewire.load_testing.content.mixes import DrawnItem, Items
from gradewire.load_testing.content.own_rows import OwnRows
from gradewire_proto.v1 import types_pb2


def rows(count: int) -> list[types_pb2.Item]:
    return [types_pb2.Item(prediction=f"answer {n}", references=["answer"], id=str(n)) for n in range(count)]


def drawn(items: Items, count: int) -> list[DrawnItem]:
    return [items.next() for _ in range(count)]


def test_a_row_is_new_until_it_has_been_sent_and_no_row_is_sent_before() -> None:
    own = OwnRows.of(rows(5))
    assert own.pool() == []
    found = drawn(own.supply(0, 0, 1)(1), 12)
    assert [each.item.prediction for each in found] == [f"answer {n % 5}" for n in range(12)]
    assert [each.repeated for each in found] == [each.again for each in found] == [False] * 5 + [True] * 7
    assert {each.words for each in found} == {2}


def test_processes_share_the_rows_out_and_go_on_in_the_next_step() -> None:
    own = OwnRows.of(rows(8))
    for part, expected in enumerate((["0", "3", "6"], ["1", "4", "7"], ["2", "5"])):
        supply = own.supply(0, part, 3)
        first, second = drawn(supply(1), 1), drawn(supply(2), len(expected) - 1)
        assert [each.item.id for each in (*first, *second)] == expected
        assert not any(each.repeated for each in (*first, *second))
        assert supply(3).next() == first[0]._replace(repeated=True, again=True)


def test_a_row_of_the_content_of_an_earlier_one_is_not_new() -> None:
    twice = [*rows(3), *rows(2)]
    twice[3].id, twice[4].references[:] = "another id", ["other"]
    found = drawn(OwnRows.of(twice).supply(0, 0, 1)(1), 5)
    assert [each.repeated for each in found] == [False, False, False, True, False]
    assert not any(each.again for each in found)


def test_a_share_that_is_repeated_is_of_a_pool_and_the_others_are_new() -> None:
    own = OwnRows.of(rows(4000), 0.5)
    pool = {item.id for item in own.pool()}
    assert len(pool) == 500
    for part in range(2):
        found = drawn(own.supply(1, part, 2)(1), 2000)
        repeated = [each.item.id for each in found if each.repeated]
        assert 900 < len(repeated) < 1100
        assert set(repeated) <= pool
        new = [each.item.id for each in found if not each.repeated]
        assert len(set(new)) == len(new)
        assert pool.isdisjoint(new)
        assert {int(each) % 2 for each in new} == {part}
        assert found == drawn(own.supply(1, part, 2)(1), 2000)
        assert found != drawn(own.supply(2, part, 2)(1), 2000)


@pytest.mark.parametrize(
    ("count", "share", "pool"), [(10, 0.5, 5), (10, 0.95, 9), (10, 1.0, 10), (1, 0.5, 0), (1, 1.0, 1)]
)
def test_one_row_at_least_stays_new_unless_all_are_to_be_repeated(count: int, share: float, pool: int) -> None:
    own = OwnRows.of(rows(count), share)
    assert own.pool() == rows(count)[:pool]
    found = drawn(own.supply(0, 0, 1)(1), 200)
    assert all(each.repeated for each in found) is (share == 1)
    assert any(each.again for each in found) is (share < 1)


def test_processes_beyond_the_rows_send_what_others_send() -> None:
    found = drawn(OwnRows.of(rows(2)).supply(0, 3, 4)(1), 4)
    assert [each.item.id for each in found] == ["0", "1", "0", "1"]
    assert all(each.repeated and each.again for each in found)
