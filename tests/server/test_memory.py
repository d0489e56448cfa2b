"""The guard goes on looking whatever happens to it."""

import asyncio
import logging
import mmap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server import memory
from gradewire_server.memory import MemoryGuard, Unfinished, resident_bytes
from gradewire_server.rpc.messages import Receiver

_MIB = 1 << 20


class Failing(MemoryGuard):
    """Fails at its first look."""

    looks = 0

    def look(self, resident: int) -> bool:
        self.looks += 1
        if self.looks == 1:
            raise OSError("a connection was closed meanwhile")
        return super().look(resident)


async def test_a_look_that_fails_is_logged_and_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    guard = Failing(Receiver(), 1 << 40, 1, shed=lambda _: None)
    with caplog.at_level(logging.ERROR):
        guard.start()
        try:
            async with asyncio.timeout(10):
                while guard.looks < 3:  # noqa: ASYNC110 - a thread looks
                    await asyncio.sleep(0.01)
        finally:
            guard.close()
    assert len(caplog.records) == 1


async def test_what_the_server_has_after_loading_is_its_own(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    guard = MemoryGuard(receiver, 512 * _MIB, 1, shed=lambda _: None)
    monkeypatch.setattr(memory, "resident_bytes", lambda: 350 * _MIB)
    with caplog.at_level(logging.WARNING):
        guard.loaded()
    assert not caplog.records
    assert not guard.look(360 * _MIB)
    assert not receiver.memory_is_short
    assert guard.look(480 * _MIB)
    assert receiver.memory_is_short


async def test_a_limit_that_leaves_too_little_is_told_at_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = MemoryGuard(Receiver(), 400 * _MIB, 1, shed=lambda _: None)
    monkeypatch.setattr(memory, "resident_bytes", lambda: 350 * _MIB)
    with caplog.at_level(logging.WARNING):
        guard.loaded()
    assert [record.getMessage() for record in caplog.records] == [
        (
            "memory_limit leaves 50 MiB for requests, because the server itself uses 350 MiB: large requests will "
            "be refused. Set memory_limit to at least 478 MiB"
        )
    ]


def test_pages_of_files_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(64 * _MIB))
    before = resident_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[at] for at in range(0, 64 * _MIB, mmap.PAGESIZE)) == 0
        assert resident_bytes() - before < 16 * _MIB


_MIB_UNFINISHED = 1 << 20


def test_what_came_before_the_first_look_is_nobodys_fault() -> None:
    unfinished = Unfinished()
    assert unfinished.look({"a": 900 * _MIB_UNFINISHED}, {}, {"a"}, 0.0) == {}
    assert unfinished.look({"a": 930 * _MIB_UNFINISHED}, {}, {"a"}, 0.1) == {"a": 30 * _MIB_UNFINISHED}


def test_what_was_handed_over_is_not_on_its_way() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    assert unfinished.look(
        {"a": 30 * _MIB_UNFINISHED, "b": 5 * _MIB_UNFINISHED}, {"a": 28 * _MIB_UNFINISHED}, {"a", "b"}, 0.1
    ) == {
        "a": 2 * _MIB_UNFINISHED,
        "b": 5 * _MIB_UNFINISHED,
    }


def test_what_was_sent_with_calls_that_were_refused_is_over_once_none_waits() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    assert unfinished.look({"a": 60 * _MIB_UNFINISHED}, {}, {"a"}, 0.1) == {"a": 60 * _MIB_UNFINISHED}
    assert unfinished.look({"a": 60 * _MIB_UNFINISHED}, {}, set(), 0.2) == {}
    assert unfinished.look({"a": 61 * _MIB_UNFINISHED}, {}, {"a"}, 0.3) == {"a": _MIB_UNFINISHED}


def test_where_some_call_always_waits_it_is_over_after_a_while() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    found = {}
    for tenth in range(1, 2000):
        found = unfinished.look({"proxy": tenth * 10_000}, {}, {"proxy"}, tenth / 10)
    assert 600 * 10_000 <= found["proxy"] <= 1201 * 10_000


def test_an_address_that_is_used_again_has_no_credit() -> None:
    unfinished = Unfinished()
    delivered = {"a": 500 * _MIB_UNFINISHED}
    unfinished.look({"a": 500 * _MIB_UNFINISHED}, delivered, set(), 0.0)
    unfinished.look({}, delivered, set(), 0.1)
    unfinished.look({"a": _MIB_UNFINISHED}, delivered, {"a"}, 0.2)
    assert unfinished.look({"a": 30 * _MIB_UNFINISHED}, delivered, {"a"}, 0.3) == {"a": 29 * _MIB_UNFINISHED}


def test_after_a_pause_nobody_knows_what_was_thrown_away() -> None:
    unfinished = Unfinished()
    unfinished.look({}, {}, set(), 0.0)
    unfinished.look({"a": 10 * _MIB_UNFINISHED}, {}, {"a"}, 0.1)
    assert unfinished.look({"a": 50 * _MIB_UNFINISHED}, {}, {"a"}, 10.0) == {}


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
