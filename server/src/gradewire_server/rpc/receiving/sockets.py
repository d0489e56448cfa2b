"""What the system knows of this process's connections: how much each has received."""

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_BYTES_RECEIVED: Final = struct.Struct("<Q")
_BYTES_RECEIVED_AT: Final = 128
"""Place of `tcpi_bytes_received` in Linux's `struct tcp_info`."""
_TCP_INFO_BYTES: Final = 256


def received_bytes(port: int) -> dict[str, int]:
    """Bytes that have come in on each connection of a port, by the peer's address as gRPC writes it.

    Empty on systems other than Linux, which count them elsewhere.
    """
    return {peer: _received(connection) for peer, connection in _connections(port)}


def cut(port: int, peers: frozenset[str]) -> None:
    """Ends connections at once."""
    for peer, connection in _connections(port):
        if peer in peers:
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)


def _received(connection: socket.socket) -> int:
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        count: int = _BYTES_RECEIVED.unpack_from(told, _BYTES_RECEIVED_AT)[0]
    except (OSError, struct.error):  # it has just been closed, or the system is an old one
        return 0
    return count


def _connections(port: int) -> Iterator[tuple[str, socket.socket]]:
    """Connections to a port with their peers; each is to be used until the next one."""
    if sys.platform != "linux":
        return
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths, and a thousand of them
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            descriptor = os.dup(int(name))
        except OSError:  # closed since it was listed
            continue
        with socket.socket(fileno=descriptor) as connection:
            try:
                if connection.family not in {socket.AF_INET, socket.AF_INET6} or connection.getsockname()[1] != port:
                    continue
                peer = _written(connection.family, connection.getpeername())
            except OSError:  # it listens, or has just been closed
                continue
            yield peer, connection


def _written(family: int, address: tuple[str, int]) -> str:
    host, port = address[:2]
    if family == socket.AF_INET6 and not host.startswith("::ffff:"):
        return f"ipv6:%5B{host}%5D:{port}"
    return f"ipv4:{host.removeprefix('::ffff:')}:{port}"
