"""What the gateway is handed: the socket that it listens on, and a private way to the server."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, RewardPostSettings, UpstreamSettings
from gradewire_server.rpc.connections.binding import bind_error
from gradewire_server.settings.server import Settings

_MAX_PATH_BYTES: Final = 96
"""Of a socket's name; the system takes a few more."""
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Stays while gateways come and go.

    Attributes:
        listening: Where callers connect.
        private: Address of gRPC for the gateway alone, ``unix:PATH``.
    """

    listening: socket.socket
    private: str

    @property
    def port(self) -> int:
        """Where callers connect."""
        port: int = self.listening.getsockname()[1]
        return port


@contextmanager
def endpoint(settings: Settings) -> Iterator[Endpoint]:
    """Binds the port of the HTTP API and makes a directory that only this user can enter; raises BindError."""
    listening = _bind(settings)
    directory = private_directory()
    try:
        yield Endpoint(listening, f"unix:{directory / 'grpc'}")
    finally:
        listening.close()
        shutil.rmtree(directory, ignore_errors=True)


def gateway_settings(settings: Settings, private: str) -> GatewaySettings:
    """What the gateway is told."""
    api, tls = settings.http_api, settings.listen.tls
    names = ("", "", "") if tls is None else (str(tls.cert), str(tls.key), str(tls.client_ca or ""))
    cert, key, client_ca = names
    return GatewaySettings(
        upstream=UpstreamSettings(target=private, private=True),
        listen=ListenSettings(
            host=api.host, port=api.port or 0, cert=cert, key=key, client_ca=client_ca, names=api.names
        ),
        bounds=Bounds(max_requests=api.max_requests, max_body_bytes=settings.limits.max_message_bytes),
        rewards=RewardPostSettings(**asdict(api.rewards)),
        metrics=not settings.listen.auth_http,
        log_share=settings.log.request_share,
        telemetry=settings.tracing.telemetry(),
        page=api.page,
    )


def _bind(settings: Settings) -> socket.socket:
    host, port = settings.http_api.host, settings.http_api.port or 0
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise bind_error(f"{host}:{port}", "http-api-port") from error
    return listening


def private_directory() -> Path:
    """Makes a directory that only this user can enter, with a name short enough for sockets in it."""
    made = Path(tempfile.mkdtemp(prefix="gradewire-"))
    if len(bytes(made / "grpc")) <= _MAX_PATH_BYTES:
        return made
    made.rmdir()
    return Path(tempfile.mkdtemp(prefix="gradewire-", dir="/tmp"))
