"""Read labelled rows with the server's `correctness` features and SMILE scores, and fit the rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.common.rows import read_lines

from gradewire_models.catalog.loading import find_model
from gradewire_server.metrics.correctness.features import FEATURES, GRADER, INPUT_KIND, Feature
from gradewire_server.metrics.correctness.fit import CorrectnessFit, read_fit
from gradewire_server.metrics.correctness.metric import VERSION
from gradewire_stats.calibration.fit_correctness import fit_correctness, fitted_form
from gradewire_stats.calibration.labelled_rows import (
    FittedFeature,
    InputKinds,
    LabelledFeatures,
    checked,
    half_of,
    question_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.common.rows import Row
    from numpy.typing import NDArray

    from gradewire_stats.calibration.labelled_rows import Half


COLUMNS = tuple(FittedFeature(each.name, each.monotone, each.width, each.rules_out, each.doubts) for each in FEATURES)
WITH_GRADER = (*COLUMNS, FittedFeature(GRADER.name, GRADER.monotone, GRADER.width))
SMILE_CUT = 2 / 3
"""SMILE's threshold in preset `v1`, from SMILE's paper."""
DRAWN, FLIPS = "drawn", "flips"
COUNTING = {
    "evouna nq": 4.0,
    "evouna tq": 4.0,
    "nq301": 2.0,
    "pupils beetle": 0.5,
    "pupils scientsbank": 0.5,
    "vqa votes": 0.5,
    DRAWN: 0.5,
    FLIPS: 4.0,
}
"""Weights of sources. Answers of models count most; flips have 26 kinds of errors; votes call rare synonyms wrong."""


@dataclass(frozen=True)
class ScoredRows:
    """Labelled rows with the server's results.

    Attributes:
        columns: The columns of `values`; a grader's logit, if any, is last.
        values: float64[rows, features], NaN if a feature does not apply.
        shapes: float64[rows, numbers], each item's input kind.
        smile: float64[rows], SMILE scores with preset `one_pass`.
        line: Metric identifier for these features, with the model's digest.
        smile_of_others: float64[rows], other encoders' SMILE scores, by encoder.
    """

    rows: list[Row]
    source: str
    columns: tuple[FittedFeature, ...]
    values: NDArray[np.float64]
    shapes: NDArray[np.float64]
    smile: NDArray[np.float64]
    line: str
    smile_of_others: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def read(cls, data: Path, scores: Path, source: str, *, columns: tuple[FittedFeature, ...] = COLUMNS) -> ScoredRows:
        """Read labelled rows, and their results from `gradewire score` with one metric.

        Raises:
            ValueError: A row has no score, or the files do not belong together.
        """
        rows, scored = read_lines(data), read_lines(scores)
        if [row["id"] for row in rows] != [each["id"] for each in scored]:
            raise ValueError(f"{scores} does not contain the rows of {data}. Delete it and run again")
        results = [result for each in scored for result in each["scores"].values()]
        failed = [result for result in results if result["status"] != "OK"]
        if failed:
            raise ValueError(f"{len(failed)} rows of {data} have no features: {failed[0].get('error', failed[0])}")
        values = [[result["features"].get(column.name, nan) for column in columns] for result in results]
        shapes = [[result["features"][name] for name in INPUT_KIND] for result in results]
        smile = [result["smile"] for result in results]
        known, kinds, scores_of_smile = (np.array(column, np.float64) for column in (values, shapes, smile))
        return cls(rows, source, columns, known, kinds, scores_of_smile, results[0]["line"])

    def without_grader(self) -> ScoredRows:
        """Return the rows without the grader's logit."""
        return replace(self, columns=COLUMNS, values=self.values[:, : len(COLUMNS)])

    def where(self, wanted: Callable[[Row], bool]) -> ScoredRows:
        """Return the rows for which `wanted` returns True."""
        kept = np.array([wanted(row) for row in self.rows])
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        others = {model: scores[kept] for model, scores in self.smile_of_others.items()}
        values = (self.values[kept], self.shapes[kept], self.smile[kept])
        return ScoredRows(rows, self.source, self.columns, *values, self.line, others)

    def beside(self, model: str, other: ScoredRows) -> ScoredRows:
        """Return the rows with additional SMILE scores from another encoder.

        Raises:
            ValueError: `other` has different rows.
        """
        if other.rows != self.rows:
            raise ValueError(f"the rows scored with {model} differ")
        return replace(self, smile_of_others={**self.smile_of_others, model: other.smile})

    def half(self, half: Half) -> ScoredRows:
        """Return the rows in the fit split "a" or the held-out split "b"."""
        return self.where(lambda row: half_of(row["question"]) == half)

    @property
    def labels(self) -> NDArray[np.float64]:
        """The labels, float64[rows]: 1 for right, 0 for wrong."""
        return np.array([row["label"] for row in self.rows], np.float64)

    @property
    def sources(self) -> list[str]:
        """Each row's source, or its data set if the source has several."""
        several = len(set(self.column("dataset"))) > 1
        return [f"{self.source} {row['dataset']}" if several else self.source for row in self.rows]

    @property
    def questions(self) -> list[str]:
        """The question of each row."""
        return [row["question"] for row in self.rows]

    @property
    def keys(self) -> list[str]:
        """A key for each row's question, which ignores differences in spelling."""
        return [question_key(question) for question in self.questions]

    def column(self, name: str) -> list[str]:
        """Return a field of all rows; "" if missing."""
        return [row.get(name, "") for row in self.rows]


