"""`gradewire bench load` against a real server on a socket."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows
from tests.client.small_server import SmallServer

from gradewire_cli.bench.load.calls import poisson
from gradewire_cli.bench.load.content import MIXES
from gradewire_cli.results.manifest import read_manifest

CALLS = len(poisson(50, 0.6, seed=4))


def test_one_rate_is_measured_and_written_as_table_json_page_and_manifest(
    command: Command, server: SmallServer, metrics_url: str, tmp_path: Path
) -> None:
    rows = [{"question": "?", "references": ["two", "2"], "prediction": f"answer {n}"} for n in range(50)]
    path, out, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "load.json", tmp_path / "load.html"
    server.script.requests.clear()
    at = ("--server", server.address, "--metrics-url", metrics_url)
    step = ("--rate", "50", "--duration", "0.6", "--seed", "4", "--slo-s", "20", "--metrics", "exact_match")
    done = command("bench", "load", path, *at, *step, "--json", out, "--html", page)
    assert done.exit_code == 0, done.output
    assert "50        keeps up" in done.output
    document = json.loads(out.read_text())
    (measured,) = document["steps"]
    assert measured["calls"] == measured["scored_calls"] == CALLS
    assert measured["codes"] == {"OK": CALLS}
    assert measured["server_cpu_s_per_item"] == pytest.approx(1 / CALLS)
    assert measured["answers_repeated_share"] == 0
    assert len({item.prediction for request in server.script.requests for item in request.items}) == CALLS
    assert "too few rows" not in done.output
    assert measured["latency_s"]["p50"] <= measured["latency_s"]["p99"] <= measured["latency_s"]["max"]
    assert document["knee"] is None
    assert document["parameters"]["rate"] == 50
    assert "mix" not in document["parameters"]
    manifest = read_manifest(tmp_path / "load.json.manifest.json")
    assert manifest.command == "bench load"
    assert manifest.versions.server == "small"
    assert manifest.counts.rows == CALLS
    assert manifest.counts.failed == manifest.counts.unscored == 0
    assert manifest.inputs[0].sha256
    shown = page.read_text(encoding="utf-8")
    assert "50 calls/s: p99" in shown
    assert shown.count("<tr>") == 2


def test_the_search_ends_at_the_highest_rate_and_offers_twice_as_much(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    out = tmp_path / "load.json"
    step = ("--duration", "0.3", "--slo-s", "30", "--metrics", "exact_match", "--quiet")
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "1", "--max-rate", "2"], "--max-rate is only for the search"),
        (["--rate", "nan"], "nan is not a finite number"),
        (["--duration", "inf"], "inf is not a finite number"),
        (["--metrics-url", "localhost:9100"], "Use http://HOST:PORT/metrics"),
        (["--server", "nowhere"], "write HOST:PORT"),
        (["--metrics", "smiel"], "smiel"),
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
        step = ("--rate", "40", "--duration", "0.5", "--metrics", "exact_match", "--quiet")
        done = command("bench", "load", "--server", server.address, *step, "--slo-s", "30", "--json", out)
        assert done.exit_code == 0, done.output
        assert f"seed {json.loads(out.read_text())['parameters']['seed']}" in done.output
        return {item.prediction for request in server.script.requests for item in request.items}

    first, other = sent("first.json"), sent("other.json")
    assert len(first) > 5
    assert first.isdisjoint(other)


def test_what_a_mix_repeats_is_sent_once_before_anything_is_measured(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    server.script.requests.clear()
    out = tmp_path / "load.json"
    step = ("--rate", "50", "--duration", "0.6", "--slo-s", "20", "--metrics", "exact_match", "--quiet")
    done = command("bench", "load", "--mix", "repeats", "--server", server.address, *step, "--json", out)
    assert done.exit_code == 0, done.output
    (measured,) = json.loads(out.read_text())["steps"]
    sent = [item.prediction for request in server.script.requests for item in request.items]
    pool = {item.prediction for item in MIXES["repeats"].pool()}
    before = sent[: len(sent) - measured["calls"]]
    assert len(before) == 500
    assert set(before) == pool
    share = sum(prediction in pool for prediction in sent[500:]) / measured["calls"]
    assert measured["answers_repeated_share"] == share > 0
