"""Find free ports; import no packages, because the GPU machine may lack them."""

import socket


def free_port() -> int:
    """Return a currently free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
