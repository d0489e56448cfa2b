"""/metrics, /healthz and /readyz over a real socket."""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gradewire_server.rpc.http import HttpSide
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.rpc.telemetry import RpcTelemetry


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
    asyncio.run(lifecycle.observe(degraded=["redis: breaker open"], broken=[]))
    assert json.loads(get(http, "/healthz")[1])["degraded"] == ["redis: breaker open"]


def test_a_silent_event_loop_is_not_alive(http: HttpSide, lifecycle: Lifecycle) -> None:
    lifecycle._beat_s -= 31
    assert get(http, "/healthz")[0] == 503
    asyncio.run(lifecycle.observe(degraded=[], broken=[]))
    assert get(http, "/healthz")[0] == 200


def test_other_paths_say_what_there_is(http: HttpSide) -> None:
    code, body = get(http, "/")
    assert code == 404
    assert "/healthz" in body


def test_a_taken_port_is_an_error_and_a_closed_one_is_free_again(http: HttpSide, lifecycle: Lifecycle) -> None:
    with pytest.raises(OSError, match="in use"):
        HttpSide("127.0.0.1", http.port, registry=CollectorRegistry(), lifecycle=lifecycle)
    other = HttpSide("127.0.0.1", 0, registry=CollectorRegistry(), lifecycle=lifecycle)
    port = other.port
    other.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