def sha256_of(*parts: ScoredRows) -> str:
    """Return the SHA-256 of the rows' question, references, prediction and label, as in `gradewire calibrate`."""
    digest = hashlib.sha256()
    for row in (row for part in parts for row in part.rows):
        said = [row["question"], row["references"], row["prediction"], float(row["label"])]
        digest.update(json.dumps(said, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()


def together(*parts: ScoredRows) -> LabelledFeatures:
    """Join several sources' rows for a fit with the weights of `COUNTING`."""
    rows = checked(
        parts[0].columns,
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.labels for part in parts]),
        [question for part in parts for question in part.questions],
        sources=[source for part in parts for source in part.sources],
        shapes=InputKinds(INPUT_KIND, np.concatenate([part.shapes for part in parts])),
    )
    return replace(rows, counting=COUNTING)


def without_questions(rows: ScoredRows, others: ScoredRows) -> ScoredRows:
    """Return the rows whose question is not in `others`."""
    shared = set(others.keys)
    return rows.where(lambda row: question_key(row["question"]) not in shared)


@dataclass(frozen=True)
class Fitted:
    """A `correctness` fit in the catalog's and the server's format.

    Attributes:
        form: Fit in the catalog's format; if requested, with results of cross-validation in `figures`.
        served: Fit in the server's format.
    """

    form: dict[str, Any]
    warnings: tuple[str, ...]
    served: CorrectnessFit

    def probabilities(self, rows: ScoredRows) -> NDArray[np.float64]:
        """Return P(right) from the server's code, float64[rows]."""
        places = map(self.served.position_of, rows.shapes)
        return np.array([self.served(values, place) for values, place in zip(rows.values, places, strict=True)])

    def uncertain(self, rows: ScoredRows, confidence: float) -> NDArray[np.bool_]:
        """Return bool[rows]: True if a rule decides or the probability is in the uncertain band at `confidence`."""
        found = []
        for probability, values, shape in zip(self.probabilities(rows), rows.values, rows.shapes, strict=True):
            place = self.served.position_of(shape)
            found.append(
                self.served.band(confidence, place).holds(probability)
                or self.served.overruled(values, place)
                or self.served.doubted(values, probability)
            )
        return np.array(found)


@dataclass(frozen=True)
class Recipe:
    """Names and ISO date to store with a fit; `grader` is "" without a grader."""

    model: str
    date: str = ""
    grader: str = ""


def fitted(parts: tuple[ScoredRows, ...], recipe: Recipe, half: str, *, figures: bool = False) -> Fitted:
    """Fit `correctness` to several sources' rows; with `figures`, cross-validate over questions."""
    provenance = {
        "metric_version": VERSION,
        "model": recipe.model,
        "model_digest": find_model(recipe.model).digest,
        **({"grader": recipe.grader, "grader_digest": find_model(recipe.grader).digest} if recipe.grader else {}),
        "rows": {
            "sha256": sha256_of(*parts),
            "count": sum(len(part.rows) for part in parts),
            "right": int(sum(part.labels.sum() for part in parts)),
            "questions": len({key for part in parts for key in part.keys}),
            "sources": dict(Counter(source for part in parts for source in part.sources)),
            "half": half,
        },
        "date": recipe.date,
    }
    rows, warnings = together(*parts), tuple[str, ...]()
    if figures:
        found = fit_correctness(rows, provenance=provenance, with_transfer=False)
        form, warnings = found.fit, found.warnings
    else:
        form = fitted_form(rows, provenance)
    known = [
        Feature(column.name, column.monotone, column.width, column.rules_out, column.doubts)
        for column in parts[0].columns
    ]
    return Fitted(form, warnings, read_fit(json.dumps(form), known, version=VERSION))
