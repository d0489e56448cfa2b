"""Fits `correctness` to rows of several sources; the fit gives what a server computes from it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.agreement.correctness_rows import ScoredRows, sha256_of, together

from gradewire_models.catalog.loading import find_model
from gradewire_server.metrics.correctness.features import Feature
from gradewire_server.metrics.correctness.fitted import CorrectnessFit, read_fit
from gradewire_server.metrics.correctness.metric import VERSION
from gradewire_stats.calibration.fit_correctness import fit_correctness, fitted_form

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Fitted:
    """A fit of `correctness`, as it is stored and as a server reads it.

    Attributes:
        form: As it is stored; with `figures` of its rows, held out by question, where these were asked for.
        warnings: What its maker was told.
        served: As a server reads it.
    """

    form: dict[str, Any]
    warnings: tuple[str, ...]
    served: CorrectnessFit

    def probabilities(self, rows: ScoredRows) -> NDArray[np.float64]:
        """float64[rows], P(right) by the server's code."""
        places = map(self.served.position_of, rows.shapes)
        return np.array([self.served(values, place) for values, place in zip(rows.values, places, strict=True)])

    def uncertain(self, rows: ScoredRows, confidence: float) -> NDArray[np.bool_]:
        """bool[rows], whose verdict lies in the band at that confidence, or is a rule's."""
        found = []
        for probability, values, shape in zip(self.probabilities(rows), rows.values, rows.shapes, strict=True):
            place = self.served.position_of(shape)
            found.append(self.served.band(confidence, place).holds(probability) or self.served.overruled(values, place))
        return np.array(found)


@dataclass(frozen=True)
class Recipe:
    """What a fit is made for.

    Attributes:
        model: Encoder's name in the catalog.
        date: ISO date that the fit carries.
        grader: Name in the catalog of the grader whose logits the rows have; "" without.
    """

    model: str
    date: str = ""
    grader: str = ""


def fitted(parts: tuple[ScoredRows, ...], recipe: Recipe, half: str, *, figures: bool = False) -> Fitted:
    """Fits `correctness` to all of the rows.

    Args:
        parts: One for each source.
        recipe: What it is made for.
        half: Which half of the questions the rows are of, for the fit's provenance.
        figures: Whether it is tried on its rows, held out by question.
    """
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
    known = [Feature(column.name, column.monotone, column.width, column.rules_out) for column in parts[0].columns]
    return Fitted(form, warnings, read_fit(json.dumps(form), known, version=VERSION))
