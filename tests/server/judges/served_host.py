"""The judge host and server processes that reach it over a real socket, with scripted judges."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.judges.scripted import ScriptedJudges

from gradewire_server.judge_host import JudgeHost
from gradewire_server.judges.shared import SharedJudges

_WAIT_S = 20.0


class ServedHost:
    """One host at a time, and server processes that reach it."""

    def __init__(self, directory: Path) -> None:
        self._address = f"unix:{directory / 'judges'}"
        self._closing: list[Callable[[], Any]] = []

    async def host(self, judges: ScriptedJudges, **options: Any) -> JudgeHost:
        host = JudgeHost(judges, **{"max_queue_items": 64, **options})
        await host.start(self._address)
        self._closing.append(host.stop)
        return host

    async def kill(self, host: JudgeHost) -> None:
        """Ends a host as a signal that cannot be caught does: nothing is answered any more."""
        await host._server.stop(None)

    def process(self, **options: Any) -> SharedJudges:
        process = SharedJudges(self._address, ScriptedJudges("scripted"), **options)
        self._closing.append(process.close)
        return process

    async def close(self) -> None:
        for close in reversed(self._closing):
            await close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_WAIT_S):
        while not holds():  # noqa: ASYNC110 - it happens in another task's own time
            await asyncio.sleep(0.01)


def gate_of(judges: ScriptedJudges) -> asyncio.Future[None]:
    """Holds what its judge is asked until it is set."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    judges.known["scripted"].gate = lambda: asyncio.shield(gate)
    return gate
