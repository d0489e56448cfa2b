"""The guard goes on looking whatever happens to it."""

import asyncio
import logging
import mmap
from pathlib import Path

import pytest

from gradewire_server.rpc.receiving import memory_guard
from gradewire_server.rpc.receiving.memory_guard import MemoryGuard, resident_bytes
from gradewire_server.rpc.receiving.receiver import Receiver

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
    monkeypatch.setattr(memory_guard, "resident_bytes", lambda: 350 * _MIB)
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
    monkeypatch.setattr(memory_guard, "resident_bytes", lambda: 350 * _MIB)
    with caplog.at_level(logging.WARNING):
        guard.loaded()
    assert [record.getMessage() for record in caplog.records] == [
        (
            "memory_limit leaves 50 MiB for requests beside the 350 MiB that the server has now: large ones will be "
            "refused; at least 478 MiB are needed"
        )
    ]


def test_pages_of_files_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(64 * _MIB))
    before = resident_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[at] for at in range(0, 64 * _MIB, mmap.PAGESIZE)) == 0
        assert resident_bytes() - before < 16 * _MIB
