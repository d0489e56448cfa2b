"""The tables of VQA's annotators: what is read of the scores, which rows a part has, and how lines are written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.agreement import vqa_annotators
from benchmarks.agreement.correctness import VOTES
from benchmarks.agreement.correctness_rows import COLUMNS, ScoredRows
from benchmarks.agreement.vqa_annotators import (
    FITTED,
    RESULTS,
    Scores,
    agreement_table,
    fit_table,
    rows_of,
    rows_table,
    sample_of,
    type_table,
)

from gradewire_server.metrics.correctness.features import INPUT_KIND, VOTE_FEATURES
from gradewire_stats.calibration.labelled_rows import FittedFeature, LabelledFeatures, half_of

KINDS = ("agreement", "alternative", "doubted", "other_question")
LABELS = {"agreement": 2 / 3, "alternative": 1.0, "doubted": 0.0, "other_question": 0.0}
ROWS: list[dict[str, Any]] = [
    {
        "id": f"{number}",
        "question": f"What is {number // 4}?",
        "evidence": kind,
        "label": LABELS[kind],
        "agreement": LABELS[kind] if kind == "agreement" else 0.0,
        "answer_type": ("other", "number", "yes/no")[number // 4 % 3],
    }
    for number, kind in enumerate(KINDS * 30)
]
RIGHT = np.array([row["label"] for row in ROWS]) >= 0.5


def scores(**found: Any) -> Scores:
    values = {name: np.asarray(each, np.float64) for name, each in found.items()}
    return Scores(ROWS, values, {name: (each >= 0.5).astype(np.float64) for name, each in values.items()})


def test_scores_are_named_in_order_and_failures_are_no_numbers(tmp_path: Path) -> None:
    lines = [
        {"id": "0", "scores": {"lave": {"status": "OK", "score": 0.5, "correct": True}}},
        {"id": "1", "scores": {"lave": {"status": "UNAVAILABLE"}}},
    ]
    files = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    for file in files:
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = Scores.read(ROWS[:2], ["lave", "lave?shots=0"], *files)
    assert list(found.scores) == ["lave", "lave?shots=0"]
    assert found.scores["lave?shots=0"].tolist() == pytest.approx([0.5, np.nan], nan_ok=True)
    assert found.verdicts["lave"].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    with pytest.raises(ValueError, match="has other rows"):
        Scores.read(ROWS[1:3], ["lave"], files[0])
    with pytest.raises(ValueError, match="argument 2 is longer"):
        Scores.read(ROWS[:2], ["lave"], *files)


def test_a_question_is_in_one_half_with_all_its_labelled_rows(tmp_path: Path) -> None:
    texts = [f"What is on shelf {number % 15}?" for number in range(20)]  # five texts are of two questions
    given = ("red", "red", "red", "sky", "sea")
    answers = [{"answer": each, "answer_confidence": "no" if each == "sea" else "maybe"} for each in given]
    questions = [{"question_id": number, "image_id": 1, "question": text} for number, text in enumerate(texts)]
    annotations = [
        {"question_id": number, "image_id": 1, "answer_type": "other", "question_type": "what", "answers": answers}
        for number in range(20)
    ]
    (tmp_path / VOTES).mkdir()
    for name, entries in (("questions", questions), ("annotations", annotations)):
        (tmp_path / VOTES / f"{name}.json").write_text(json.dumps({name: entries}))
    found = {half: rows_of(tmp_path, half) for half in ("a", "b")}
    for half, rows in found.items():
        assert {half_of(row["question"]) for row in rows} == {half}
    # "red" and the doubted "sea" have labels, "sky" has none.
    assert sorted(row["prediction"] for rows in found.values() for row in rows) == ["red"] * 20 + ["sea"] * 20


def test_parts_of_the_rows() -> None:
    found = scores(smile=RIGHT, sbert=np.arange(len(ROWS)))
    alone = found.of_type("other").alone()
    assert {row["evidence"] for row in alone.rows} == {"alternative", "doubted", "other_question"}
    assert (len(alone.rows), len(alone.scores["sbert"])) == (30, 30)
    own = found.of_type("other").own_alone()
    assert [row["id"] for row in own.rows] == [
        row["id"] for row in alone.rows if row["evidence"] in {"alternative", "doubted"}
    ]
    counted = found.by_agreement()
    assert {row["label"] for row in counted.rows} == {2 / 3, 0.0}
    assert len(counted.rows) == 90
    assert found.of_rows(ROWS[5:7]).scores["sbert"].tolist() == [5, 6]
    both = found.only(["smile"]).with_more(found.only(["sbert", "sbert"]))
    assert list(both.scores) == ["smile", "sbert"]
    with pytest.raises(ValueError, match="of other rows"):
        found.with_more(alone)


def test_the_best_cut_lies_between_right_and_wrong_scores() -> None:
    found = scores(good=np.where(RIGHT, 0.9, 0.3), blind=np.zeros(len(ROWS)))
    assert found.best_cut("good") == pytest.approx(0.6)
    assert found.accuracy_at("good", 0.6) == 1
    assert found.accuracy_at("blind", found.best_cut("blind")) == 0.5
    failed = scores(good=np.where(RIGHT, np.nan, 0.3))
    assert failed.accuracy_at("good", 0.2) == 0


def test_a_sample_is_the_same_each_time_and_other_than_the_other_halfs() -> None:
    first = sample_of(ROWS, "a", 20)
    assert first == sample_of(ROWS, "a", 20) != sample_of(ROWS, "b", 20)
    assert [int(row["id"]) for row in first] == sorted(int(row["id"]) for row in first)
    assert sample_of(ROWS[:3], "a", 20) == ROWS[:3]


def test_tables_have_a_line_for_each_metric() -> None:
    found = scores(**{FITTED: np.where(RIGHT, 0.8, 0.2), "smile": np.arange(len(ROWS)) / len(ROWS)})
    lines = agreement_table(found, found).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith(f"| `{FITTED}` | 1.000 [1.000, 1.000] |")
    # Right answers get .8 and wrong ones .2: off by .2 in 14 bins, and by 0 in the bin that has half of each.
    assert "| 0.187 | 1.000 at 0.50 |" in lines[2]
    assert lines[3].count("[+") == 2, lines[3]
    lines = type_table(found).splitlines()
    assert "other (40): AUC" in lines[0]
    assert len(lines) == 4
    counted = rows_table({"a": ROWS[:60], "b": ROWS[60:]}).splitlines()
    assert counted[2] == "| `agreement` | 10 | 10 | 10 | 15 | 15 | 30 |"


def test_cross_validation_reads_the_columns_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fits themselves take minutes, so each is replaced by its last column."""
    votes = [FittedFeature(each.name, each.monotone, each.width) for each in VOTE_FEATURES]
    columns = (*COLUMNS, *votes)
    values = np.zeros((len(ROWS), len(columns)))
    values[:, len(COLUMNS) - 1] = ~RIGHT
    values[:, -1] = RIGHT
    rows = [{**row, "label": int(right)} for row, right in zip(ROWS, RIGHT, strict=True)]
    scored = ScoredRows(rows, "x", columns, values, np.zeros((len(rows), len(INPUT_KIND))), values[:, 0], "")
    read: list[tuple[str, ...]] = []

    def last_column(given: LabelledFeatures) -> Any:
        read.append(tuple(each.name for each in given.features))
        return given.values[:, -1]

    monkeypatch.setattr(vqa_annotators, "held_out_probabilities", last_column)
    lines = fit_table(scored, np.where(RIGHT, 0.9, 0.1)).splitlines()
    assert [len(names) for names in read] == [len(COLUMNS), len(COLUMNS) + 2]
    assert read[1][-2:] == ("votes", "votes_top")
    assert [float(line.split("|")[2]) for line in lines[2:]] == [1.0, 0.0, 1.0]


def test_scores_are_kept_where_git_ignores_them() -> None:
    assert RESULTS.parent == vqa_annotators.DOCUMENT.parent
    assert RESULTS.suffix == ""
