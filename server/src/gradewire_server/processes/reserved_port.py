"""The port that several processes share, kept from everybody else."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from gradewire_server.rpc.connections.binding import bind_error


@contextmanager
def reserved_port(host: str, port: int) -> Iterator[int]:
    """Reserves a port for processes of this user that share it (SO_REUSEPORT); gives its number.

    The socket never listens, so no connection goes to it. It is bound alone, so that a program which has the port
    already is an error, and shared only then; a second reservation fails, for it is bound alone too. Linux.

    Args:
        host: Name or address.
        port: 0 takes a free one.

    Raises:
        BindError: The port is taken, or the address is not ours.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise bind_error(f"{host}:{port}", "port") from error
    with bound:
        try:
            # Connections of a server that has just ended keep its port for a minute otherwise.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
        except OSError as error:
            raise bind_error(f"{host}:{port}", "port") from error
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield int(bound.getsockname()[1])
