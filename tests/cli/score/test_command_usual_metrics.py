"""`gradewire score` without --metrics: correctness and smile, or smile alone with a remark."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer, read_rows, write_rows
from tests.client.test_options import BOTH, WHY

from gradewire.testing import StubTransport

ROWS = [{"id": "1", "references": ["a"], "prediction": "abc"}, {"id": "2", "references": ["a"], "prediction": "a"}]
REMARK = f"only smile is scored, without correctness: {WHY}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", ROWS)


def stub() -> StubTransport:
    return StubTransport(answer, models=BOTH)


def test_both_are_scored(command: Command, file: Path) -> None:
    done = command("score", file, stub=stub())
    assert done.exit_code == 0
    assert [list(row["scores"]) for row in read_rows(done.stdout)] == [["correctness", "smile"]] * 2
    assert "left out" not in done.stderr
    table = done.stderr.partition("\n2 rows in")[0].splitlines()
    assert any(line.startswith(" correctness ") for line in table)
    assert max(map(len, map(str.rstrip, table))) <= 80


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_an_encoder_without_a_fit_gets_smile_alone_and_a_remark(
    command: Command, file: Path, quiet: tuple[str, ...]
) -> None:
    done = command("score", file, "--model", "unfitted", *quiet, stub=stub())
    assert done.exit_code == 0
    assert [list(row["scores"]) for row in read_rows(done.stdout)] == [["smile"]] * 2
    assert done.stderr.startswith(REMARK)


def test_who_names_correctness_gets_it_or_is_told(command: Command, file: Path) -> None:
    done = command("score", file, "--metrics", "smile,correctness", "--model", "unfitted", stub=stub())
    assert [list(row["scores"]) for row in read_rows(done.stdout)] == [["smile", "correctness"]] * 2
    assert REMARK not in done.stderr


@pytest.mark.parametrize(("model", "labels"), [("fitted", ["correctness", "smile"]), ("unfitted", ["smile"])])
def test_figures_beside_labels_have_the_same_default(
    command: Command, tmp_path: Path, model: str, labels: list[str]
) -> None:
    rows = [row | {"label": number % 2, "question": str(number)} for number, row in enumerate(ROWS * 4)]
    for number, row in enumerate(rows):
        row["id"] = str(number)
        row["prediction"] = "a" * (number + 1)
    labelled, figures = write_rows(tmp_path / "labelled.jsonl", rows), tmp_path / "figures.json"
    done = command("agree", labelled, "--model", model, "--resamples", "100", "--json", figures, stub=stub())
    assert done.exit_code == 0, done.output
    assert list(json.loads(figures.read_text())["metrics"]) == labels


def test_references_are_prepared_for_the_same(command: Command, file: Path) -> None:
    for model, remark in (("fitted", ""), ("unfitted", REMARK)):
        done = command("prepare", file, "--model", model, stub=stub())
        assert done.exit_code == 0, done.output
        assert remark in done.stderr


def test_a_metric_that_chooses_stands_alone(command: Command, tmp_path: Path) -> None:
    first, second = (write_rows(tmp_path / name, ROWS) for name in ("a.jsonl", "b.jsonl"))
    done = command("compare", first, second, "--by", "correctness", "--model", "unfitted", stub=stub())
    assert REMARK not in done.stderr
    assert "correctness" in done.output
