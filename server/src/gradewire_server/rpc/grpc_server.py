"""The gRPC server, with gradewire's services, health and reflection on one port."""

import ssl
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import grpc
from grpc import aio
from grpc_health.v1.health import SERVICE_NAME
from grpc_reflection.v1alpha import reflection

from gradewire_proto.v1 import judging_pb2, models_pb2, monitoring_pb2, references_pb2, scoring_pb2
from gradewire_proto.wire_rules import JUDGING, MODELS, MONITORING, REFERENCES, SCORING
from gradewire_server.domain.caller import Scope
from gradewire_server.rpc.dispatch import Calls
from gradewire_server.rpc.health import ALL_SERVICES, Lifecycle, standard_services
from gradewire_server.rpc.method import Method, run_sized, run_stream
from gradewire_server.rpc.sockets import bind_error, most_connections
from gradewire_server.rpc.telemetry import Snapshots
from gradewire_server.settings.transport import Tls
from gradewire_server.tenants.tokens import Authentication

_MIN_PING_INTERVAL_MS: Final = 10_000

_MAX_IDLE_MS: Final = 60_000
"""The server closes a connection after this time without calls."""
_PING_EVERY_MS: Final = 60_000
_PING_TIMEOUT_MS: Final = 20_000
_HANDSHAKE_TIMEOUT_MS: Final = 20_000
_MAX_STREAMS: Final = 128
"""The maximum number of open calls per connection. Further calls wait in the client."""
_MAX_PENDING: Final = 1024
"""If more calls than this are waiting, gRPC cancels some of them."""
_MAX_PENDING_S: Final = 2
"""gRPC cancels a call that has waited this long, in whole seconds. Clients then retry the call."""
_UNCOMPRESSED: Final = 1
"""The bit mask that allows only uncompressed messages. If gzip were allowed, 30 kB could expand to 30 MB."""
_STREAM_WINDOW_BYTES: Final = 64 * 1024
"""The maximum number of bytes that gRPC receives before the server reads them."""

Services: TypeAlias = Mapping[str, Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]]


def service_handlers(calls: Calls, snapshots: Snapshots) -> Services:
    """Return the method handlers for all gradewire services."""
    score = Method(f"{SCORING}/Score", scoring_pb2.ScoreRequest, Scope.SCORE, rows="items", metrics="metrics")
    score_stream = Method(
        f"{SCORING}/ScoreStream",
        scoring_pb2.ScoreStreamRequest,
        Scope.SCORE,
        rows="items.items",
        metrics="config.metrics",
    )
    compare = Method(
        f"{JUDGING}/Compare",
        judging_pb2.CompareRequest,
        Scope.SCORE,
        rows="pairs",
        judges="parameters",
        metric="compare",
    )
    compare_stream = Method(
        f"{JUDGING}/CompareStream",
        judging_pb2.CompareStreamRequest,
        Scope.SCORE,
        rows="pairs.pairs",
        judges="config.parameters",
        metric="compare",
    )
    decide = Method(f"{JUDGING}/Decide", judging_pb2.DecideRequest, Scope.SCORE, rows="questions", judges="questions")
    complete = Method(f"{JUDGING}/Complete", judging_pb2.CompleteRequest, Scope.SCORE, judges="turns")
    prepare = Method(
        f"{REFERENCES}/Prepare",
        references_pb2.PrepareRequest,
        Scope.PREPARE,
        rows="entries",
        metrics="metrics",
        may_judge="generate",
    )
    models = Method(f"{MODELS}/List", models_pb2.ListModelsRequest)
    snapshot = Method(f"{MONITORING}/Snapshot", monitoring_pb2.SnapshotRequest, Scope.ADMIN)
    return {
        SCORING: {
            "Score": calls.unary(score, run_sized("score")),
            "ScoreStream": calls.bidirectional(score_stream, run_stream("score_stream")),
        },
        JUDGING: {
            "Compare": calls.unary(compare, run_sized("compare")),
            "CompareStream": calls.bidirectional(compare_stream, run_stream("compare_stream")),
            "Decide": calls.unary(decide, run_sized("decide")),
            "Complete": calls.unary(complete, run_sized("complete")),
        },
        REFERENCES: {"Prepare": calls.server_stream(prepare, run_stream("prepare"))},
        MODELS: {"List": calls.unary(models, lambda handlers, *_: handlers.list_models())},
        MONITORING: {"Snapshot": calls.unary(snapshot, lambda *_: snapshots.take())},
    }


