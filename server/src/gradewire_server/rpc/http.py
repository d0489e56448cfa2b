"""HTTP beside gRPC, on a port and in threads of its own: /metrics, /healthz (alive, and what is degraded), /readyz."""

import json
import socket
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gradewire_server.rpc.access.http import why_refused
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.rpc.lifecycle import Lifecycle

_SILENT_S: Final = 30.0
"""Seconds after which an event loop that has not answered counts as dead."""
_REQUEST_TIMEOUT_S: Final = 10.0


class HttpSide:
    """A small HTTP server; starts when made, `close` ends it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        registry: CollectorRegistry,
        lifecycle: Lifecycle,
        authentication: Authentication | None = None,
    ) -> None:
        """Raises OSError where the port cannot be had."""

        class Handler(_Handler):
            pass

        Handler.registry = registry
        Handler.lifecycle = lifecycle
        Handler.authentication = authentication
        server_type = _Ipv6Server if ":" in host else _Server
        self._server = server_type((host, port), Handler)
        self._thread = Thread(target=self._server.serve_forever, name="gradewire-http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Ends it and gives the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # The base class would ask the name service for our name here, which can take seconds and serves nothing.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Ipv6Server(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    lifecycle: Lifecycle
    authentication: Authentication | None = None
    timeout = _REQUEST_TIMEOUT_S
    server_version = "gradewire"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics" and (refusal := self._refusal()):
            self._json(*refusal)
        elif path == "/metrics":
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._reply(200, encode(self.registry), content_type)
        elif path == "/healthz":
            report = self.lifecycle.report()
            self._json(200 if report["event_loop_silent_s"] < _SILENT_S else 503, report)
        elif path == "/readyz":
            ready = self.lifecycle.ready
            self._json(200 if ready else 503, {"ready": ready, "phase": self.lifecycle.phase.value})
        else:
            self._json(404, {"error": "there are /metrics, /healthz and /readyz"})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing: probes come every few seconds."""

    def _refusal(self) -> tuple[int, Mapping[str, str]] | None:
        return why_refused(self.authentication, self.headers.get("Authorization", ""))

    def _json(self, code: int, body: object) -> None:
        self._reply(code, json.dumps(body).encode() + b"\n", "application/json")

    def _reply(self, code: int, body: bytes, content_type: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
