"""What the system knows of this process's connections: how much each has received.

The C library is called without giving up the interpreter's lock: a thread that gave it up a thousand times would wait
for the event loop as often, just when that is busiest.
"""

import ctypes
import os
import socket
import struct
import sys
from typing import Final, NamedTuple

_BYTES: Final = struct.Struct("=Q")
_BYTES_AT: Final = 128
"""Place of `tcpi_bytes_received` in Linux's `struct tcp_info`."""
_TCP_INFO_BYTES: Final = 256
_ADDRESS_BYTES: Final = 128
_PORT: Final = struct.Struct(">H")


_NO_ADDRESS: Final = struct.pack("=H14x", socket.AF_UNSPEC)


class Received(NamedTuple):
    """One connection.

    Attributes:
        descriptor: Its number in this process.
        size_bytes: What has come in.
    """

    descriptor: int
    size_bytes: int


class Sockets:
    """Connections to one port of this process; knows none on systems other than Linux, which count otherwise.

    Args:
        port: That callers connect to.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._libc = ctypes.PyDLL(None) if sys.platform == "linux" else None
        self._info = ctypes.create_string_buffer(_TCP_INFO_BYTES)
        self._address = ctypes.create_string_buffer(_ADDRESS_BYTES)
        self._size = ctypes.c_uint32()

    def received(self, least_bytes: int) -> dict[str, Received]:
        """Connections on which at least so much has come in, by the peer's address as gRPC writes it."""
        libc = self._libc
        if libc is None:
            return {}
        found: dict[str, Received] = {}
        size = ctypes.byref(self._size)
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths, and a thousand of them
            descriptor = int(name)
            self._size.value = _TCP_INFO_BYTES
            if libc.getsockopt(descriptor, socket.IPPROTO_TCP, socket.TCP_INFO, self._info, size):
                continue  # no connection
            count = _BYTES.unpack_from(self._info, _BYTES_AT)[0]
            if count >= least_bytes and self._port_of(descriptor, libc) == self._port:
                peer = self._peer_of(descriptor, libc)
                if peer:
                    found[peer] = Received(descriptor, count)
        return found

    def cut(self, peer: str, descriptor: int) -> bool:
        """Ends the connection to `peer` at once; what has come in on it and was not read is thrown away.

        Returns:
            Whether it was still there: a number that was free for a moment may stand for another connection now.
        """
        libc = self._libc
        if libc is None:
            return False
        try:
            ours = os.dup(descriptor)
        except OSError:
            return False
        try:
            if self._peer_of(ours, libc) != peer:
                return False
            end_connection(ours, libc)
        except OSError:
            return False
        finally:
            os.close(ours)
        return True

    def _port_of(self, descriptor: int, libc: ctypes.PyDLL) -> int:
        self._size.value = _ADDRESS_BYTES
        if libc.getsockname(descriptor, self._address, ctypes.byref(self._size)):
            return 0
        port: int = _PORT.unpack_from(self._address, 2)[0]
        return port

    def _peer_of(self, descriptor: int, libc: ctypes.PyDLL) -> str:
        self._size.value = _ADDRESS_BYTES
        if libc.getpeername(descriptor, self._address, ctypes.byref(self._size)):
            return ""
        raw = self._address.raw
        port = _PORT.unpack_from(raw, 2)[0]
        if int.from_bytes(raw[:2], sys.byteorder) == socket.AF_INET:
            return f"ipv4:{socket.inet_ntop(socket.AF_INET, raw[4:8])}:{port}"
        host = socket.inet_ntop(socket.AF_INET6, raw[8:24])
        if host.startswith("::ffff:"):
            return f"ipv4:{host.removeprefix('::ffff:')}:{port}"
        return f"ipv6:%5B{host}%5D:{port}"


def end_connection(descriptor: int, libc: ctypes.CDLL | None = None) -> None:
    """Ends a connection of TCP at once, without waiting for anybody.

    A socket that is only shut down goes on handing over what has come in, which can be megabytes. One that is connected
    to no address is reset by Linux, and what it holds is thrown away.

    Args:
        descriptor: Its number in this process.
        libc: The C library, where it is at hand.

    Raises:
        OSError: It is no connection any more.
    """
    if (libc or ctypes.PyDLL(None)).connect(descriptor, _NO_ADDRESS, len(_NO_ADDRESS)):
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            ours.shutdown(socket.SHUT_RDWR)
