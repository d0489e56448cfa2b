"""Fits `calibrated` to rows; the fit gives the probabilities and band that a server computes from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.agreement.calibrated_rows import COLUMNS, ScoredRows

from gradewire.agreement.fitting.probability import fit_calibrated
from gradewire_models.catalog.loading import find_model
from gradewire_server.metrics.calibrated.features.catalog import Feature
from gradewire_server.metrics.calibrated.fit import CalibratedFit, read_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

METRIC_VERSION = 2


@dataclass(frozen=True)
class Fitted:
    """A fit of `calibrated`, as it is stored and as a server reads it.

    Attributes:
        form: As it is stored.
        served: As a server reads it.
        cross_validated: Figures of the rows that it was fitted on, each by trees that have not seen its question.
    """

    form: dict[str, Any]
    served: CalibratedFit
    cross_validated: dict[str, float]

    def probabilities(self, rows: ScoredRows) -> NDArray[np.float64]:
        """float64[rows], P(right) by the server's code."""
        return np.array([self.served(values) for values in rows.values])


def fitted(rows: ScoredRows, model: str, date: str) -> Fitted:
    """Fits `calibrated` to all of the rows.

    Args:
        rows: The fit split.
        model: Name in the catalog.
        date: ISO date that the fit carries.
    """
    provenance = {
        "metric_version": METRIC_VERSION,
        "model": model,
        "model_digest": find_model(model).digest,
        "rows": {
            "sha256": rows.sha256,
            "count": len(rows.rows),
            "right": int(rows.labels.sum()),
            "questions": len(set(rows.keys)),
            "half": "a",
        },
        "date": date,
    }
    found = fit_calibrated(COLUMNS, rows.values, rows.labels, rows.questions, provenance=provenance)
    known = [Feature(column.name, column.monotone, column.width) for column in COLUMNS]
    return Fitted(found.fit, read_fit(json.dumps(found.fit), known, version=METRIC_VERSION), found.figures)
