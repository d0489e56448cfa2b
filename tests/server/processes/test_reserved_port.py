"""The port of several processes is kept from others, and from a second server of the same kind."""

import socket

import pytest

from gradewire_server.processes.reserved_port import reserved_port
from gradewire_server.rpc.connections.binding import BindError


def test_it_is_shared_with_those_that_share_and_kept_from_others() -> None:
    with reserved_port("127.0.0.1", 0) as port:
        with (
            pytest.raises(BindError, match=f"another program listens on port {port}"),
            reserved_port("127.0.0.1", port),
        ):
            pass
        with socket.socket() as foreign:
            foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                foreign.bind(("127.0.0.1", port))
        with socket.socket() as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind(("127.0.0.1", port))
            ours.listen()
            socket.create_connection(("127.0.0.1", port), 5).close()


def test_a_port_on_which_a_program_listens_is_an_error() -> None:
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        port = foreign.getsockname()[1]
        with pytest.raises(BindError), reserved_port("127.0.0.1", port):
            pass
