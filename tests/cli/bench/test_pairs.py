import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, figures_of, write_rows

from gradewire_cli.results.manifest import read_manifest

# Five votes each, the majority always A; the evaluator's choice and who reproduces it follow from the columns.
VOTES = {"5/5": ["A"] * 5, "4/5": ["A"] * 4 + ["B"], "3/5": ["A", "B", "A", "B", "A"]}


def pairs_of(*, choice: str = "A", **columns: Any) -> list[dict[str, Any]]:
    return [
        {
            "instruction": f"instruction {stratum} {index}",
            "response_a": "a longer answer",
            "response_b": "an answer",
            "references": ["answer"],
            "votes": votes,
            "choice": choice,
            **columns,
        }
        for stratum, votes in VOTES.items()
        for index in range(10)
    ]


def told(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    """Strata by evaluator."""
    report = figures_of(partial(command, "bench", "pairs"), tmp_path, rows, *options)["report"]
    return {
        found["evaluator"]: {stratum["stratum"]: stratum for stratum in found["strata"]}
        for found in report["evaluators"]
    }


def test_strata_and_baselines(command: Command, tmp_path: Path) -> None:
    rows = pairs_of()
    for row in rows[10:15]:
        row["choice"] = "B"
    found = told(command, tmp_path, rows)
    assert list(found) == ["choice", "length", "random"]
    shares = {stratum: found["choice"][stratum]["reproduced"]["value"] for stratum in ("5/5", "4/5", "3/5")}
    assert shares == {"5/5": 1.0, "4/5": 0.5, "3/5": 1.0}
    assert found["choice"]["5/5"]["pairs"] == 10
    assert found["length"]["all"]["reproduced"]["value"] == 1.0
    assert 0 < found["random"]["all"]["reproduced"]["value"] < 1


def test_failed_choices_are_counted_and_change_nothing(command: Command, tmp_path: Path) -> None:
    rows = pairs_of()
    rows[3]["choice"] = "B"
    before = told(command, tmp_path, rows)["choice"]
    words = [None, "", "unknown", "NaN", math.nan, "error", "null"]
    without = [{**row, "choice": words[place % len(words)]} for place, row in enumerate(pairs_of()[:13])]
    after = told(command, tmp_path, [*rows, *without])["choice"]
    for stratum, cell in before.items():
        assert after[stratum]["reproduced"]["value"] == cell["reproduced"]["value"]
    assert (before["all"]["failed"], after["all"]["failed"]) == (0, 13)


def test_pairs_without_a_choice_are_told_with_their_places(command: Command, tmp_path: Path) -> None:
    rows, figures = pairs_of(), tmp_path / "figures.json"
    rows[4]["choice"], rows[7]["choice"], rows[8]["choice"] = None, "unknown", "tie"
    file = write_rows(tmp_path / "pairs.jsonl", rows)
    done = command("bench", "pairs", file, "--resamples", "100", "--json", figures)
    assert "choice: left out 2 pairs without a choice (for example line 5, line 8)" in done.output
    assert json.loads(figures.read_text())["without_choice"] == {"choice": ["line 5", "line 8"]}


def test_several_evaluators_by_mapping_or_by_column(command: Command, tmp_path: Path) -> None:
    rows = [
        {**row, "choice": None, "choices": {"good": "a", "bad": "B"}, "mine": "A", "theirs": "tie"}
        for row in pairs_of()
    ]
    found = told(command, tmp_path, rows)
    assert (found["good"]["all"]["reproduced"]["value"], found["bad"]["all"]["reproduced"]["value"]) == (1.0, 0.0)
    found = told(command, tmp_path, rows, "--choice", "judge=mine", "--choice", "other=theirs")
    assert found["judge"]["all"]["reproduced"]["value"] == 1.0
    assert found["other"]["all"]["ties"] == 30
    assert "good" not in found


def test_metrics_choose_the_answer_with_the_higher_score(command: Command, tmp_path: Path) -> None:
    # The stub of the tests scores by length, so both metrics take the longer answer, A.
    found = told(command, tmp_path, pairs_of(choice="B"), "--metrics", "rouge_l,meteor")
    assert found["rouge_l"]["all"]["reproduced"]["value"] == 1.0
    assert found["meteor"]["all"]["reproduced"]["value"] == 1.0
    assert found["choice"]["all"]["reproduced"]["value"] == 0.0
    manifest = read_manifest(tmp_path / "figures.json.manifest.json")
    answers = 2 * len(pairs_of())
    assert manifest.counts.statuses == {"rouge_l": {"OK": answers}, "meteor": {"OK": answers}}
    assert (manifest.command, list(manifest.metrics)) == ("bench pairs", ["rouge_l", "meteor"])


def test_votes_as_counts_and_in_csv(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text('who,votes,judge\n1,"{""A"": 4, ""B"": 1}",A\n2,"A,A,A,A,A",B\n3,"[""B"",""B"",""tie""]",B\n')
    done = command("bench", "pairs", file, "--choice", "judge=judge", "--resamples", "100")
    assert done.exit_code == 0, done.output
    row = next(line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["judge"])
    assert {"1.000", "0.000"} <= set(row), "4/5 and 5/5"
    assert "length" not in done.stdout, "there are no answers whose length counts"


def test_pairs_that_cannot_be_read_are_counted(command: Command, tmp_path: Path) -> None:
    rows = [*pairs_of(), {"votes": ["C"], "choice": "A"}, {"votes": None}, {"votes": {"A": -1}}, {"votes": ["A", "B"]}]
    file = write_rows(tmp_path / "pairs.jsonl", rows)
    done = command("bench", "pairs", file, "--resamples", "100")
    assert 'left out 1 pair: a vote or choice is not "A", "B" or "tie" (first at line 31)' in done.stderr
    assert "left out 1 pair: no votes (first at line 32)" in done.stderr
    assert "left out 1 pair: a count of votes is invalid (first at line 33)" in done.stderr
    assert "skipped 1 pairs: no majority" in done.stderr


@pytest.mark.parametrize(
    ("rows", "arguments", "said"),
    [
        ([{"a": "x"}], [], "no pair has votes (columns votes, labels, annotations)"),
        ([], [], "pairs.jsonl has no rows"),
        (pairs_of(choice=None, choices={"judge": None}), [], "no pair has a choice by judge. Name another"),
        (pairs_of(references=None), ["--metrics", "rouge_l"], "line 1 lacks an answer or references"),
        (pairs_of(), ["--metrics", "bertscore?idf=request"], "bertscore with corpus=request counts the rows of one"),
        (pairs_of(), ["--choice", "judge"], "--choice judge: write NAME=COLUMN"),
        (pairs_of(), ["--choice", "random=choice"], "random"),
        (pairs_of(), ["--map", "label=x"], "where FIELD is one of votes, choice, response_a"),
    ],
)
def test_wrong_pairs_say_the_way_out(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], arguments: list[str], said: str
) -> None:
    done = command("bench", "pairs", write_rows(tmp_path / "pairs.jsonl", rows), *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("columns", "questions"),
    [
        (["image"], 12),
        (["image_id"], 12),
        (["question_id"], 12),
        (["reference"], 12),
        ([], 1),
        (["image", "instruction"], 12),
    ],
)
def test_the_same_words_about_another_image_are_another_instruction(
    command: Command, tmp_path: Path, columns: list[str], questions: int
) -> None:
    rows = [
        {"instruction": "What is this?", "votes": ["A"] * 5, "choice": "AB"[index // 2 % 2]}
        | {column: f"{column} {index // 2}" for column in columns}
        for index in range(24)
    ]
    reproduced = told(command, tmp_path, rows)["choice"]["all"]["reproduced"]
    assert reproduced["value"] == pytest.approx(0.5)
    # One instruction leaves nothing to draw from.
    assert (reproduced["low"] is None) == (questions == 1)


def test_the_draws_behind_the_intervals_are_told(command: Command, tmp_path: Path) -> None:
    rows = pairs_of()[:14]
    file, page = write_rows(tmp_path / "pairs.jsonl", rows), tmp_path / "table.md"
    done = command("bench", "pairs", file, "--resamples", "150", "--markdown", page)
    for text in (done.stdout, page.read_text()):
        assert "intervals: draws of whole questions, 150 for reproduced" in text
        # Ten pairs of 5/5, but four of 4/5.
        assert "to tell questions apart): 4/5" in text
        assert "reproduced of 5/5" not in text
