"""Work on the event loop gives way to other tasks and to threads that wait for the interpreter's lock."""

import threading
import time
from typing import Self

import pytest
import uvloop

from gradewire_server import loop_turns
from gradewire_server.domain.caller import Lane, Turn, take_turn
from gradewire_server.loop_turns import LoopSlice, LoopTurns

_ROUNDS = 100


def _compute() -> None:
    ends_s = time.perf_counter() + 0.0015
    while time.perf_counter() < ends_s:
        pass


class _Thread:
    """A thread that needs the lock for a moment, again and again, as an encoder's does."""

    def __init__(self) -> None:
        self.turns = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.is_set():
            time.sleep(0.0001)
            self.turns += 1


async def _work(lane: Lane) -> None:
    take_turn(Turn(lane))
    part = LoopSlice(LoopTurns())
    await part.begin()
    for _ in range(_ROUNDS):
        _compute()
        await part.give_way()


@pytest.mark.parametrize("lane", Lane)
def test_threads_run_beside_work_that_keeps_the_loop_busy(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pause without the lock, the thread gets one or two turns, and none before the loop is idle."""
    monkeypatch.setattr(loop_turns, "SLICE_S", 0.0)
    monkeypatch.setattr(loop_turns, "BULK_SLICE_S", 0.0)
    with _Thread() as thread:
        uvloop.run(_work(lane))
        assert thread.turns >= _ROUNDS / 4
