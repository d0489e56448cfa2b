"""The health check of an image asks the server as it speaks: in the clear or over TLS."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.probe import is_ready
from gradewire_server.process import Phase
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.operational_http import HttpSide, server_tls
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.settings.transport import Tls


@pytest.fixture
def lifecycle() -> Lifecycle:
    return Lifecycle(RpcTelemetry(CollectorRegistry()))


@pytest.fixture(params=["clear", "tls"])
def port(request: pytest.FixtureRequest, lifecycle: Lifecycle, tmp_path: Path) -> Iterator[int]:
    tls = None
    if request.param == "tls":
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=other.example"
        subprocess.run([*new.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
        tls = server_tls(Tls(cert, key))
    side = HttpSide("127.0.0.1", 0, registry=CollectorRegistry(), lifecycle=lifecycle, tls=tls)
    try:
        yield side.port
    finally:
        side.close()


def test_ready_is_told_from_not_ready(port: int, lifecycle: Lifecycle) -> None:
    assert not is_ready(port), "it is loading"
    lifecycle.phase = Phase.SERVING
    assert is_ready(port)


def test_the_exit_code_says_so(port: int, lifecycle: Lifecycle) -> None:
    def code() -> int:
        environment = {**os.environ, "GRADEWIRE_HTTP_PORT": str(port)}
        return subprocess.run([sys.executable, "-m", "gradewire_server.probe"], env=environment, check=False).returncode

    assert code() == 1
    lifecycle.phase = Phase.SERVING
    assert code() == 0


def test_where_nobody_listens_nobody_is_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert not is_ready(port)
