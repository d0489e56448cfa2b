"""Picks the transport by which this process can reach a server."""

from gradewire._fork_safety import grpc_is_inherited
from gradewire._transport.endpoint import Endpoint
from gradewire.errors import ForkedClientError
from gradewire.transport import Transport


def connect(endpoint: Endpoint) -> Transport:
    """A transport to the server; gRPC, which takes a while to import, is imported by this call at the earliest.

    Raises:
        ForkedClientError: This process was forked after gRPC had been loaded, which then works no more.
    """
    if grpc_is_inherited():
        raise ForkedClientError(
            "gRPC was loaded before this process was forked and does not work here: make the first call after the "
            "fork, or start the process by spawn or forkserver (of a data loader: multiprocessing_context='spawn')"
        )
    from gradewire._transport.grpc_transport import GrpcTransport  # noqa: PLC0415 - as the docstring says

    return GrpcTransport(endpoint)
