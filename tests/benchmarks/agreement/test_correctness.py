import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.agreement.correctness_rows import COLUMNS, WITH_GRADER, ScoredRows, without_questions
from benchmarks.agreement.correctness_tables import GROUPS, agreement_table, mean_pearson

from gradewire_server.metrics.correctness.features import INPUT_KIND
from gradewire_stats.calibration.labelled_rows import half_of

QUESTIONS = [f"Question {number}?" for number in range(12)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Twelve questions, answered by two models, and what the command writes for them."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"{number}-{model}",
            "question": question,
            "references": ["r"],
            "prediction": "p",
            "label": (number + place) % 2,
            "dataset": "nq",
            "model": model,
        }
        for number, question in enumerate(QUESTIONS)
        for place, model in enumerate(("gpt35", "gpt4"))
    ]
    scored = [
        {
            "id": row["id"],
            "scores": {
                "correctness": {
                    "status": "OK",
                    "smile": 0.25 + row["label"] / 2,
                    "features": {"recall": 0.5} | dict.fromkeys(INPUT_KIND, 0.0),
                    "line": "correctness/2",
                },
            },
        }
        for row in rows
    ]
    return _written(tmp_path / "rows.jsonl", rows), _written(tmp_path / "scores.jsonl", scored)


def _written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_every_feature_is_in_one_group() -> None:
    assert sorted(chain.from_iterable(GROUPS.values())) == sorted(column.name for column in COLUMNS)


def test_rows_have_their_features_and_halves_part_questions(files: tuple[Path, Path]) -> None:
    rows = ScoredRows.read(*files, "evouna")
    assert np.isnan(rows.values).sum() == rows.values.size - len(rows.rows)
    halves = rows.half("a"), rows.half("b")
    assert len(halves[0].rows) + len(halves[1].rows) == 24
    assert {half_of(question) for question in halves[0].questions} == {"a"}
    assert not set(halves[0].keys) & set(halves[1].keys)
    assert not without_questions(rows, rows).rows
    assert [row["id"] for row in without_questions(rows, halves[0]).rows] == [row["id"] for row in halves[1].rows]
    assert mean_pearson(rows, rows.smile) == pytest.approx(1.0)


def test_rows_without_features_and_scores_of_other_rows_are_refused(files: tuple[Path, Path]) -> None:
    data, scores = files
    lines = [json.loads(line) for line in scores.read_text("utf-8").splitlines()]
    _written(scores, lines[1:])
    with pytest.raises(ValueError, match="does not contain the rows"):
        ScoredRows.read(data, scores, "evouna")
    lines[3]["scores"]["correctness"] = {"status": "UNAVAILABLE", "error": "the queue is full"}
    _written(scores, lines)
    with pytest.raises(ValueError, match=r"1 rows .* the queue is full"):
        ScoredRows.read(data, scores, "evouna")


def test_smile_by_another_encoder_stands_beside_and_stays_with_its_rows(files: tuple[Path, Path]) -> None:
    rows = ScoredRows.read(*files, "evouna")
    other = replace(rows, smile=1 - rows.smile)
    half = rows.beside("other", other).half("b")
    assert half.smile_of_others["other"] == pytest.approx(1 - half.smile)
    table = agreement_table(half, np.random.default_rng(0).random(len(half.rows)))
    assert "| pearson, `smile:one_pass, other` | -1.000 | -1.000 | -1.000 |" in table
    assert "| pearson, `smile:one_pass` | 1.000 | 1.000 | 1.000 |" in table
    assert "difference to `smile:one_pass, other`" in table
    assert "difference to" not in agreement_table(rows, rows.smile)
    with pytest.raises(ValueError, match="scored with other differ"):
        rows.beside("other", other.half("a"))


def test_a_grader_is_a_further_column_and_data_sets_of_a_source_count_as_sources(files: tuple[Path, Path]) -> None:
    data, scores = files
    lines = [json.loads(line) for line in scores.read_text("utf-8").splitlines()]
    for place, line in enumerate(lines[:-1]):
        line["scores"]["correctness"]["features"]["grader"] = float(place)
    graded = ScoredRows.read(data, _written(scores, lines), "evouna", columns=WITH_GRADER)
    assert graded.values[:-1, -1].tolist() == list(range(23))
    assert np.isnan(graded.values[-1, -1])
    rows = ScoredRows.read(data, scores, "evouna")
    assert (rows.columns, graded.without_grader().columns) == (COLUMNS, COLUMNS)
    assert np.array_equal(graded.half("a").without_grader().values, rows.half("a").values, equal_nan=True)
    assert set(rows.sources) == {"evouna"}
    rows.rows[0]["dataset"] = "tq"
    assert rows.sources[:2] == ["evouna tq", "evouna nq"]
