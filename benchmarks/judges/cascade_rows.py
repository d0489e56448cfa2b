"""Labelled rows as the cascade sees them, from what `gradewire score` wrote of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.common.rows import Row, read_lines

from gradewire_stats.calibration.cascade import CascadeRows
from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

EXACT, PROBABILITY = "exact_match", "correctness?confidence=0.5"
CHEAP = (EXACT, PROBABILITY)


@dataclass(frozen=True)
class CheapRows:
    """Rows with what is known of them without a judge.

    Attributes:
        rows: As they stand in the file.
        exact: bool[rows].
        probability: float64[rows], by trees that have not seen the row's question.
        denied: bool[rows].
        fit: Identity of the fit of `correctness`.
        encoder: NAME@DIGEST, 12 digits, and whatever else the line says.
    """

    rows: list[Row]
    exact: NDArray[np.bool_]
    probability: NDArray[np.float64]
    denied: NDArray[np.bool_]
    fit: str
    encoder: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def halves(self) -> NDArray[np.str_]:
        """Of each row's question."""
        return np.array([half_of(row["question"]) for row in self.rows])

    def with_judge(self, verdicts: Mapping[str, tuple[float, float]]) -> CascadeRows:
        """The rows with what a judge says, score and verdict by id of the row; NaN for the others."""
        said = np.array([verdicts.get(row["id"], (np.nan, np.nan)) for row in self.rows])
        return CascadeRows(
            exact=self.exact,
            probability=self.probability,
            denied=self.denied,
            right=np.array([row["label"] >= 0.5 for row in self.rows]),
            judge_verdicts=said[:, 1],
            judge_scores=said[:, 0],
            questions=[row["question"] for row in self.rows],
        )

    def where(self, kept: NDArray[np.bool_]) -> CheapRows:
        """The rows of a mask."""
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        columns = (self.exact[kept], self.probability[kept], self.denied[kept])
        return CheapRows(rows, *columns, self.fit, self.encoder)


def read_cheap(data: Path, scores: Path, held_out: Mapping[str, float] | None = None) -> CheapRows:
    """Reads rows and their cheap scores.

    Args:
        data: Labelled rows.
        scores: What `gradewire score` wrote of CHEAP.
        held_out: By id of the row, P(right) by fits that have not seen its question, where the fit that ships has.

    Raises:
        ValueError: The files do not belong together.
    """
    rows, scored = read_lines(data), read_lines(scores)
    if [row["id"] for row in rows] != [each["id"] for each in scored]:
        raise ValueError(f"{scores} does not hold the rows of {data}: remove it and run again")
    kept = [
        place for place, each in enumerate(scored) if all(each["scores"][name]["score"] is not None for name in CHEAP)
    ]
    rows, results = [rows[place] for place in kept], [scored[place]["scores"] for place in kept]
    probability = np.array([each[PROBABILITY]["score"] for each in results])
    if held_out is not None:
        probability = np.array([held_out[row["id"]] for row in rows])
    return CheapRows(
        rows=rows,
        exact=np.array([each[EXACT]["score"] == 1 for each in results]),
        probability=probability,
        denied=np.array(["UNCERTAIN" in each[PROBABILITY].get("warnings", ()) for each in results]),
        fit=results[0][PROBABILITY]["fit"],
        encoder=scored[0]["scores"][PROBABILITY]["line"],
    )


def read_judge(scores: Path) -> tuple[dict[str, tuple[float, float]], str]:
    """Score and verdict by id of the row, of a file with one metric; and its line."""
    found, line = {}, ""
    for each in read_lines(scores):
        (result,) = each["scores"].values()
        line = line or result.get("line", "")
        if result["score"] is not None:
            found[each["id"]] = (float(result["score"]), float(result["correct"]))
    return found, line


def with_drawn_judge(rows: CascadeRows, share: float) -> CascadeRows:
    """The rows with a judge that does not exist: right with the probability `share`, whatever the row."""
    correct = np.random.default_rng(3).random(len(rows)) < share
    said = np.where(correct, rows.right, ~rows.right).astype(np.float64)
    return replace(rows, judge_verdicts=said, judge_scores=said)
