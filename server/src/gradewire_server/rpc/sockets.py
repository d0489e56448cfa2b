"""Sockets: binding, limits for open files, and the bytes received on each connection."""

import ctypes
import errno
import logging
import os
import resource
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

_log = logging.getLogger(__name__)

_KEPT_FOR_OTHERS: Final = 128
"""The number of file descriptors that are not used for connections."""
_BYTES: Final = struct.Struct("=Q")
_BYTES_AT: Final = 128
"""The offset of `tcpi_bytes_received` in Linux's `struct tcp_info`."""
_TCP_INFO_BYTES: Final = 256
_ADDRESS_BYTES: Final = 128
_PORT: Final = struct.Struct(">H")
_NO_ADDRESS: Final = struct.pack("=H14x", socket.AF_UNSPEC)


class BindError(OSError):
    """An address that the server cannot listen on."""


def bind_error(address: str, flag: str) -> BindError:
    """Return an error that says why the server cannot listen on HOST:PORT. `flag` is the port's command-line flag."""
    return BindError(f"cannot listen on {address}: {_bind_problem(address, flag)}")


def _bind_problem(address: str, flag: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, ValueError, OverflowError):
        return f"{host} is not a known name or address; choose another address with --host"
    family, kind, protocol, _, address_found = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address_found)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return (
                    f"another program listens on port {port}; stop that program, or choose another port with --{flag}"
                )
            if error.errno == errno.EACCES:
                return f"port {port} needs administrator rights; choose a port above 1023 with --{flag}"
            return f"{host} is not an address of this machine ({error.strerror}); choose another address with --host"
    return f"port {port} was in use a moment ago; try again, or choose another port with --{flag}"


def bound_socket(host: str, port: int, flag: str, *, backlog: int = 0) -> socket.socket:
    """Return an exclusively bound socket, or raise BindError if the address is not available.

    If the host has several addresses, prefer IPv4. Port 0 means any free port. If `backlog` is 0, do not listen.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        bound = socket.socket(family, kind)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            if backlog:
                bound.listen(backlog)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise bind_error(f"{host}:{port}", flag) from error
    return bound


def raise_descriptor_limit() -> None:
    """Raise the process's soft limit for open files to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # an unlimited hard limit may exceed the system's limit
        _log.warning("cannot raise the limit for open files; the limit remains %d: %s", soft, error)


def most_connections(wanted: int) -> int:
    """Return how many connections the server can have, up to `wanted`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = max(1, soft - _KEPT_FOR_OTHERS)
    if most < wanted:
        _log.warning(
            "max_connections is %d, but the limit for open files allows only %d; raise ulimit -n (now %d)",
            wanted,
            most,
            soft,
        )
    return min(wanted, most)


def listening_sockets(port: int) -> Iterator[socket.socket]:
    """Yield a duplicate of each socket that listens on `port` in this process, then close the duplicate."""
    for link in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # closed meanwhile
            if not str(link.readlink()).startswith("socket:"):
                continue
            with closing(_duplicate(int(link.name))) as ours:
                if _listens(ours, port):
                    yield ours


def stop_listening(port: int) -> None:
    """Stop accepting connections on `port`, but keep existing connections.

    Stopping gRPC's server would drop calls that are not delivered yet.
    """
    for ours in listening_sockets(port):
        with suppress(OSError):  # gRPC has closed the socket
            ours.shutdown(socket.SHUT_RDWR)


def _listens(ours: socket.socket, port: int) -> bool:
    return (
        ours.family in {socket.AF_INET, socket.AF_INET6}
        and ours.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        and ours.getsockname()[1] == port
    )


def _duplicate(descriptor: int) -> socket.socket:
    try:
        return socket.socket(fileno=os.dup(descriptor))
    except OSError as error:  # closed meanwhile
        raise FileNotFoundError from error


class Received(NamedTuple):
    """A connection's file descriptor and number of received bytes."""

    descriptor: int
    size_bytes: int


class Sockets:
    """This process's connections on the server's port. Only Linux is supported."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._libc = ctypes.PyDLL(None) if sys.platform == "linux" else None
        self._info = ctypes.create_string_buffer(_TCP_INFO_BYTES)
        self._address = ctypes.create_string_buffer(_ADDRESS_BYTES)
        self._size = ctypes.c_uint32()

    def received(self, least_bytes: int) -> dict[str, Received]:
        """Return the connections that received at least `least_bytes`, by peer address in gRPC's format."""
        libc = self._libc
        if libc is None:
            return {}
        found: dict[str, Received] = {}
        size = ctypes.byref(self._size)
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - thousands of numbers, not paths
            descriptor = int(name)
            self._size.value = _TCP_INFO_BYTES
            if libc.getsockopt(descriptor, socket.IPPROTO_TCP, socket.TCP_INFO, self._info, size):
                continue  # not a connection
            count = _BYTES.unpack_from(self._info, _BYTES_AT)[0]
            if count >= least_bytes and self._port_of(descriptor, libc) == self._port:
                peer = self._peer_of(descriptor, libc)
                if peer:
                    found[peer] = Received(descriptor, count)
        return found

    def cut(self, peer: str, descriptor: int) -> bool:
        """End the connection to `peer` at once, and drop its unread data.

        Returns:
            False if the connection had already ended.
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
    """Reset a TCP connection and drop its unread data. Raise OSError if the connection no longer exists."""
    # When a socket is connected to AF_UNSPEC, Linux drops the data.
    if (libc or ctypes.PyDLL(None)).connect(descriptor, _NO_ADDRESS, len(_NO_ADDRESS)):
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            ours.shutdown(socket.SHUT_RDWR)
