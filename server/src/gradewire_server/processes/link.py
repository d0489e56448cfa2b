"""Messages between the supervisor and one of its processes: a line of JSON each, over a pair of sockets."""

import asyncio
import itertools
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from gradewire_server.processes.figures import Families

_MAX_LINE_BYTES: Final = 16 << 20
_BEAT: Final = "beat"
_FIGURES: Final = "figures"
_WANTED: Final = "wanted"

Collect: TypeAlias = Callable[[], Awaitable[Families]]


class Link:
    """One end of it; both ends may ask the other for figures. Lives on one event loop.

    Args:
        end: Connected socket.
        collect: Figures for the other side when it asks.
        beat: Told what a beat of the other side says.
    """

    def __init__(self, end: socket.socket, collect: Collect, beat: Callable[[dict[str, Any]], None]) -> None:
        self._end = end
        self._collect = collect
        self._on_beat = beat
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Families]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Reads what the other side says until it is gone."""
        reader, self._writer = await asyncio.open_connection(sock=self._end, limit=_MAX_LINE_BYTES)
        try:
            with suppress(ConnectionError):
                while line := await reader.readline():
                    self._take(json.loads(line))
        finally:
            self._writer.close()
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionError("the other side is gone"))

    def beat(self, report: dict[str, Any]) -> None:
        """Tells the other side that this one lives, and how."""
        self._send([_BEAT, report])

    def tell_figures(self, families: Families) -> None:
        """Sends figures that nobody has asked for: the last ones of a process that ends."""
        self._send([_FIGURES, -1, families])

    async def ask(self, timeout_s: float) -> Families:
        """The other side's figures; raises TimeoutError, and ConnectionError where it is gone."""
        number = next(self._numbers)
        answer: asyncio.Future[Families] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self._send([_WANTED, number])
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            del self._asked[number]

    def _take(self, message: list[Any]) -> None:
        kind, said = message[0], message[1]
        if kind == _BEAT:
            self._on_beat(said)
        elif kind == _WANTED:
            task = asyncio.create_task(self._answer(said))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif said == -1:
            self._on_beat({"figures": message[2]})
        elif (asked := self._asked.get(said)) is not None and not asked.done():
            asked.set_result(message[2])

    async def _answer(self, number: int) -> None:
        self._send([_FIGURES, number, await self._collect()])

    def _send(self, message: list[Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")
