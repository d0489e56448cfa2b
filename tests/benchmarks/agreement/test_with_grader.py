"""`correctness` with and without a grader: no row is read by a fit that has seen its question."""

from dataclasses import dataclass

import numpy as np
import pytest
from benchmarks.agreement import with_grader
from benchmarks.agreement.correctness_rows import COLUMNS, WITH_GRADER, Recipe, ScoredRows
from benchmarks.agreement.travel import ReadSet, Way
from benchmarks.agreement.with_grader import FOLDS, crossed, silent_table
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.features import INPUT_KIND

COUNT = 200


@dataclass
class Seen:
    """A fit, which takes minutes for real, that knows the questions of its rows; P(right) is the last column."""

    keys: set[str]

    def probabilities(self, rows: ScoredRows) -> NDArray[np.float64]:
        assert not self.keys & set(rows.keys)
        return rows.values[:, -1]

    def uncertain(self, rows: ScoredRows, confidence: float) -> NDArray[np.bool_]:
        return np.abs(rows.values[:, -1] - 0.5) < 1 - confidence


@pytest.fixture
def rows() -> ScoredRows:
    """Two answers to each question, whose column of the grader's logit is the row's number in per mille."""
    lines = [
        {"id": str(place), "question": f"Question {place // 2}?", "references": ["r"], "prediction": "p", "label": 1}
        for place in range(COUNT)
    ]
    values = np.full((COUNT, len(WITH_GRADER)), 0.25)
    values[:, -1] = np.arange(COUNT) / 1000
    shapes = np.zeros((COUNT, len(INPUT_KIND)))
    return ScoredRows(lines, "nq301", WITH_GRADER, values, shapes, values[:, 0], "correctness/3")


def test_each_part_is_read_by_fits_on_other_questions(rows: ScoredRows, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Seen] = []

    def fitted(parts: tuple[ScoredRows, ...], recipe: Recipe, half: str) -> Seen:
        assert (recipe.grader, half) == ("grader-mini", "b")
        made.append(Seen({key for part in parts for key in part.keys}))
        return made[-1]

    monkeypatch.setattr(with_grader, "fitted", fitted)
    # Both answers to a question can be in different parts.
    parts = tuple(rows.where(lambda row, rest=rest: int(row["id"]) % 3 % 2 == rest) for rest in (0, 1))
    ways = crossed("with", parts, Recipe("all-MiniLM-L6-v2", grader="grader-mini"))
    assert len(made) == FOLDS
    assert {len(each.keys) for each in made} == {COUNT // 2 * (FOLDS - 1) // FOLDS}
    for part, way in zip(parts, ways, strict=True):
        assert np.array_equal(way.found, part.values[:, -1])
        assert np.array_equal(way.flagged, np.abs(part.values[:, -1] - 0.5) < 0.1)
    assert parts[0].without_grader().columns == COLUMNS


def test_errors_without_uncertain_are_shares_of_the_wrong_and_of_the_right_answers() -> None:
    right = np.array([True, True, False, False, False, False])
    found, flagged = np.array([0.9, 0.1, 0.9, 0.8, 0.7, 0.1]), np.array([False, False, False, True, False, False])
    table = silent_table([ReadSet("six", right, list("abcdef"), [Way("one", found, flagged)])])
    assert table.endswith("| six | one | 0.500 | 0.500 |")
