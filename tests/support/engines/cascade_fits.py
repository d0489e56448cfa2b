"""A fit of metric `auto` that is small enough to be read."""

import json
from typing import Any

from tests.support.engines.correctness_fits import DIGEST, fit_text, stored_fit

from gradewire_server.domain.metric import Calibration, ModelMetadata
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.judged.auto_fit import AutoParameters

JUDGE_DIGEST = "7" * 64
JUDGE = f"j@{JUDGE_DIGEST}"
FORM: dict[str, Any] = {
    "format": 1,
    "metric_version": 1,
    "model": "hash",
    "model_digest": DIGEST,
    "correctness_fit": fit_id(fit_text()),
    "judge": "lave",
    "judge_digest": JUDGE_DIGEST,
    "prompt_digest": AutoParameters().prompt_digest,
    "delta": 0.1,
    "risks": [
        {"share": 0.02, "accepts_from": None},
        {"share": 0.05, "accepts_from": 0.9},
        {"share": 0.2, "accepts_from": 0.6},
    ],
    "budgets": [
        {"share": 0.0, "accepts_from": 0.5},
        {"share": 0.5, "accepts_from": 0.75},
        {"share": 1.0, "accepts_from": None},
    ],
    "asked_below": 3.0,
}


def auto_fit_text(**changes: Any) -> str:
    """The form as a model stores it, with other values of some of its keys."""
    return json.dumps(FORM | changes)


def stored_auto_fit(text: str, **parameters: str) -> Calibration:
    """A fit as a model's metadata hold it."""
    held = {"judge": "lave", "caption": "false", "judge_model": "j", **parameters}
    return Calibration("auto", 1, tuple(held.items()), None, described="user: fitted on ten rows", fit=text)


def metadata_with(*fits: Calibration, judge: str = JUDGE) -> ModelMetadata:
    """Of an encoder with a fit of `correctness` and these."""
    return ModelMetadata((*fits, *stored_fit(fit_text())), digest=DIGEST, judge=judge)
