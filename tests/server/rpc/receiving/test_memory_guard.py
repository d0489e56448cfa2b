"""The guard goes on looking whatever happens to it."""

import asyncio
import logging

import pytest

from gradewire_server.rpc.receiving.memory_guard import MemoryGuard
from gradewire_server.rpc.receiving.receiver import Receiver


class Failing(MemoryGuard):
    """Fails at its first look."""

    looks = 0

    def look(self, resident: int) -> None:
        self.looks += 1
        if self.looks == 1:
            raise OSError("a connection was closed meanwhile")
        super().look(resident)


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