def make_server(  # noqa: PLR0913 - the last four arguments are keyword-only
    services: Services,
    lifecycle: Lifecycle,
    *,
    max_message_bytes: int,
    max_connections: int = 1000,
    authentication: Authentication | None = None,
    shared: bool = False,
) -> aio.Server:
    """Return a server that is not listening yet.

    If `authentication` is given, health and reflection need a token. If `shared` is True, other processes may listen on
    the same address.
    """
    server = aio.server(
        options=[
            *_connection_options(max_connections),
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", max_message_bytes),
            # By default, two servers could share a port by mistake.
            ("grpc.so_reuseport", int(shared)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.server.max_pending_requests", _MAX_PENDING),
            ("grpc.server_max_unrequested_time_in_server", _MAX_PENDING_S),
            ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING * 3 // 2),
            ("grpc.compression_enabled_algorithms_bitset", _UNCOMPRESSED),
            ("grpc.max_concurrent_streams", _MAX_STREAMS),
            # gRPC's overload protection also counts answered calls, so it would refuse half of 300 simultaneous calls.
            ("grpc.http.overload_protection", 0),
        ],
    )
    names = (*(name for name in ALL_SERVICES if name), JUDGING, SERVICE_NAME, reflection.SERVICE_NAME)
    generic = [grpc.method_handlers_generic_handler(name, dict(methods)) for name, methods in services.items()]
    server.add_generic_rpc_handlers((*generic, *standard_services(lifecycle, names, authentication)))
    # Give Score a queue of its own. Calls to all other methods wait in a common queue.
    server.add_registered_method_handlers(SCORING, {"Score": services[SCORING]["Score"]})
    return server


async def listen(server: aio.Server, address: str, *, tls: Tls | None = None, private: str = "") -> int:
    """Start a server on `address` (HOST:PORT), and return its port.

    `private` is a second address (``unix:PATH``) without TLS. "" means no second address.

    Raises:
        BindError: The server cannot listen on the address.
        OSError: A PEM file cannot be read or used.
    """
    try:
        port = server.add_insecure_port(address) if tls is None else server.add_secure_port(address, _credentials(tls))
    except RuntimeError as error:
        if tls is not None:
            _check_pair(tls)
        raise bind_error(address, "port") from error
    if private:
        server.add_insecure_port(private)
    await server.start()
    return port


def _connection_options(max_connections: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_allowed_incoming_connections", most_connections(max_connections)),
        ("grpc.max_connection_idle_ms", _MAX_IDLE_MS),
        # Without pings, a lost peer's connection would stay open.
        ("grpc.keepalive_time_ms", _PING_EVERY_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_TIMEOUT_MS),
        # This probe would enlarge a stream's window even if the server does not read.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _STREAM_WINDOW_BYTES),
    ]


def _check_pair(tls: Tls) -> None:
    """Raise OSError if the certificate and the key cannot be used. gRPC itself only refuses to listen."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls.cert, tls.key, password="")
    except ssl.SSLError as error:
        raise OSError(
            f"tls_cert: {tls.cert} is no certificate chain in PEM format, or tls_key: {tls.key} is not its private key "
            "without a password. Replace the wrong file"
        ) from error


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    authority = None if tls.client_ca is None else tls.client_ca.read_bytes()
    return grpc.ssl_server_credentials(
        [(tls.key.read_bytes(), tls.cert.read_bytes())],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
