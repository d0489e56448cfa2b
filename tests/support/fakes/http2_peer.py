"""A peer that writes HTTP/2 frames by hand, to do what no client library lets one do."""

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Final, Self

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS = 0, 1, 3, 4
_END_HEADERS: Final = 4
_CANCEL: Final = struct.pack(">I", 8)
_BATCH_STREAMS: Final = 64


class Http2Peer:
    """One connection, whose replies are read and thrown away.

    Args:
        port: Of gRPC on this machine, without TLS.
        source: The address that it comes from.
        timeout_s: To connect in.

    Raises:
        OSError: It cannot connect.
    """

    def __init__(self, port: int, *, source: str = "127.0.0.1", timeout_s: float = 5) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s, source_address=(source, 0))
        self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + _frame(_SETTINGS, 1, 0, b""))
        self._next_stream = 1
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.open = True
        """Whether the server has not ended the connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def open_and_reset(self, method: str, count: int) -> int:
        """Opens calls and resets each at once.

        Args:
            method: ``/gradewire.v1.Scoring/Score``.
            count: How many.

        Returns:
            How many were sent before the server ended the connection.
        """
        headers = _headers(method)
        sent = 0
        while sent < count and self.open:
            batch = []
            for _ in range(min(_BATCH_STREAMS, count - sent)):
                stream = self._next_stream
                self._next_stream += 2
                batch += [_frame(_HEADERS, _END_HEADERS, stream, headers), _frame(_RST_STREAM, 0, stream, _CANCEL)]
                sent += 1
            try:
                self._socket.sendall(b"".join(batch))
            except OSError:
                self.open = False
                return sent
        return sent

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(1 << 16):
                pass
        self.open = False


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def _headers(method: str) -> bytes:
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)  # literals without an index


def _text(value: str) -> bytes:
    data = value.encode()
    return bytes((len(data),)) + data  # shorter than 127 bytes, no Huffman code
