"""What is known of connections, and how they are ended."""

import socket
import sys

import pytest

from gradewire_server.rpc.receiving.sockets import Sockets, end_connection


@pytest.mark.skipif(sys.platform != "linux", reason="what was not read is thrown away on Linux alone")
@pytest.mark.parametrize("by_port", [True, False])
def test_what_was_not_read_of_a_connection_is_thrown_away_with_it(by_port: bool) -> None:  # noqa: FBT001 - a case
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        with peer, ours:
            peer.sendall(b"x" * 10_000)
            assert ours.recv(1) == b"x"
            if by_port:
                sockets = Sockets(server.getsockname()[1])
                ((name, received),) = sockets.received(1).items()
                assert name == f"ipv4:127.0.0.1:{peer.getsockname()[1]}"
                assert received.size_bytes == 10_000
                assert not sockets.cut(name, 10**6), "closed meanwhile"
                assert not sockets.cut("ipv4:127.0.0.1:1", received.descriptor), "another connection has its number now"
                assert sockets.cut(name, received.descriptor)
            else:
                end_connection(ours.fileno())
            with pytest.raises(ConnectionResetError):
                ours.recv(1)
            with pytest.raises(ConnectionResetError):
                peer.recv(1)
