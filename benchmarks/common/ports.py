"""Find free ports; this module imports no packages, because the GPU machine may not have them."""

import socket


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
