"""Select the step whose `sfve` scores rank labelled answers best."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradewire_models.build.quality import spearman
from gradewire_models.catalog.table import Finite
from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder
from gradewire_train.examples import AnswerLine, json_lines, question_text

MEAN = "dev"
"""The name of the value that selects the step."""


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """An answer with its label. Better answers have higher labels; only rows in the same `part` are compared."""

    question: str
    references: tuple[str, ...]
    prediction: str
    label: float
    part: str


@dataclass(frozen=True, slots=True)
class _Line(AnswerLine):
    label: Finite | None = None
    grade: Finite | None = None
    part: Any = ""
    half: Any = None


def read_labelled(path: Path, *, half: str | None = None) -> list[LabelledRow]:
    """Read JSON lines with the fields question, references, prediction, label or grade, and optionally part.

    If `half` is given, keep only rows whose field "half" has this value.

    Raises:
        TrainingError: A line is invalid (the message states the line), or fewer than two rows are left.
    """
    rows = []
    for where, line in json_lines(path, _Line):
        if half is not None and line.half is None:
            raise TrainingError(f"{where}: the field half is missing, but --dev-half needs it")
        label = line.grade if line.label is None else line.label
        if label is None:
            raise TrainingError(f"{where}: label (or grade) is missing")
        if half in {None, line.half}:
            rows.append(LabelledRow(line.question, line.references, line.prediction, label, str(line.part)))
    if len(rows) < 2:
        raise TrainingError(f"{path} has {len(rows)} rows, but ranking needs at least two")
    return rows


def ensure_rankable(rows: Sequence[LabelledRow], origin: Path) -> None:
    """Before training starts, check that the rows can be ranked.

    Raises:
        TrainingError: Every part has only one distinct label.
    """
    labels: dict[str, set[float]] = {}
    for row in rows:
        labels.setdefault(row.part, set()).add(row.label)
    if all(len(each) < 2 for each in labels.values()):
        raise TrainingError(
            f"{origin}: the {len(rows)} rows cannot be ranked, because within each part all labels are equal. "
            "Use a file whose parts have different labels, or leave out --dev"
        )


def sample(rows: Sequence[LabelledRow], *, count: int, seed: int) -> list[LabelledRow]:
    """Return at most `count` rows, drawn at random but in their original order; 0 means all rows."""
    if not count or len(rows) <= count:
        return list(rows)
    kept = np.sort(np.random.default_rng(seed).choice(len(rows), size=count, replace=False))
    return [rows[index] for index in kept]


def labelled_digest(rows: Sequence[LabelledRow]) -> str:
    """Return the SHA-256 of the rows' fields that the selection uses, as 64 hex characters."""
    plain = [[row.question, list(row.references), row.prediction, row.label, row.part] for row in rows]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


class Selection:
    """Labelled rows that rank the steps. The rows are tokenized only once. `digest` is the rows' `labelled_digest`."""

    def __init__(self, rows: Sequence[LabelledRow], encoder: TrainedEncoder) -> None:
        self.digest = labelled_digest(rows)
        numbers: dict[str, int] = {}
        pairs = []
        for row in rows:
            prediction = numbers.setdefault(question_text(row.question, row.prediction), len(numbers))
            references = [
                numbers.setdefault(question_text(row.question, each), len(numbers)) for each in row.references
            ]
            pairs.append((prediction, references))
        self._ids = encoder.tokenize(list(numbers))
        self._pairs = pairs
        self._labels = np.array([row.label for row in rows])
        self._parts = np.array([row.part for row in rows])

    def scores(self, encoder: TrainedEncoder) -> NDArray[np.float64]:
        """Return float64 [rows], each row's `sfve` score: the largest cosine of its answer with a reference."""
        vectors = _without_gradients(encoder, self._ids)
        return np.array([(vectors[references] @ vectors[prediction]).max() for prediction, references in self._pairs])

    def spearman(self, encoder: TrainedEncoder) -> dict[str, float]:
        """Return Spearman's correlation of scores with labels, as "dev PART" for each part, and the mean as `MEAN`."""
        scores = self.scores(encoder)
        found = {
            f"{MEAN} {part or 'all'}": spearman(scores[self._parts == part], self._labels[self._parts == part])
            for part in np.unique(self._parts)
        }
        defined = [value for value in found.values() if not math.isnan(value)]
        return {**found, MEAN: float(np.mean(defined)) if defined else math.nan}


def _without_gradients(encoder: TrainedEncoder, ids: Sequence[Any]) -> NDArray[np.float32]:
    training = encoder.model.training
    encoder.model.eval()
    with torch.inference_mode():
        vectors: NDArray[np.float32] = encoder.vectors(ids).cpu().numpy()
    encoder.model.train(training)
    return vectors
