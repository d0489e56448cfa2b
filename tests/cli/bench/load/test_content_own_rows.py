"""`gradewire bench load FILE`: rows of the user's in the place of a mix."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows
from tests.client.small_server import SmallServer

from gradewire_cli.bench.load.calls import poisson

CALLS = len(poisson(50, 0.6, seed=4))


def test_a_file_of_fewer_rows_than_the_run_needs_is_told_and_its_later_rounds_are_repeated(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    rows = [{"references": ["two"], "prediction": f"answer {n}"} for n in range(12)]
    path, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "load.json"
    step = ("--rate", "50", "--duration", "0.6", "--seed", "4", "--slo-s", "20", "--metrics", "exact_match")
    done = command("bench", "load", path, "--server", server.address, *step, "--json", out, "--quiet")
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text())
    assert document["steps"][0]["answers_repeated_share"] == pytest.approx((CALLS - 12) / CALLS)
    assert (document["file_rows"], document["missing_rows"]) == (12, CALLS - 12)
    assert (
        f"too few rows: {path} has 12, but this run needs about {CALLS}. Therefore {(CALLS - 12) / CALLS:.0%} of the "
        in done.output
    )


def test_rows_of_a_file_are_sent_in_another_order_for_another_seed(
    command: Command, server: SmallServer, tmp_path: Path
) -> None:
    rows = [{"references": ["two"], "prediction": f"answer {n}"} for n in range(20)]
    path = write_rows(tmp_path / "rows.jsonl", rows)

    def sent(seed: int) -> list[str]:
        server.script.requests.clear()
        step = ("--rate", "100", "--duration", "0.4", "--slo-s", "20", "--quiet")
        given = ("--server", server.address, "--metrics", "exact_match", "--seed", str(seed))
        done = command("bench", "load", path, *given, *step)
        assert done.exit_code == 0, done.output
        return [item.prediction for request in server.script.requests for item in request.items]

    # Two connections may swap neighbours, also the last new row and the first that is sent again.
    orders = [list(dict.fromkeys(sent(seed))) for seed in (1, 2)]
    assert [len(order) for order in orders] == [20, 20]
    assert orders[0] != orders[1]
