"""The sockets on which gRPC listens: it hands them to nobody, so they are found among those of this process. Linux."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path


def listening_sockets(port: int) -> Iterator[socket.socket]:
    """Duplicates of the sockets of this process that listen on a port of TCP, closed as the next one is asked for."""
    for link in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # closed meanwhile
            if not str(link.readlink()).startswith("socket:"):
                continue
            with closing(_duplicate(int(link.name))) as ours:
                if _listens(ours, port):
                    yield ours


def stop_listening(port: int) -> None:
    """Has new connections go to the other processes that listen on the port; those there are stay.

    gRPC listens until its server stops, and that drops calls that it has read and not handed over yet. So its sockets
    are shut down, and it takes them for broken.
    """
    for ours in listening_sockets(port):
        with suppress(OSError):  # gRPC has ended it
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
