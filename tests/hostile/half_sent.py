"""A caller that begins a message and does not end it: plain HTTP/2 frames, for no client library does that."""

import asyncio
import struct
from typing import Final

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA: Final = 0
_HEADERS: Final = 1
_RST_STREAM: Final = 3
_SETTINGS: Final = 4
_GOAWAY: Final = 7
_WINDOW_UPDATE: Final = 8
_INITIAL_WINDOW: Final = 65_535
_FRAME_BYTES: Final = 16_384


class HalfSender:
    """One connection with one call, of whose message all but the last byte is sent.

    Attributes:
        sent_bytes: Of the message, so far.
        refused: The server has ended the call or the connection.
    """

    def __init__(self, port: int, path: str, message_bytes: int, *, token: str = "", before: bytes = b"") -> None:
        self._port = port
        self._path = path
        self._message_bytes = message_bytes
        self._token = token
        self._before = before
        self._windows = {0: _INITIAL_WINDOW, 1: _INITIAL_WINDOW}
        self._initial = _INITIAL_WINDOW
        self._room = asyncio.Event()
        self.sent_bytes = 0
        self.refused = False

    async def run(self) -> None:
        """Sends, then waits until it is refused or cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        reading = asyncio.create_task(self._read(reader, writer))
        try:
            writer.write(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + _frame(_HEADERS, 4, 1, self._headers()))
            if self._before:
                writer.write(_frame(_DATA, 0, 1, b"\0" + struct.pack(">I", len(self._before)) + self._before))
                self._took(5 + len(self._before))
            await self._send(writer, b"\0" + struct.pack(">I", self._message_bytes))
            while self.sent_bytes < self._message_bytes - 1 and not self.refused:
                await self._send(writer, b"x" * min(_FRAME_BYTES, self._message_bytes - 1 - self.sent_bytes))
            await reading
        except ConnectionError:
            self.refused = True
        finally:
            reading.cancel()
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        while data and not self.refused:
            room = min(len(data), *self._windows.values())
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            writer.write(_frame(_DATA, 0, 1, data[:room]))
            await writer.drain()
            self._took(room)
            self.sent_bytes += room
            data = data[room:]

    def _took(self, count: int) -> None:
        for stream in self._windows:
            self._windows[stream] -= count

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(9)
                kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
                body = await reader.readexactly(int.from_bytes(head[:3], "big"))
                if kind == _SETTINGS and not flags & 1:
                    self._settings(body)
                    writer.write(_frame(_SETTINGS, 1, 0, b""))
                elif kind == _WINDOW_UPDATE and stream in self._windows:
                    self._windows[stream] += struct.unpack(">I", body)[0]
                elif kind in {_RST_STREAM, _GOAWAY} or (kind == _HEADERS and flags & 1):
                    self.refused = True
                    return
                self._room.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.refused = True
        finally:
            self._room.set()

    def _settings(self, body: bytes) -> None:
        for number, value in struct.iter_unpack(">HI", body):
            if number == _SETTINGS:  # INITIAL_WINDOW_SIZE has the same number, 4
                self._windows[1] += value - self._initial
                self._initial = value

    def _headers(self) -> bytes:
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": self._path,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
        }
        if self._token:
            fields["authorization"] = f"Bearer {self._token}"
        return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def _text(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + body
