"""`gradewire bench load FILE`: rows of the user's in the place of a mix."""

import json
from pathlib import Path

import pytest
from tests.client.cli.conftest import Command, write_rows
from tests.client.small_server import SmallServer


def test_a_file_of_fewer_rows_than_the_run_needs_is_told_and_its_later_rounds_are_repeated(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    rows = [{"references": ["two"], "prediction": f"answer {n}"} for n in range(12)]
    path, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "load.json"
    step = ("--rate", "50", "--duration", "0.6", "--arrivals", "constant", "--slo-s", "20", "--metrics", "exact_match")
    done = command("bench", "load", path, "--server", server.address, *step, "--json", out, "--quiet")
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text())
    assert document["steps"][0]["answers_repeated_share"] == pytest.approx(18 / 30)
    assert (document["file_rows"], document["missing_rows"]) == (12, 18)
    assert f"too few rows: {path} has 12 and this run needs about 30, so 60% of the answers" in done.output


def test_a_share_of_a_files_rows_is_repeated_where_that_is_asked_for(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    rows = [{"references": ["two"], "prediction": f"answer {n}"} for n in range(20)]
    path, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "load.json"
    server.script.requests.clear()
    step = ("--rate", "50", "--duration", "0.6", "--arrivals", "constant", "--slo-s", "20", "--metrics", "exact_match")
    at = ("--server", server.address, "--repeat-share", "1", "--json", out, "--quiet")
    done = command("bench", "load", path, *at, *step)
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text())
    assert document["steps"][0]["answers_repeated_share"] == 1
    assert document["missing_rows"] == 0
    assert document["parameters"]["repeat_share"] == 1
    sent = [item.prediction for request in server.script.requests for item in request.items]
    assert sorted(sent[:20]) == sorted(row["prediction"] for row in rows), "each once, before anything is measured"
    assert len(sent) == 50


def test_rows_of_a_file_are_sent_in_another_order_for_another_seed(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    rows = [{"references": ["two"], "prediction": f"answer {n}"} for n in range(20)]
    path = write_rows(tmp_path / "rows.jsonl", rows)

    def sent(seed: int) -> list[str]:
        server.script.requests.clear()
        step = ("--rate", "100", "--duration", "0.2", "--arrivals", "constant", "--slo-s", "20", "--quiet")
        given = ("--server", server.address, "--metrics", "exact_match", "--connections", "1", "--seed", str(seed))
        done = command("bench", "load", path, *given, *step)
        assert done.exit_code == 0, done.output
        return [item.prediction for request in server.script.requests for item in request.items]

    orders = [sent(1), sent(2)]
    assert [sorted(order) for order in orders] == [sorted(row["prediction"] for row in rows)] * 2
    assert orders[0] != orders[1]
