"""`gradewire bench load` against a real server on a socket."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import grpc
import pytest
from tests.client.cli.conftest import Command, write_rows
from tests.client.small_server import Fault, SmallServer, run_small_server

from gradewire.manifests import read_manifest

PAGE = """# TYPE gradewire_serving gauge
gradewire_serving 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {cpu}
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 4.0e+08
"""


@pytest.fixture(scope="module")
def server() -> Iterator[SmallServer]:
    with run_small_server() as server:
        yield server


@pytest.fixture
def metrics_url() -> Iterator[str]:
    """A page of metrics whose CPU time grows by a second each time that somebody looks."""

    class Page(BaseHTTPRequestHandler):
        looks = 0

        def do_GET(self) -> None:
            type(self).looks += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.format(cpu=type(self).looks).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            del format, args

    with HTTPServer(("127.0.0.1", 0), Page) as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{page.server_port}/metrics"
        page.shutdown()
        thread.join()


def test_one_rate_is_measured_and_written_as_table_json_page_and_manifest(
    command: Command, server: SmallServer, metrics_url: str, tmp_path: Path
) -> None:
    rows = [{"question": "?", "references": ["two", "2"], "prediction": f"answer {n}"} for n in range(5)]
    path, out, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "load.json", tmp_path / "load.html"
    at = ("--server", server.address, "--metrics-url", metrics_url)
    step = ("--rate", "50", "--duration", "0.6", "--arrivals", "constant", "--slo-s", "20", "--metrics", "exact_match")
    done = command("bench", "load", path, *at, *step, "--json", out, "--html", page)
    assert done.exit_code == 0, done.output
    assert "50        keeps up" in done.output
    document = json.loads(out.read_text())
    (measured,) = document["steps"]
    assert measured["calls"] == measured["scored_calls"] == 30
    assert measured["codes"] == {"OK": 30}
    assert measured["server_cpu_s_per_item"] == pytest.approx(1 / 30)
    assert measured["answers_repeated_share"] == 1
    assert measured["latency_s"]["p50"] <= measured["latency_s"]["p99"] <= measured["latency_s"]["max"]
    assert document["knee"] is None
    assert document["parameters"]["rate"] == 50
    assert "mix" not in document["parameters"]
    manifest = read_manifest(tmp_path / "load.json.manifest.json")
    assert manifest.command == "bench load"
    assert manifest.versions.server == "small"
    assert manifest.counts.rows == 30
    assert manifest.counts.failed == manifest.counts.unscored == 0
    assert manifest.inputs[0].sha256
    assert "Latency by percentile" in page.read_text()
    # Warm rows of one length alone say not what others cost.
    told = command("bench", "capacity", "--rate", "10", "--words", "2", "--from", out)
    assert told.exit_code == 2
    assert "--repeat-share 1" in told.output


def test_the_search_ends_at_the_highest_rate_and_offers_twice_as_much(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    out = tmp_path / "load.json"
    step = ("--duration", "0.3", "--min-calls", "1", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
    rates = ("--start-rate", "40", "--max-rate", "60", "--batch", "2")
    done = command("bench", "load", "--server", server.address, *rates, *step, "--json", out)
    # On a busy machine calls at twice the rate may take more than twice as long, which is what 4 says.
    assert done.exit_code in {0, 4}, done.output
    document = json.loads(out.read_text())
    assert [each["rate_per_s"] for each in document["steps"]] == [40, 60, 120]
    assert document["knee"] == {
        "calls_per_s": 60,
        "answers_per_s": 120,
        "client_limited": False,
        "at_most": True,
        "lost": False,
    }
    assert [check["holds"] for check in document["checks"]][1:] == [True, True, True, None]
    assert "the knee: 60 calls/s, 120 answers/s" in done.output
    assert "no higher rate was tried" in done.output


def test_ctrl_c_keeps_what_was_measured_and_says_that_it_is_partial(server: SmallServer, tmp_path: Path) -> None:
    out = tmp_path / "load.json"
    arguments = ["--rate", "50", "--duration", "60", "--metrics", "exact_match", "--slo-s", "30", "--json", str(out)]
    server.script.requests.clear()
    program = "import sys; from gradewire.cli import main; sys.argv[0] = 'gradewire'; main()"
    run = subprocess.Popen(
        [sys.executable, "-c", program, "bench", "load", "--server", server.address, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline_s = time.monotonic() + 30
        while len(server.script.requests) < 20 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        # As a terminal does: all processes of the group hear it.
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 130, output
    assert "PARTIAL" in output
    assert "Traceback" not in output
    document = json.loads(out.read_text())
    assert document["partial"]
    assert 10 < document["steps"][0]["scored_calls"] < 3000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "1", "--replay", "{rows}"], "--replay says when calls arrive"),
        (["--rate", "1", "--max-rate", "2"], "--max-rate is for the search"),
        (["{rows}", "--words", "4"], "--words is for a --mix"),
        (["--rate", "nan"], "nan is no finite number"),
        (["--duration", "inf"], "inf is no finite number"),
        (["--repeat-share", "nan"], "nan is no finite number"),
        (["--metrics-url", "localhost:9100"], "write http://HOST:PORT/metrics"),
        (["--server", "nowhere"], "write HOST:PORT"),
        (["--metrics", "smiel"], "smiel"),
        (["--replay", "{rows}"], "it holds no arrivals"),
        (["{rows}"], "line 2"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_sent(
    command: Command, tmp_path: Path, arguments: list[str], said: str
) -> None:
    good = {"references": ["two"], "prediction": "two"}
    path = write_rows(tmp_path / "rows.jsonl", [good, good | {"references": [{}]}])
    done = command("bench", "load", *(each.format(rows=path) for each in arguments))
    assert done.exit_code == 2
    assert said in done.output


def test_every_run_sends_answers_of_its_own(command: Command, server: SmallServer, tmp_path: Path) -> None:
    def sent(name: str) -> set[str]:
        server.script.requests.clear()
        out = tmp_path / name
        step = ("--rate", "40", "--duration", "0.2", "--arrivals", "constant", "--metrics", "exact_match", "--quiet")
        done = command("bench", "load", "--server", server.address, *step, "--slo-s", "30", "--json", out)
        assert done.exit_code == 0, done.output
        assert f"seed {json.loads(out.read_text())['parameters']['seed']}" in done.output
        return {item.prediction for request in server.script.requests for item in request.items}

    first, other = sent("first.json"), sent("other.json")
    assert len(first) == 8
    assert first.isdisjoint(other)


def test_a_server_that_goes_away_is_no_knee(command: Command, server: SmallServer, tmp_path: Path) -> None:
    out = tmp_path / "load.json"
    step = ("--duration", "0.3", "--min-calls", "1", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
    server.script.requests.clear()

    def leave() -> None:
        deadline_s = time.monotonic() + 60
        while len(server.script.requests) < 5 and time.monotonic() < deadline_s:
            time.sleep(0.02)
        server.script.faults += [Fault(grpc.StatusCode.UNAVAILABLE)] * 10_000

    leaving = threading.Thread(target=leave)
    leaving.start()
    try:
        done = command("bench", "load", "--server", server.address, "--start-rate", "40", *step, "--json", out)
    finally:
        leaving.join()
        server.script.faults.clear()
    assert done.exit_code == 4, done.output
    assert "could not be reached any more" in done.output
    document = json.loads(out.read_text())
    assert document["knee"]["lost"]
    # The server may have gone in the middle of a step, which misses then.
    assert document["steps"][-1]["outcome"] == "lost"


def test_a_server_that_is_not_there_is_told_in_one_line(command: Command) -> None:
    done = command("bench", "load", "--server", "127.0.0.1:1", "--wait-s", "0.3")
    assert done.exit_code == 3
    assert "127.0.0.1:1" in done.output
