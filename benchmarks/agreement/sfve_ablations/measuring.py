"""Score a stand-in with an encoder, as ``gradewire bench ave`` does for `sfve`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire_stats.ave import AveRows, merged_descriptions
from gradewire_stats.calibration.labelled_rows import question_key
from gradewire_train.examples import question_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True)
class StandIn:
    """A stand-in's rows, with `scores` as ``gradewire bench ave`` computes them for `sfve`."""

    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path, half: str | None) -> StandIn:
        """Read the rows of one half, or all."""
        with path.open(encoding="utf-8") as lines:
            return cls([row for row in map(json.loads, lines) if half in {None, row["half"]}])

    def digest(self) -> str:
        """Return the rows' SHA-256, 64 hex characters."""
        return hashlib.sha256(json.dumps(list(self.rows), sort_keys=True).encode()).hexdigest()

    def texts(self) -> Iterator[str]:
        """Yield every text that `scores` reads."""
        for row in self.rows:
            for answer in (
                row["prediction"], *row["references"], *row["descriptions"], *row["shifted_references"]
            ):  # fmt: skip
                yield question_text(row["question"], answer)

    def ave_rows(self, vectors: Mapping[str, NDArray[np.float32]]) -> AveRows:
        """Score the rows with the vectors of their texts."""

        def best(row: Mapping[str, Any], answer: str, references: Iterable[str]) -> float:
            own = vectors[question_text(row["question"], answer)]
            return max(float(vectors[question_text(row["question"], each)] @ own) for each in references)

        said = [[best(row, each, row["references"]) for each in row["descriptions"]] for row in self.rows]
        parts = [
            [best(row, row["prediction"], row["references"]) for row in self.rows],
            merged_descriptions(np.array(said)),
            [best(row, row["prediction"], row["shifted_references"]) for row in self.rows],
        ]
        return self.scored(np.array(parts, dtype=np.float64).T)

    def scored(self, scores: NDArray[np.float64]) -> AveRows:
        """Return the rows with their scores, float64 [rows, parts]."""
        return AveRows(
            scores=scores,
            labels=np.array([row["label"] for row in self.rows], dtype=np.float64),
            datasets=[row["dataset"] for row in self.rows],
            questions=[question_key(row["question"]) for row in self.rows],
        )
