"""/metrics, /healthz and /readyz over a real socket."""

import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.parser import text_string_to_metric_families

from gradewire_server.rpc import operational_http as http_side
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.operational_http import MAX_CONNECTIONS, HttpSide, server_tls
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.settings.transport import Tls
from gradewire_server.tenants.tokens import Authentication


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def lifecycle(registry: CollectorRegistry) -> Lifecycle:
    return Lifecycle(RpcTelemetry(registry))


@pytest.fixture
def http(registry: CollectorRegistry, lifecycle: Lifecycle) -> Iterator[HttpSide]:
    side = HttpSide("127.0.0.1", 0, registry=registry, lifecycle=lifecycle)
    yield side
    side.close()


def get(http: HttpSide, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{http.port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_can_be_parsed(http: HttpSide) -> None:
    code, body = get(http, "/metrics?x=1")
    assert code == 200
    assert {"gradewire_serving", "gradewire_calls"} <= {family.name for family in text_string_to_metric_families(body)}


def test_health_and_readiness_differ_while_loading(http: HttpSide) -> None:
    code, body = get(http, "/healthz")
    assert (code, json.loads(body)["phase"], json.loads(body)["degraded"]) == (200, "loading", [])
    code, body = get(http, "/readyz")
    assert (code, json.loads(body)) == (503, {"ready": False, "phase": "loading"})


def test_degraded_reasons_are_shown(http: HttpSide, lifecycle: Lifecycle) -> None:
    lifecycle.observe(degraded=["redis: breaker open"], broken=[])
    assert json.loads(get(http, "/healthz")[1])["degraded"] == ["redis: breaker open"]


def test_a_silent_event_loop_is_not_alive(http: HttpSide, lifecycle: Lifecycle) -> None:
    lifecycle._beat_s -= 31
    assert get(http, "/healthz")[0] == 503
    lifecycle.observe(degraded=[], broken=[])
    assert get(http, "/healthz")[0] == 200


def test_other_paths_say_what_there_is(http: HttpSide) -> None:
    code, body = get(http, "/")
    assert code == 404
    assert "/healthz" in body


def test_a_taken_port_is_an_error_and_a_closed_one_is_free_again(http: HttpSide, lifecycle: Lifecycle) -> None:
    with pytest.raises(OSError, match="another program listens on port"):
        HttpSide("127.0.0.1", http.port, registry=CollectorRegistry(), lifecycle=lifecycle)
    other = HttpSide("127.0.0.1", 0, registry=CollectorRegistry(), lifecycle=lifecycle)
    port = other.port
    other.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def ask(http: HttpSide, data: bytes, timeout_s: float = 10) -> tuple[int, dict[str, str], bytes]:
    """Sends bytes; returns status, headers and body."""
    with socket.create_connection(("127.0.0.1", http.port), timeout=timeout_s) as connection:
        connection.sendall(data)
        received = b""
        while part := connection.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("request_bytes", "status", "says"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 405, "/metrics accepts GET and HEAD"),
        (b"PUT /healthz?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", 405, "/healthz accepts GET and HEAD"),
        (b"GET /other HTTP/1.1\r\n\r\n", 404, "/metrics, /healthz, /readyz"),
        (b"nonsense\r\n\r\n", 400, "Bad request syntax"),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 20_000, 431, "exceed 16384 bytes"),
        (b"\xff\xfe\x00" * 9 + b"\r\n\r\n", 400, "Bad request syntax"),
    ],
)
def test_what_is_no_request_is_told_so_as_json(http: HttpSide, request_bytes: bytes, status: int, says: str) -> None:
    found, headers, body = ask(http, request_bytes)
    assert found == status
    assert headers["Content-Type"] == "application/json"
    assert (headers["Server"], headers["Connection"]) == ("gradewire", "close")
    assert says in json.loads(body)["error"]
    assert ("Allow" in headers) == (status == 405)


def test_a_connection_asks_once_whatever_it_wishes(http: HttpSide) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
    with socket.create_connection(("127.0.0.1", http.port), timeout=10) as connection:
        connection.sendall(asked + asked)
        with connection.makefile("rb") as file:
            received = file.read()
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 1


def test_head_has_the_length_and_no_body(http: HttpSide) -> None:
    status, headers, body = ask(http, b"HEAD /readyz HTTP/1.1\r\n\r\n")
    assert (status, body) == (503, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_reply_is_whole_however_slowly_it_is_taken(
    http: HttpSide, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = Gauge("large", "x" * 1000, ("number",), registry=registry)
    for number in range(2000):
        gauge.labels(str(number)).set(1)
    accept = socket.socket.accept

    def small_accept(self: socket.socket) -> tuple[socket.socket, Any]:
        taken, address = accept(self)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return taken, address

    monkeypatch.setattr(socket.socket, "accept", small_accept)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", http.port))
        slow.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        time.sleep(0.2)  # the server has written what its system takes
        received = b""
        while part := slow.recv(4096):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert len(body) > 50_000


def test_slow_connections_keep_nobody_out(http: HttpSide) -> None:
    before = threading.active_count()
    slow = [socket.create_connection(("127.0.0.1", http.port), timeout=10) for _ in range(3 * MAX_CONNECTIONS)]
    try:
        for connection in slow:
            with contextlib.suppress(OSError):  # it had to make room already
                connection.sendall(b"GET /healthz HT")
        for _ in range(20):
            assert get(http, "/healthz")[0] == 200
        assert threading.active_count() < before + MAX_CONNECTIONS + 20
    finally:
        for connection in slow:
            connection.close()


def test_a_connection_that_does_not_ask_is_ended(http: HttpSide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_side._Handler, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", http.port), timeout=3) as connection:
        connection.sendall(b"GET /healthz HT")
        assert connection.recv(100) == b""


def test_who_may_not_ask_is_told_what_is_needed(registry: CollectorRegistry, lifecycle: Lifecycle) -> None:
    side = HttpSide(
        "127.0.0.1",
        0,
        registry=registry,
        lifecycle=lifecycle,
        authentication=Authentication(["t"]),
    )
    try:
        status, headers, _ = ask(side, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert ask(side, b"GET /metrics HTTP/1.1\r\nauthorization: Bearer t\r\n\r\n")[0] == 200
    finally:
        side.close()


def test_with_a_certificate_it_speaks_tls(registry: CollectorRegistry, lifecycle: Lifecycle, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(
        [*made, "-addext", "subjectAltName=DNS:localhost", "-out", str(cert), "-keyout", str(key)],
        check=True,
        capture_output=True,
    )
    tls = server_tls(Tls(cert, key))
    side = HttpSide("127.0.0.1", 0, registry=registry, lifecycle=lifecycle, tls=tls)
    try:
        trusted = ssl.create_default_context(cafile=cert)
        with urllib.request.urlopen(f"https://localhost:{side.port}/healthz", timeout=5, context=trusted) as reply:
            assert reply.status == 200
        with pytest.raises((OSError, HTTPException)):
            get(side, "/healthz")  # without TLS
    finally:
        side.close()
