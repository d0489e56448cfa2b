"""Tokens for what is not ours: health, reflection, and metrics over HTTP; and the warning about an open server."""

import logging
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry
from tests.support.servers.wire import wire_server

from gradewire_proto.v1 import models_pb2
from gradewire_server import app
from gradewire_server.processes import child
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.log import FloodFilter
from gradewire_server.rpc.operational_http import HttpSide
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.settings.server import Settings
from gradewire_server.tenants.tokens import Authentication, TokensFile

TOKENS = '[narrow]\ntoken = "narrow"\n[admin]\ntoken = "admin"\nscopes = ["admin"]\n'


@pytest.fixture
def authentication(tmp_path: Path) -> Authentication:
    path = tmp_path / "tokens.toml"
    path.write_text(TOKENS)
    return Authentication(("own",), file=TokensFile(path))


@pytest.mark.parametrize(
    ("authorization", "status"),
    [("", 401), ("Bearer wrong", 401), ("Bearer narrow", 403), ("Bearer admin", 200), ("Bearer own", 200)],
)
def test_metrics_over_http_ask_for_admin(authentication: Authentication, authorization: str, status: int) -> None:
    registry = CollectorRegistry()
    http = HttpSide(
        "127.0.0.1", 0, registry=registry, lifecycle=Lifecycle(RpcTelemetry(registry)), authentication=authentication
    )
    try:
        assert get(http.port, "/metrics", authorization) == status
        assert get(http.port, "/healthz", "") == 200, "probes carry no token"
    finally:
        http.close()


def get(port: int, path: str, authorization: str) -> int:
    headers = {"Authorization": authorization} if authorization else {}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=5) as reply:  # noqa: S310 - our own server
            status: int = reply.status
            return status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_without_the_setting_metrics_ask_for_nothing() -> None:
    registry = CollectorRegistry()
    http = HttpSide("127.0.0.1", 0, registry=registry, lifecycle=Lifecycle(RpcTelemetry(registry)))
    try:
        assert get(http.port, "/metrics", "") == 200
    finally:
        http.close()


@pytest.mark.parametrize(("token", "code"), [("", "UNAUTHENTICATED"), ("wrong", "UNAUTHENTICATED"), ("narrow", "OK")])
async def test_health_and_reflection_ask_for_any_token(authentication: Authentication, token: str, code: str) -> None:
    metadata = [("authorization", f"Bearer {token}")] if token else []
    async with wire_server(authentication=authentication, guard_health=True) as wire:
        health: Any = health_pb2_grpc.HealthStub(wire.channel)
        assert (await health.Check(health_pb2.HealthCheckRequest(), metadata=metadata).code()).name == code
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(wire.channel)
        call = reflection.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")]), metadata=metadata
        )
        if code == "OK":
            assert (await call.read()).HasField("list_services_response")
            call.cancel()
        else:
            assert (await call.code()).name == code
        ours = wire.models.List(models_pb2.ListModelsRequest(), metadata=[("authorization", "Bearer own")])
        assert (await ours.code()).name == "OK"


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"host": "0.0.0.0"}, True),  # noqa: S104 - nothing listens
        ({"host": "127.0.0.1"}, False),
        ({"host": "localhost"}, False),
        ({"host": "::1"}, False),
        ({"host": "0.0.0.0", "auth_tokens": "x"}, False),  # noqa: S104 - as above
        ({"host": "0.0.0.0", "auth_tokens_file": "/x"}, False),  # noqa: S104 - as above
        ({"host": "0.0.0.0", "tls_cert": "/c", "tls_key": "/k", "tls_client_ca": "/a"}, False),  # noqa: S104
        ({"host": "0.0.0.0", "tls_cert": "/c", "tls_key": "/k"}, True),  # noqa: S104 - as above
    ],
)
def test_a_server_that_anybody_may_use_says_so(
    settings: dict[str, Any], warned: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        app._warn_if_open(Settings.load(**settings))
    assert ("Anybody who can reach" in caplog.text) == warned


def test_a_broken_tokens_file_keeps_the_server_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "configure_log", lambda _: FloodFilter())  # else the log is written past `caplog`
    path = tmp_path / "tokens.toml"
    path.write_text('[a]\ntoken = ""\n')
    assert app.run(Settings.load(auth_tokens_file=path, port=0, http_port="")) == 1
    assert f"{path}: [a] token: a token must be 1 to 1024" in caplog.text
