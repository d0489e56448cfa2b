"""The benchmark of the grader: what it was trained on is never read, and the page has the places of its blocks."""

import json
import re
from pathlib import Path

import pytest
from benchmarks.agreement import grader
from benchmarks.common.measurements import with_block

from gradewire_models.catalog.loading import find_model
from gradewire_stats.calibration.labelled_rows import half_of

PAGE = Path(__file__).parents[3] / "benchmarks" / "results" / "grader.md"
ROWS = [{"question": f"what is number {number}?", "label": number % 2} for number in range(200)]


def test_only_the_held_out_split_is_read() -> None:
    kept = grader.held_out(ROWS)
    assert 60 < len(kept) < 140
    assert {half_of(row["question"]) for row in kept} == {"b"}
    assert [row for row in ROWS if row not in kept] == [row for row in ROWS if half_of(row["question"]) == "a"]


@pytest.mark.parametrize("block", ["grader-judge", "grader-half-b"])
def test_no_fit_that_was_made_on_these_rows_is_compared(block: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = page.partition(f"<!-- begin {block} -->")[2].partition(f"<!-- end {block} -->")[0]
    assert "| grader |" in tables
    assert "correctness" not in tables
    assert not [metric for metric in grader.WITHOUT_JUDGE if metric.startswith("correctness")]


def test_tables_are_of_the_grader_that_ships() -> None:
    shipped = find_model("grader-mini")
    assert set(re.findall(r"grader-mini@(\w+)", PAGE.read_text(encoding="utf-8"))) == {shipped.digest[:12]}


def test_two_graders_are_compared_on_rows_that_neither_has_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [{**row, "id": str(place), "references": ["r"], "prediction": "p"} for place, row in enumerate(ROWS)]
    files = {name: tmp_path / name for name in (*grader.FILES.values(), grader.PUPILS)}
    for file in files.values():
        grader.write_rows(file, rows)
    read: list[int] = []

    def scored(data: Path, metrics: tuple[str, ...], base: Path) -> Path:
        lines = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
        read.append(len(lines))
        # The later grader is always right, the earlier one never.
        told = [
            {"scores": {metrics[0]: {"score": 1 - row["label"]}, metrics[1]: {"score": row["label"]}}} for row in lines
        ]
        return grader.write_rows(base.with_suffix(".scores"), told)

    monkeypatch.setattr(grader, "score_rows", scored)
    monkeypatch.setattr("benchmarks.agreement.travel.DRAWS", 10)
    table = grader.compared(tmp_path, tmp_path, grader.GRADERS)
    half = len(grader.held_out(rows))
    # The questions of half a, which graders are trained on, are left out of NQ301, too.
    assert read == [half] * 3
    name = "NQ301, other questions"
    assert f"| {name}, {half} rows | `{grader.GRADERS[0]}` | -1.000 | 0.000 | 0.000 |" in table
    assert f"| {name} | grader | +2.000 [+2.000, +2.000] | +1.000" in table

    logits = grader.write_rows(tmp_path / "logits", [{"id": row["id"], "logit": 4 - 8 * row["label"]} for row in rows])
    table = grader.compared(tmp_path, tmp_path, grader.GRADERS[1:], logits)
    assert f"| {name}, {half} rows | `grader?model=grader-base` | -1.000 | 0.000 | 0.000 |" in table
    assert f"| {name} | grader?model=grader-base | -2.000 [-2.000, -2.000] | -1.000" in table


@pytest.mark.parametrize("block", ["grader-judge", "grader-half-b", "grader-before", "grader-base", "grader-cost"])
def test_the_page_has_a_place_for_each_block(block: str) -> None:
    assert "what it is" in with_block(PAGE.read_text(encoding="utf-8"), block, "what it is")


def test_costs_are_the_least_of_rounds_less_what_starting_costs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rounds = {metric: iter([1.0, 3.0, 2.0]) for metric in grader.COST_ROWS}

    def spent(data: Path, metric: str, results: Path) -> float:
        assert results == tmp_path
        count = len(data.read_text(encoding="utf-8").splitlines())
        # A second to start, and in each round another time for a row.
        return 1.0 if count == 1 else 1.0 + (count - 1) * next(rounds[metric])

    monkeypatch.setattr(grader, "cpu_seconds", spent)
    table = grader.cost_table(ROWS, tmp_path)
    assert "| grader | 1000.0 | 1.00 |" in table
    assert "| lave?value=expected | 1000.0 | 1.00 |" in table
