"""A fit of metric `correctness` that is small enough to be worked out on paper."""

import copy
import json
from typing import Any

from gradewire_server.domain.metric import Calibration
from gradewire_server.metrics.correctness.metric import VERSION

DIGEST = "5" * 64
FORM: dict[str, Any] = {
    "format": 1,
    "metric_version": VERSION,
    "model": "hash",
    "model_digest": DIGEST,
    "features": [{"name": "keyword", "monotone": 1, "width": 0.1}, {"name": "exact", "monotone": 1, "width": 0.0}],
    "base": 0.25,
    # Two stumps: keyword at 0.8 (a ramp from 0.75 to 0.85) says -1 or 1; exact at 0.5 (a step) says -0.5 or 0.75.
    "trees": {
        "roots": [0, 3],
        "feature": [0, -1, -1, 1, -1, -1],
        "threshold": [0.8, 0.0, 0.0, 0.5, 0.0, 0.0],
        "missing_left": [False, False, False, True, False, False],
        "left": [1, -1, -1, 4, -1, -1],
        "right": [2, -1, -1, 5, -1, -1],
        "value": [0.0, -1.0, 1.0, 0.0, -0.5, 0.75],
    },
    # P = 0.5 + 0.225 * log-odds, between 0.05 and 0.95.
    "map": {"log_odds": [-2.0, 2.0], "probability": [0.05, 0.95]},
    "conformal": {
        "right": {"count": 9, "ranks": [1, 2, 4], "values": [0.2, 0.3, 0.4]},
        "wrong": {"count": 19, "ranks": [1, 2, 3, 9], "values": [0.8, 0.7, 0.65, 0.4]},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The form with another value at a dotted path; numbers are positions in lists."""
    form = copy.deepcopy(FORM)
    *way, last = path.split(".")
    place: Any = form
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return form


def fit_text(**changes: Any) -> str:
    """The form as a model stores it, with other values of some of its keys."""
    return json.dumps(FORM | changes)


def stored_fit(text: str, *, version: int = VERSION) -> tuple[Calibration, ...]:
    """A fit as a model's metadata hold it."""
    return (Calibration("correctness", version, (), None, described="user: fitted on ten rows", fit=text),)
