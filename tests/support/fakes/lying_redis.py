"""A TCP proxy before a real server that answers wrongly, late or not at all, in every way a broken store might."""

import asyncio
import re
import threading
from collections.abc import Callable  # noqa: TC003 - one way of importing types, everywhere
from enum import Enum, auto
from types import TracebackType
from typing import Self

_LONG_BYTES = 64
"""Bulk strings from this size on are taken for vectors."""
_CURSOR = re.compile(rb"\*2\r\n\$\d+\r\n\d+\r\n(?=\*)")
"""Begins the reply of a scan, whose values come after it."""
LATE_S = 0.5


class Lie(Enum):
    """What the proxy does to replies."""

    NONE = auto()
    DELAY = auto()
    """Every reply comes `LATE_S` late."""
    TRUNCATION = auto()
    """Half of a reply, then the connection closes."""
    SHORT_VALUES = auto()
    """Whole replies whose values lack their second half."""
    GARBAGE = auto()
    """Bytes that are no reply at all."""
    PREVIOUS_REPLY = auto()
    """Each command gets the reply of the command before it."""
    REORDERED = auto()
    """The values of a reply change places: each key gets another key's valid value."""
    FOREIGN_VALUE = auto()
    """Every value is `LyingRedis.foreign`, which is valid for a key of another model."""
    FLIPPED_BIT = auto()
    """One bit of every value's payload is flipped."""


class LyingRedis:
    """The proxy; `with LyingRedis(server.port) as proxy: proxy.url; proxy.lie = Lie.FLIPPED_BIT`.

    Args:
        port: Of the real server on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self.lie = Lie.NONE
        self.foreign = b""
        self.lies_told = 0
        self.port = 0
        self._upstream = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, replies: asyncio.StreamWriter) -> None:
        try:
            upstream, commands = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            replies.close()
            return
        pump = asyncio.ensure_future(_copy(client, commands))
        previous = b"*0\r\n"
        try:
            while True:
                reply = await _read_reply(upstream)
                sent = await self._distort(reply, previous)
                previous = reply
                replies.write(sent)
                await replies.drain()
                if self.lie is Lie.TRUNCATION and len(sent) < len(reply):
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass  # one side went away, and so does the other
        finally:
            pump.cancel()
            commands.close()
            replies.close()

    async def _distort(self, reply: bytes, previous: bytes) -> bytes:
        if self.lie is Lie.DELAY:
            self.lies_told += 1
            await asyncio.sleep(LATE_S)
            return reply
        if self.lie in {Lie.GARBAGE, Lie.PREVIOUS_REPLY}:
            self.lies_told += 1
            return previous if self.lie is Lie.PREVIOUS_REPLY else b"\x00GET / HTTP/1.1\r\n\r\n"
        cursor = _CURSOR.match(reply)
        head = cursor[0] if cursor else b""
        values = _values(reply[len(head) :])
        if not values or self.lie is Lie.NONE:
            return reply
        self.lies_told += 1
        if self.lie is Lie.TRUNCATION:
            return reply[: len(reply) // 2]
        if self.lie is Lie.REORDERED:
            places = [place for place, value in enumerate(values) if value is not None]
            turned = [values[place] for place in places[1:] + places[:1]]
            for place, value in zip(places, turned, strict=True):
                values[place] = value
            return head + _array(values)
        change: dict[Lie, Callable[[bytes], bytes]] = {
            Lie.SHORT_VALUES: lambda value: value[: len(value) // 2],
            Lie.FOREIGN_VALUE: lambda _: self.foreign,
            Lie.FLIPPED_BIT: lambda value: value[:-100] + bytes([value[-100] ^ 1]) + value[-99:],
        }
        lie = change[self.lie]
        return head + _array([lie(value) if value and len(value) >= _LONG_BYTES else value for value in values])


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
    target.close()


async def _read_reply(stream: asyncio.StreamReader) -> bytes:
    line = await stream.readuntil(b"\r\n")
    kind, size = line[:1], line[1:-2]
    if kind in b"$=!" and size != b"-1":
        return line + await stream.readexactly(int(size) + 2)
    if kind in b"*~>%|" and size != b"-1":
        parts = int(size) * (2 if kind in b"%|" else 1)
        return line + b"".join([await _read_reply(stream) for _ in range(parts)])
    return line


def _values(reply: bytes) -> list[bytes | None]:
    """Elements of an array with at least one long string in it; empty for other replies."""
    if not reply.startswith(b"*"):
        return []
    values: list[bytes | None] = []
    at = reply.index(b"\r\n") + 2
    while at < len(reply):
        end = reply.index(b"\r\n", at)
        if reply[at : at + 1] == b"$" and reply[at + 1 : end] != b"-1":
            size = int(reply[at + 1 : end])
            values.append(reply[end + 2 : end + 2 + size])
            at = end + 2 + size + 2
        elif reply[at:end] in (b"$-1", b"_"):
            values.append(None)
            at = end + 2
        else:
            return []
    return values if any(value is not None and len(value) >= _LONG_BYTES for value in values) else []


def _array(values: list[bytes | None]) -> bytes:
    parts = [b"*%d\r\n" % len(values)]
    parts += [b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value) for value in values]
    return b"".join(parts)
