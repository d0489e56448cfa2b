"""`make up`: the whole shape as processes of this machine. Started once; the tests go through its life in order."""

import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from deploy.local.parts import PORTS
from tests.deploy.conftest import ROOT
from tests.deploy.queries import OF_SEVERAL_PROCESSES, all_queries, dashboard_queries, offered_series, series_of

from gradewire import Client, ScoreReport

_ANY_PORTS = [part for name in PORTS for part in (f"--{name}-port", "0")]
# The first start ever on a machine installs Triton's environment.
_START_S = 240.0
pytestmark = pytest.mark.timeout(300)
_ROWS = [
    {
        "question": "What is it fried in?",
        "references": ["a wok", "a large wok"],
        "prediction": f"It is wok number {row}.",
    }
    for row in range(20)
]
# Series that come into being with the first failure, loss, repair or GPU, or with the first question to a judge.
_SELDOM = {
    "gradewire_degraded",
    "gradewire_engine_dropped_texts_total",
    "gradewire_engine_store_errors_total",
    "gradewire_engine_store_rejected_values_total",
    "gradewire_engine_text_failures_total",
    "gradewire_engine_triton_inference_errors_total",
    "gradewire_engine_triton_model_switches_total",
    "gradewire_engine_triton_repairs_total",
    "gradewire_engine_unwritten_values_total",
    "gradewire_judge_answers_total",
    "gradewire_judge_failures_total",
    "gradewire_judge_inference_seconds_bucket",
    "gradewire_judge_queue_seconds_bucket",
    "gradewire_judge_remote_cost_total",
    "gradewire_judge_remote_retries_total",
    "gradewire_judge_remote_tokens_total",
}


class Up:
    """The process of `make up` and what it says of itself."""

    def __init__(self, state: Path, repository: Path) -> None:
        self.state = state
        self.command = [sys.executable, "-m", "deploy.local.up", "--state", str(state), "--repository", str(repository)]
        self.process = subprocess.Popen(
            [*self.command, *_ANY_PORTS], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        addresses = state / "addresses.json"
        _until(lambda: addresses.exists() or self.process.poll() is not None, _START_S)
        if self.process.poll() is not None:
            pytest.fail(self.process.communicate()[0])
        self.addresses: Mapping[str, str] = json.loads(addresses.read_text())

    def get(self, part: str, path: str) -> str:
        """A page of one of the parts."""
        with urllib.request.urlopen(f"http://{self.addresses[part]}{path}", timeout=10) as page:
            text: str = page.read().decode()
        return text

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus finds now."""
        answer = json.loads(self.get("prometheus", f"/api/v1/query?query={urllib.parse.quote(expression)}"))
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def keys_in_valkey(self) -> int:
        """Entries of the shared cache."""
        host, _, port = self.addresses["valkey"].partition(":")
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(b"DBSIZE\r\n")
            return int(connection.recv(64).strip().removeprefix(b":"))

    def inferences(self) -> float:
        """Rows that Triton has run."""
        lines = self.get("triton-metrics", "/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("nv_inference_count{"))


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("shape") / "up", minilm)
    yield running
    with running.process as process:
        if process.poll() is None:
            process.terminate()


def _until(condition: Callable[[], object], timeout_s: float = 30) -> None:
    give_up = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up:
            raise TimeoutError(f"not within {timeout_s:g} s")
        time.sleep(0.1)


def _encoded(report: ScoreReport) -> int:
    return sum(score.cache_hits.computed for item in report for score in item.scores.values())


def _shared_memory(prefix: str) -> list[Path]:
    return list(Path("/dev/shm").glob(f"{prefix}*"))  # noqa: S108 - looked at, not written


def test_a_client_scores_through_triton_and_the_shared_cache(shape: Up) -> None:
    before = shape.inferences()
    with Client(shape.addresses["gradewire"]) as client:
        cold = client.score(_ROWS, "smile,sbert")
        warm = client.score(_ROWS, "smile,sbert")
    assert all(score.score is not None for item in cold for score in item.scores.values())
    assert _encoded(cold) > len(_ROWS)
    assert _encoded(warm) == 0
    # Triton counts when it lets go of a request, which may be after the answer.
    _until(lambda: shape.inferences() > before + len(_ROWS))
    assert [item.scores["smile"].score for item in warm] == [item.scores["smile"].score for item in cold]
    _until(lambda: shape.keys_in_valkey() > 20)


def test_the_http_api_answers_too(shape: Up) -> None:
    assert json.loads(shape.get("gradewire-http-api", "/healthz")) == {"status": "SERVING"}


def test_prometheus_scrapes_both_and_every_query_of_dashboard_and_alerts_finds_its_series(shape: Up) -> None:
    offered = offered_series(shape.get("gradewire-http", "/metrics")) | offered_series(
        shape.get("triton-metrics", "/metrics")
    )
    offered |= OF_SEVERAL_PROCESSES
    unknown = {series for query in all_queries().values() for series in series_of(query)} - offered
    assert {name for name in unknown if not name.startswith("nv_gpu_")} == set(), "there is no GPU here, all else is"

    _until(lambda: {part["metric"]["job"] for part in shape.query("up == 1")} == {"gradewire", "triton"})
    with Client(shape.addresses["gradewire"]) as client:
        client.score([_ROWS[0] | {"prediction": "Something that no cache has seen, with an up in it."}], "smile,sbert")
    _until(lambda: shape.query("rate(gradewire_calls_total[1m]) > 0"))
    _until(lambda: shape.query("rate(nv_inference_count[1m]) > 0"))
    empty = {
        f"{panel}: {query}"
        for panel, query in dashboard_queries()
        if not shape.query(query) and not series_of(query) & (_SELDOM | unknown) and 'status!="OK"' not in query
    }
    assert not empty
    assert not shape.query('ALERTS{alertstate="firing"}')


def test_a_second_start_leaves_the_first_alone(shape: Up) -> None:
    again = subprocess.run(
        [*shape.command, *_ANY_PORTS], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    assert "already running" in again.stdout
    assert shape.get("gradewire-http", "/readyz")


def test_down_stops_everything_and_leaves_nothing(shape: Up) -> None:
    family = psutil.Process(shape.process.pid).children(recursive=True)
    assert {"prometheus", "tritonserver", "valkey-server"} <= {process.name() for process in family}
    prefix = f"gradewire_{hashlib.sha256(str(shape.state / 'triton').encode()).hexdigest()[:12]}_"
    assert _shared_memory(prefix), "the prefix has changed: the check below is blind"
    subprocess.run([*shape.command, "--down"], cwd=ROOT, check=True, timeout=100)
    assert shape.process.wait(10) == 0
    with contextlib.suppress(psutil.NoSuchProcess):
        assert not psutil.wait_procs(family, timeout=5)[1]
    assert not _shared_memory(prefix)
    assert not (shape.state / "addresses.json").exists()
