"""Picks the transport by which this process can reach a server."""

from gradewire._fork_safety import grpc_is_inherited
from gradewire._transport.endpoint import Endpoint
from gradewire.transport import Transport


def connect(endpoint: Endpoint) -> Transport:
    """A transport to the server; gRPC, which takes a while to import, is imported by this call at the earliest."""
    if grpc_is_inherited():
        from gradewire._transport.relay import RelayTransport  # noqa: PLC0415 - in forked children only

        return RelayTransport(endpoint)
    from gradewire._transport.grpc_transport import GrpcTransport  # noqa: PLC0415 - as the docstring says

    return GrpcTransport(endpoint)
