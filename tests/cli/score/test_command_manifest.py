"""`gradewire score`: the manifest beside its output."""

import hashlib
import json
from pathlib import Path

from tests.cli.conftest import Command, answer, write_rows
from tests.cli.score.test_command_costs import PRICES, ROWS, PaidStub

from gradewire.errors import AccessDenied
from gradewire.testing import StubTransport
from gradewire_cli.results.manifest import read_manifest
from gradewire_cli.results.manifest_entries import file_digest, manifest_path
from gradewire_proto.v1 import scoring_pb2


def test_a_manifest_says_what_the_summary_and_the_output_say(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", [*ROWS, {"prediction": "x"}]), tmp_path / "out.jsonl"
    options = ("--metrics", "smile", "--summary-json", tmp_path / "s.json", "--fail-on", "never")
    assert command("score", file, "--out", out, *options).exit_code == 0
    found, summary = read_manifest(manifest_path(out)), json.loads((tmp_path / "s.json").read_text())
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert found.metrics == {"smile": rows[0]["scores"]["smile"]["line"]}
    assert (found.counts.rows, found.counts.scored_now, found.counts.failed) == (5, 5, 1)
    assert found.counts.statuses == {"smile": {"OK": 4, "INVALID_INPUT": 1}}
    assert found.inputs[0].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert found.output is not None
    assert (found.output.path, found.output.bytes) == (str(out), out.stat().st_size)
    assert found.output.sha256 == hashlib.sha256(out.read_bytes()).hexdigest()
    assert (found.command, found.place, found.versions.server) == ("score", summary["run"]["place"], "stub")
    assert found.reproduce == summary["run"]["command"]
    assert found.cost is None


def test_the_manifest_of_a_resumed_run_counts_all_rows(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("score", file, "--out", out, "--metrics", "smile").exit_code == 0
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:3]))
    assert command("score", file, "--out", out, "--metrics", "smile", "--resume").exit_code == 0
    found = read_manifest(manifest_path(out))
    assert (found.counts.rows, found.counts.scored_now) == (4, 1)
    assert found.output == file_digest(out)


def test_a_table_has_its_digest_and_rows_on_standard_output_have_none(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.csv"
    assert command("score", file, "--out", out, "--metrics", "smile").exit_code == 0
    assert read_manifest(manifest_path(out)).output == file_digest(out)
    assert command("score", file, "--metrics", "smile", "--manifest", tmp_path / "m.json").exit_code == 0
    assert read_manifest(tmp_path / "m.json").output is None


def gone(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    """A server that refuses after the first question about the metrics."""
    if request.items:
        raise AccessDenied("the token is not valid any more")
    return answer(request)


def test_a_refused_run_leaves_the_manifest_and_one_that_breaks_removes_it(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("score", file, "--out", out, "--metrics", "smile").exit_code == 0
    before = manifest_path(out).read_bytes()
    assert command("score", file, "--out", out, "--metrics", "smile").exit_code == 2
    assert command("score", file, "--out", out, "--metrics", "bleu", "--resume").exit_code == 2
    assert manifest_path(out).read_bytes() == before

    done = command("score", file, "--out", out, "--metrics", "smile", "--overwrite", stub=StubTransport(gone))
    assert done.exit_code == 2, done.output
    assert not manifest_path(out).exists()


def test_tokens_of_a_paid_judge_are_a_cost(command: Command, tmp_path: Path) -> None:
    file, out, stub = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl", PaidStub()
    assert command("score", file, "--out", out, "--metrics", "lave", *PRICES, stub=stub).exit_code == 0
    cost = read_manifest(manifest_path(out)).cost
    assert cost is not None
    told = [json.loads(line)["scores"]["lave"] for line in out.read_text().splitlines()]
    read = sum(each["prompt_tokens"] for each in told)
    written = sum(each.get("generated_tokens", 0) for each in told)
    assert (cost.read_tokens, cost.written_tokens, cost.read_price, cost.written_price) == (read, written, 2, 10)
    assert cost.price == (read * 2 + written * 10) / 1e6


def test_rows_on_standard_output_have_a_manifest_where_one_is_asked_for(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    done = command("score", file, "--metrics", "smile", "--manifest", tmp_path / "m.json")
    assert done.exit_code == 0
    assert read_manifest(tmp_path / "m.json").counts.rows == 4
    refused = command("score", file, "--metrics", "smile", "--manifest", file)
    assert (refused.exit_code, "--manifest: " in refused.stderr) == (2, True)
