"""Items of `gradewire bench ave`: what is scored for each part, here or elsewhere, and what becomes of failures."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.cli.bench.samples import benched, check, expected, samples, score, stub
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2
from gradewire_stats.calibration.labelled_rows import half_of


def test_items_are_scored_elsewhere_and_read_back_whatever_is_chosen(command: Command, tmp_path: Path) -> None:
    rows = samples(40)
    file, items = write_rows(tmp_path / "ave.jsonl", rows), tmp_path / "items.jsonl"
    assert command("bench", "ave", file, "--items", items, "--half", "a").exit_code == 0
    written = read_rows(items.read_text())
    assert len(written) == 40 * 5
    assert [item["part"] for item in written[:5]] == [1, 2, 2, 2, 3]
    assert written[3] == {
        "id": "s0/2.3",
        "question": "question 0",
        "references": ["a"],
        "prediction": rows[0]["descriptions"][2],
        "label": rows[0]["grade"],
        "dataset": "okvqa",
        "part": 2,
        "half": half_of("question 0"),
        "sample": 0,
        "chosen": written[3]["chosen"],
    }
    scores = tmp_path / "scores.jsonl"
    assert command("score", items, "--metrics", "sbert", "--out", scores, "--quiet", stub=stub()).exit_code == 0
    for half in ("a", "b"):
        own = [row for row in rows if half_of(row["question"]) == half]
        document = benched(command, tmp_path, rows, "--half", half, "--scores", str(scores))
        check(document["evaluators"]["sbert"], own)


def test_failed_items_enter_no_figure_and_are_counted(command: Command, tmp_path: Path) -> None:
    rows = samples()
    rows[0]["prediction"] = "zzz"
    rows[1]["descriptions"] = ["zz", rows[1]["descriptions"][1], "z"]
    rows[2]["descriptions"] = ["z", "z", "z"]
    found = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert found["failed"] == [1, 1, 1]
    assert found["samples"] == 58
    scores, grades = expected(rows), np.array([row["grade"] for row in rows])
    scores[1, 1] = (len(rows[1]["descriptions"][1]) + 1) / 128
    kept = np.arange(60) != 2
    assert found["parts"][1]["value"] == pytest.approx(stats.spearmanr(scores[kept, 1], grades[kept]).statistic)
    assert found["parts"][0]["value"] == pytest.approx(stats.spearmanr(scores[1:, 0], grades[1:]).statistic)
    done = command("bench", "ave", tmp_path / "rows.jsonl", "--metrics", "sbert", "--resamples", "100", stub=stub())
    assert "sbert: sbert/1" in done.stdout


def test_no_output_replaces_the_input(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", samples(5))
    for option in ("--json", "--markdown", "--items"):
        assert command("bench", "ave", file, option, file).exit_code == 2
    assert len(read_rows(file.read_text())) == 5


def test_scores_of_other_items_are_refused(command: Command, tmp_path: Path) -> None:
    file, items = write_rows(tmp_path / "a.jsonl", samples(5)), tmp_path / "items.jsonl"
    command("bench", "ave", file, "--items", items)
    scores = tmp_path / "scores.jsonl"
    command("score", items, "--metrics", "sbert", "--out", scores, "--quiet", stub=stub())
    other = write_rows(tmp_path / "b.jsonl", samples(5, references=["c"]))
    done = command("bench", "ave", other, "--scores", scores)
    assert done.exit_code == 2
    assert "was made from a different row" in done.stderr


def test_the_request_holds_the_parts(command: Command, tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        seen.extend((item.references[0], item.prediction) for item in request.items)
        return echo_scores(request, score=score)

    (row,) = samples(1)
    file = write_rows(tmp_path / "rows.jsonl", [row])
    done = command("bench", "ave", file, "--metrics", "sbert", "--quiet", stub=StubTransport(answer))
    assert done.exit_code == 0, done.output
    shifted = (row["shifted_references"][0], row["prediction"])
    assert seen == [("a", row["prediction"]), *(("a", text) for text in row["descriptions"]), shifted]
