"""The gRPC server: our services, health and reflection on one port, with or without TLS."""

from typing import Final

import grpc
from grpc import aio
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2
from gradewire_proto.wire_rules import JUDGING, SCORING
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.rpc.calls import ALL_SERVICES, Lifecycle
from gradewire_server.rpc.health import HealthGate, foreign_handlers
from gradewire_server.rpc.services import Services
from gradewire_server.rpc.sockets import bind_error, most_connections
from gradewire_server.settings.limits import Connections
from gradewire_server.settings.transport import Tls

_MIN_PING_INTERVAL_MS: Final = 10_000
"""Clients may ping this often to find out whether the connection still stands."""

_PING_EVERY_MS: Final = 60_000
_PING_TIMEOUT_MS: Final = 20_000
_HANDSHAKE_TIMEOUT_MS: Final = 20_000
_MAX_STREAMS: Final = 128
"""Calls that one connection may have open; further ones wait in the client."""
_MAX_PENDING: Final = 512
"""Calls of one method that wait to be taken in; from here on gRPC drops some as CANCELLED, and half as many again all.

Taken in they are refused in due form, so this many are what a stall of a fraction of a second leaves waiting."""
_MAX_PENDING_S: Final = 2
"""Seconds, whole ones, after which gRPC ends a call as CANCELLED that it could not hand over: clients take that for
overload and come back, before their deadlines are over."""
_UNCOMPRESSED: Final = 1
"""Bit 0 is "identity". Nobody knows before what a compressed message takes once it is unpacked: 30 kB of gzip make
30 MB, and what guards memory counts bytes as they come in."""
_STREAM_WINDOW_BYTES: Final = 64 * 1024
"""Of a message that nobody reads yet."""

# Reflection finds services through the descriptors of these modules.
_REFLECTED: Final = (scoring_pb2, references_pb2, models_pb2, judging_pb2)


async def start_server(  # noqa: PLR0913 - what a server is made of, all but three by name
    address: str,
    services: Services,
    lifecycle: Lifecycle,
    *,
    max_message_bytes: int,
    connections: Connections | None = None,
    tls: Tls | None = None,
    authentication: Authentication | None = None,
    private: str = "",
    shared: bool = False,
) -> tuple[aio.Server, int]:
    """Starts listening on `address` (HOST:PORT); returns the server and its port.

    Args:
        address: Where to listen.
        services: Ours.
        lifecycle: Says what health answers.
        max_message_bytes: Of requests and replies.
        connections: How many there may be, and how long; None: the settings' defaults.
        tls: None: in the clear.
        authentication: Asked about calls of health and reflection; None: these are open to all.
        private: A second address (``unix:PATH``), in the clear, for who can open it; empty: none.
        shared: Whether other processes of this server listen on the address too.

    Raises:
        BindError: The address is taken or not ours.
        OSError: A PEM file cannot be read.
    """
    connections = connections or Connections()
    server = aio.server(
        interceptors=() if authentication is None else (HealthGate(authentication),),
        options=[
            *_connection_options(connections),
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", max_message_bytes),
            # By default two servers could share a port in silence, each with half of the calls.
            ("grpc.so_reuseport", int(shared)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.server.max_pending_requests", _MAX_PENDING),
            ("grpc.server_max_unrequested_time_in_server", _MAX_PENDING_S),
            ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING * 3 // 2),
            ("grpc.compression_enabled_algorithms_bitset", _UNCOMPRESSED),
            ("grpc.max_concurrent_streams", _MAX_STREAMS),
            # It counts answered calls that this process has not put away yet: of 300 that a client made at once over
            # one connection, half ended UNAVAILABLE.
            ("grpc.http.overload_protection", 0),
        ],
    )
    names = (*(name for name in ALL_SERVICES if name), JUDGING, health.SERVICE_NAME, reflection.SERVICE_NAME)
    foreign = foreign_handlers(lifecycle.health, names)
    generic = [grpc.method_handlers_generic_handler(name, dict(methods)) for name, methods in services.items()]
    server.add_generic_rpc_handlers((*generic, *foreign))
    # Taken in apart from the others, which wait for each other.
    server.add_registered_method_handlers(SCORING, {"Score": services[SCORING]["Score"]})
    try:
        port = server.add_insecure_port(address) if tls is None else server.add_secure_port(address, _credentials(tls))
    except RuntimeError as error:
        raise bind_error(address, "port") from error
    if private:
        server.add_insecure_port(private)
    await server.start()
    return server, port


def _connection_options(connections: Connections) -> list[tuple[str, int]]:
    """What bounds the memory and the descriptors that connections take."""
    return [
        ("grpc.max_allowed_incoming_connections", most_connections(connections.max_count)),
        ("grpc.max_connection_idle_ms", round(connections.idle_s * 1000)),
        # A peer that is gone says nothing: without pings its connection would never count as idle while a call is open.
        ("grpc.keepalive_time_ms", _PING_EVERY_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_TIMEOUT_MS),
        # Else the window of a stream grows with the speed of its sender, read or not.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _STREAM_WINDOW_BYTES),
    ]


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    authority = None if tls.client_ca is None else tls.client_ca.read_bytes()
    return grpc.ssl_server_credentials(
        [(tls.key.read_bytes(), tls.cert.read_bytes())],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
