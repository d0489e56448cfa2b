import socket

import pytest

from gradewire_server.rpc.connections.binding import bind_error


def test_a_port_that_is_taken_is_named_with_the_flag_that_changes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = str(bind_error(f"127.0.0.1:{port}", "http-port"))
    assert said == (
        f"cannot listen on 127.0.0.1:{port}: another program listens on port {port}: end it, or choose another port "
        "with --http-port"
    )


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("192.0.2.1:50051", "192.0.2.1 is not an address of this machine"),
        ("no.such.host.invalid:50051", "no.such.host.invalid is no name or address that is known here"),
    ],
)
def test_other_reasons_are_told(address: str, part: str) -> None:
    assert part in str(bind_error(address, "port"))
