"""Why an address cannot be listened on, in words: gRPC says only that it failed."""

import errno
import socket


class BindError(OSError):
    """The address cannot be listened on."""


def bind_error(address: str, flag: str) -> BindError:
    """Says what is wrong with an address (HOST:PORT) that could not be bound, and the flag that changes its port."""
    return BindError(f"cannot listen on {address}: {_why_not(address, flag)}")


def _why_not(address: str, flag: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, ValueError, OverflowError):
        return f"{host} is no name or address that is known here: set another host"
    family, kind, protocol, _, place = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return f"another program listens on port {port}: end it, or choose another port with --{flag}"
            if error.errno == errno.EACCES:
                return f"port {port} is for the administrator: choose one above 1023 with --{flag}"
            return f"{host} is not an address of this machine ({error.strerror}): choose another with --host"
    return f"port {port} was taken a moment ago: try again, or choose another port with --{flag}"
