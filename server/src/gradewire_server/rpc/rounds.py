"""Time that a round of the event loop takes, measured where calls begin."""

import asyncio
import time
from typing import Final

_ROUNDS: Final = 2
"""A call waits so many for its first step after gRPC has taken it in."""


class Rounds:
    """Rounds of one event loop, measured one at a time and only while calls begin.

    gRPC does not say when it has taken a call in. How long the loop needs to come round again tells what calls that
    begin now have waited: the round goes through all that is due, however short its single steps are.
    """

    def __init__(self) -> None:
        self._round_s: float | None = None
        self._measuring = False

    @property
    def waited_s(self) -> float | None:
        """Seconds that a call which begins now has waited for its first step; None until a round was measured."""
        return None if self._round_s is None else _ROUNDS * self._round_s

    def measure(self) -> None:
        """Measure the round that begins now, unless one is being measured."""
        if not self._measuring:
            self._measuring = True
            asyncio.get_running_loop().call_soon(self._came_round, time.perf_counter())

    def _came_round(self, began_s: float) -> None:
        self._measuring = False
        self._round_s = time.perf_counter() - began_s
