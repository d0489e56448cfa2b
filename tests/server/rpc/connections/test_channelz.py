"""Connections of the server are found by their peers, and closed alone."""

import socket
import sys

import pytest

from gradewire_server.rpc.connections.channelz import ServerConnections


@pytest.mark.skipif(sys.platform != "linux", reason="connections are found in /proc")
def test_connections_are_closed_by_peer_or_for_what_nobody_reads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        peers = [socket.create_connection(address, source_address=("127.0.0.2", 0)) for _ in range(3)]
        peers.append(socket.create_connection(address, source_address=("127.0.0.3", 0)))
        taken = [server.accept()[0] for _ in peers]
        try:
            for peer in peers[1:]:
                peer.sendall(b"x" * (100 if peer is peers[1] else 40_000))
            for each in taken[1:]:
                each.recv(1, socket.MSG_PEEK)
            connections = ServerConnections(address[1])
            assert connections.close({peers[0].getsockname()}) == 1
            assert connections.close((), unread_of="127.0.0.2") == 1
            for peer, closed in zip(peers, (True, False, True, False), strict=True):
                peer.settimeout(10 if closed else 0.01)
                with pytest.raises(ConnectionResetError if closed else TimeoutError):
                    peer.recv(1)
        finally:
            for each in (*peers, *taken):
                each.close()
