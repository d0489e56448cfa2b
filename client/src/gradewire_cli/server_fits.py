"""Read and write built models' fits in this process."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire_cli.problems import invalid_request
from gradewire_models.catalog.calibration import StoredCalibration, read_calibration
from gradewire_models.catalog.loading import default_model, load_catalog
from gradewire_models.errors import ModelError
from gradewire_models.repository.built import load_built
from gradewire_server.settings.server import Settings

LEVEL = "level"
"""The key that only a form with a level has. Its value says what the level is and where it comes from."""


def fitted_for(repository: Path | None, name: str) -> tuple[str, list[str]]:
    """Return a built model's NAME@DIGEST, and a line for each calibration, including unreadable calibrations.

    Raises:
        InvalidRequest: The model is missing or broken.
    """
    with invalid_request(ModelError, ValueError):
        model = load_built(_repository(repository), name or default_model().name, graph=False)
    known = load_catalog().get(model.name)
    there = {(each.metric, each.parameters) for each in model.calibrations}
    missing = [
        f"{_metric_of(each)}: this build is too old for the catalog's fit. Run: gradewire models build {model.name}"
        for each in (known.calibrations if known is not None and known.digest == model.digest else ())
        if (each.metric, each.parameters) not in there
    ]
    return f"{model.name}@{model.digest}", [*model.fit_summaries, *missing]


def _metric_of(fitted: StoredCalibration) -> str:
    values = "&".join(f"{name}={value}" for name, value in fitted.parameters)
    return f"{fitted.metric}?{values}" if values else fitted.metric


def correctness_features(grader: str = "") -> list[tuple[str, int, float, bool, bool]]:
    """Return the name, direction, width, rule and doubt of each `correctness` feature (see `FittedFeature`).

    If a grader is named, its logit is one of the features.
    """
    from gradewire_server.metrics.correctness.features import features_of  # noqa: PLC0415 - for fitting alone

    return [(each.name, each.monotone, each.width, each.rules_out, each.doubts) for each in features_of(grader)]


def correctness_shape() -> tuple[str, ...]:
    """Return the names of the numeric features that determine an item's input kind for `correctness`."""
    from gradewire_server.metrics.correctness.features import INPUT_KIND  # noqa: PLC0415 - for fitting alone

    return INPUT_KIND


def correctness_form(repository: Path | None, name: str, grader: str = "") -> tuple[str, dict[str, Any]]:
    """Return a model's fit for `correctness` before any level: its ID (12 hex digits) and its JSON form.

    Raises:
        InvalidRequest: The model is missing or broken, or has no usable fit for this grader.
    """
    from gradewire_server.metrics.correctness.features import features_of  # noqa: PLC0415 - for fitting alone
    from gradewire_server.metrics.correctness.fit import FitError, read_fit  # noqa: PLC0415 - as above
    from gradewire_server.metrics.correctness.metric import VERSION  # noqa: PLC0415 - as above

    key = ("correctness", VERSION, (("grader", grader),) if grader else ())
    with invalid_request(ModelError, ValueError):
        model = load_built(_repository(repository), name, graph=False)
    known = load_catalog().get(name)
    listed = known.calibrations if known is not None and known.digest == model.digest else ()
    fits = [each.fit for each in (*model.calibrations, *listed) if each.key == key]
    # A level replaces the fit that it was made from. Only the catalog still has that fit.
    without_level = next((text for text in fits if LEVEL not in json.loads(text)), "")
    metric = f"correctness?grader={grader}" if grader else "correctness"
    if not without_level:
        lack = "the fit that its level was made from" if fits else "a fit"
        raise InvalidRequest(
            f"{name} lacks {lack} for {metric}. Fit the probability first: gradewire calibrate FILE --metric '{metric}'"
        )
    with invalid_request(FitError, named=f"the fit of {name} for {metric} cannot be used: "):
        return read_fit(without_level, features_of(grader), version=VERSION).identity, json.loads(without_level)


def store_fitted(repository: Path | None, name: str, digest: str, values: Mapping[str, Any]) -> str:
    """Store a user's fit with a built model.

    Raises:
        InvalidRequest: The model is missing or cannot be written, its digest is not `digest`, or a value is invalid.
    """
    place = _repository(repository)
    with invalid_request(ModelError, ValueError):
        model = load_built(place, name, graph=False)
        if not model.digest.startswith(digest):
            raise InvalidRequest(
                f"the scores come from {name}@{digest}, but {place} contains {name}@{model.digest[:12]}. Score the "
                f"rows again with this model, or name the directory of {name}@{digest}"
            )
        fitted = read_calibration({**values, "model_digest": model.digest, "origin": "user"})
        from gradewire_models.build.fitted import store_calibration  # noqa: PLC0415 - loads onnx

        store_calibration(place, name, fitted)
    return fitted.summary


def forget_fitted(repository: Path | None, name: str, metric: str, *, dry_run: bool = False) -> list[str]:
    """Remove users' fits for `metric` ("" means all metrics) from a model, and return a line for each removed fit.

    With `dry_run`, remove nothing, and return the lines of the fits to remove.

    Raises:
        InvalidRequest: The model is missing or broken.
    """
    from gradewire_models.build.fitted import (  # noqa: PLC0415 - as in `store_fitted`
        forget_calibrations,
        removable_calibrations,
    )

    forget = removable_calibrations if dry_run else forget_calibrations
    with invalid_request(ModelError, ValueError):
        gone = forget(_repository(repository), name or default_model().name, metric)
    return [each.summary for each in gone]


def _repository(named: Path | None) -> Path:
    return named or Settings.load().engine.model_repository
