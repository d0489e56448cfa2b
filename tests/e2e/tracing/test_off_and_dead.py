"""A server that traces nothing loads nothing for it, and a dead collector costs no call anything."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess

from gradewire import Client

ITEMS = [{"references": ["cat"], "prediction": "a cat"}]
LOADED = "print([name for name in sys.modules if name.partition('.')[0] == 'opentelemetry'])"
# redis loads what it finds of OpenTelemetry's SDK; of ours, and of what exports, nothing may be there.
OURS = """
print([name for name in sys.modules if name.startswith(("opentelemetry.exporter", "opentelemetry.proto"))
       or name in {"gradewire_proto.tracing.otel", "gradewire_proto.tracing.sdk"}])
"""
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("GRADEWIRE_", "OTEL_"))}
SERVER = """
import asyncio, sys
import gradewire_server.app
from gradewire_proto.tracing.settings import TracingSettings
from gradewire_server.tracing import open_call_tracer
from prometheus_client import CollectorRegistry

async def main():
    async with open_call_tracer(TracingSettings(), CollectorRegistry()) as tracer:
        assert tracer is None

asyncio.run(main())
"""
CLIENT = """
import sys
from gradewire import Client, ServerUnreachable

try:
    Client("127.0.0.1:9", deadline_s=0.2).score([{"references": ["cat"], "prediction": "a cat"}], "exact_match")
except ServerUnreachable:
    pass
"""
GATEWAY = """
import asyncio, sys
import gradewire_gateway.serving
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, UpstreamSettings

async def main():
    upstream = UpstreamSettings(target="127.0.0.1:9")
    gateway = Gateway(GatewaySettings(upstream=upstream, listen=ListenSettings(), bounds=Bounds()))
    gateway.open()
    assert gateway.tracing is None
    await gateway.close()

asyncio.run(main())
"""


def test_a_server_that_traces_nothing_loads_nothing_for_it() -> None:
    assert run(SERVER + OURS).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("program", [CLIENT, GATEWAY], ids=["client", "gateway"])
def test_what_traces_nothing_loads_nothing(program: str) -> None:
    assert run(program + LOADED).stdout.splitlines()[-1] == "[]"


def run(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=CLEAN,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_a_dead_collector_delays_no_call_and_no_stop(
    tmp_path: Path, minilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
    settings = {
        "model_repository": minilm,
        "judge_backend": "none",
        "http_api_port": 0,
        "otlp_endpoint": "http://127.0.0.1:9",
        "drain_s": 0,
    }
    with ServerProcess(tmp_path, **settings) as server:
        with Client(server.address) as client:
            for _ in range(20):
                assert client.score(ITEMS, "exact_match")[0].scores["exact_match"].score == 1
        body = json.dumps({"items": ITEMS, "metrics": [{"exactMatch": {}}]}).encode()
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{server.api}/gradewire.v1.Scoring/Score", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310 - our own server
            assert reply.status == 200
        server.wait_for_event("dropping spans")
        # A queue of 8 takes no more while the collector is silent, and what was lost is counted.
        assert server.samples()['gradewire_telemetry_dropped_total{kind="span"}'] > 0
        server.signal(signal.SIGTERM)
        assert server.wait(20) == 0
        said = [line["event"] for line in server.log() if line["level"] in {"warning", "error"}]
        assert len([event for event in said if event.startswith("dropping spans")]) <= 2  # of server and gateway
