import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from benchmarks.judges import agreement as judge_agreement
from benchmarks.judges.agreement import (
    BESIDE,
    BINARY,
    BINARY_ROWS,
    DIRECT,
    EVERY,
    MODELS,
    REASONED,
    ROWS_OF_A_CELL,
    development_rows,
    test_rows,
)
from benchmarks.judges.binary import binary_table, wilson

from gradewire.metrics.choice import MetricDefaults, choose_metrics

test_rows.__test__ = False  # type: ignore[attr-defined]  # a function of the program, no test
CELLS = [(dataset, model) for dataset in ("nq", "tq") for model in MODELS]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """300 questions of each data set, answered by three models, some rightly."""
    return [
        {"id": f"{dataset}-{n}-{model}", "question": f"q{n}", "dataset": dataset, "model": model, "label": n % 3 % 2}
        for dataset in ("tq", "nq")
        for n in range(300)
        for model in MODELS
    ]


def test_every_cell_gives_as_many_rows_whatever_their_labels(rows: list[dict[str, Any]]) -> None:
    chosen = test_rows(rows)
    assert Counter((row["dataset"], row["model"]) for row in chosen) == dict.fromkeys(CELLS, ROWS_OF_A_CELL)
    assert len({row["id"] for row in chosen}) == len(chosen)
    flipped = [{**row, "label": 1 - row["label"]} for row in rows]
    assert [row["id"] for row in test_rows(flipped)] == [row["id"] for row in chosen]
    # Every sixth row is judged with a reason: all cells are among them.
    assert {(row["dataset"], row["model"]) for row in chosen[::EVERY]} == set(CELLS)


def test_development_rows_share_no_question_with_the_test_rows(rows: list[dict[str, Any]]) -> None:
    development = development_rows(rows, each=5)
    assert Counter((row["dataset"], row["model"], row["label"]) for row in development) == {
        (*cell, label): 5 for cell in CELLS for label in (0, 1)
    }
    reported = {(row["dataset"], row["question"]) for row in test_rows(rows)}
    assert reported.isdisjoint((row["dataset"], row["question"]) for row in development)


def test_fewer_development_rows_are_the_first_of_more(rows: list[dict[str, Any]]) -> None:
    few, many = development_rows(rows, each=2), development_rows(rows, each=5)
    assert {row["id"] for row in few} <= {row["id"] for row in many}


@pytest.mark.parametrize(
    "groups", [(*BESIDE, *DIRECT), (*BESIDE, (*chain.from_iterable(DIRECT), *REASONED)), (BINARY,)]
)
def test_metrics_are_ones_that_the_command_knows_each_under_a_name_of_its_own(
    groups: tuple[tuple[str, ...], ...],
) -> None:
    labels = [label for group in groups for label in choose_metrics(",".join(group), MetricDefaults()).labels]
    assert len(set(labels)) == len(labels) == sum(map(len, groups))


def test_an_interval_of_a_share_is_wilsons() -> None:
    # 7 of 10 by hand: z² = 3.841459; middle (0.7 + 0.192073) / 1.384146 = 0.644493; half width
    # 1.959964 / 1.384146 · sqrt(0.7 · 0.3 / 10 + 3.841459 / 400) = 1.416010 · 0.174939 = 0.247715.
    assert wilson(7, 10) == pytest.approx((0.396778, 0.892208), abs=2e-6)
    assert wilson(10, 10)[1] == pytest.approx(1)


def test_a_failed_answer_counts_as_wrong_whatever_its_label(tmp_path: Path) -> None:
    truth = [("a", 1, "plain"), ("b", 0, "plain"), ("c", 0, "hedged")]
    said = {"a": {"score": 1.0, "correct": True}, "b": {"score": 1.0, "correct": True}, "c": {"status": "TIMEOUT"}}
    _write(tmp_path / "rows", [{"id": name, "label": label, "dataset": kind} for name, label, kind in truth])
    _write(tmp_path / "scores", [{"id": name, "scores": {"judge_verdict": value}} for name, value in said.items()])
    last = binary_table(tmp_path / "rows", tmp_path / "scores", ["judge_verdict"]).splitlines()[-1]
    assert last == "| judge_verdict | 0.333 [0.061, 0.792] | 1 of 2 | 0 of 1 |"


def test_our_yes_no_questions_are_enough_and_no_answer_of_people_is_divided_evenly() -> None:
    found = [json.loads(line) for line in BINARY_ROWS.read_text("utf-8").splitlines()]
    assert len(found) >= 60
    assert len({row["id"] for row in found}) == len(found)
    for row in found:
        votes = Counter(row["references"])
        assert set(votes) <= {"yes", "no"}
        assert votes["yes"] != votes["no"]
        # The rule takes the first of the most frequent as what people say; it is written first.
        assert row["references"][0] == max(votes, key=votes.__getitem__)
    assert 0.3 < sum(row["label"] for row in found) / len(found) < 0.7


def test_the_document_has_a_block_for_each_table() -> None:
    document = (judge_agreement.ROOT / "benchmarks" / "results" / "judge.md").read_text("utf-8")
    for name in ("judge-600", "judge-100", "judge-synthetic", "judge-binary"):
        assert document.count(f"<!-- begin {name} -->\n") == 1


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
