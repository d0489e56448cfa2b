"""Read and write built models' fits in this process."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


def correctness_features(grader: str = "", *, votes: bool = False) -> list[tuple[str, int, float, bool, bool]]:
    """Return the name, direction, width, rule and doubt of each `correctness` feature (see `FittedFeature`).

    If a grader is named, its logit is one of the features. With `votes`, so are those of the fit `votes`.
    """
    from gradewire_server.metrics.correctness.features import features_of  # noqa: PLC0415 - for fitting alone

    known = features_of(grader, votes=votes)
    return [(each.name, each.monotone, each.width, each.rules_out, each.doubts) for each in known]


def fit_parameters(grader: str = "", *, votes: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the parameters that a stored fit for `correctness` is found by, besides metric and version."""
    from gradewire_server.metrics.correctness.fit import VOTES  # noqa: PLC0415 - for fitting alone

    return (*((("fit", VOTES),) if votes else ()), *((("grader", grader),) if grader else ()))


def is_literal(prediction: str, references: Sequence[str]) -> bool:
    """Return True if `auto` takes an exact match of these texts for certain."""
    from gradewire_server.metrics.judged import auto  # noqa: PLC0415 - for fitting alone

    return auto.is_literal(prediction, references)


def default_encoder() -> str:
    """Return the name of the encoder that the engine in this process uses if the caller names none."""
    from gradewire_server.encoders.factory import default_encoder_of  # noqa: PLC0415 - imports ONNX Runtime

    return default_encoder_of(Settings.load().engine)


def correctness_shape() -> tuple[str, ...]:
    """Return the names of the numeric features that determine an item's input kind for `correctness`."""
    from gradewire_server.metrics.correctness.features import INPUT_KIND  # noqa: PLC0415 - for fitting alone

    return INPUT_KIND


class LevelStart(NamedTuple):
    """The fit for `correctness` that a level starts from.

    Attributes:
        fit: The fit's ID, 12 hex digits.
        form: The fit's JSON form, without a level.
        origin: The data that the fit was made from, in words.
        replaced: Provenance of the model's present level, which was made from the same fit, or None without a level.
    """

    fit: str
    form: dict[str, Any]
    origin: str
    replaced: dict[str, Any] | None


def level_start(repository: Path | None, name: str, grader: str = "") -> LevelStart:
    """Return the fit that a model's next level starts from: the fit that servers use, without its level.

    A level replaces the fit that it was made from, and only the catalog still has that fit. No other fit of the catalog
    is taken in its place.

    Raises:
        InvalidRequest: The model is missing or broken, or has no usable fit for this grader.
    """
    from gradewire_server.metrics.correctness.features import features_of  # noqa: PLC0415 - for fitting alone
    from gradewire_server.metrics.correctness.fit import FitError, fit_id, read_fit  # noqa: PLC0415 - as above
    from gradewire_server.metrics.correctness.metric import VERSION  # noqa: PLC0415 - as above

    key = ("correctness", VERSION, fit_parameters(grader))
    with invalid_request(ModelError, ValueError):
        model = load_built(_repository(repository), name, graph=False)
    known = load_catalog().get(name)
    listed = known.calibrations if known is not None and known.digest == model.digest else ()
    fits = [each for each in (*model.calibrations, *listed) if each.key == key]
    metric = f"correctness?grader={grader}" if grader else "correctness"
    way_out = f"Fit the probability first: gradewire calibrate FILE --metric '{metric}' --model {name}"
    if not fits:
        raise InvalidRequest(f"{name} lacks a fit for {metric}. {way_out}")
    replaced = json.loads(fits[0].fit).get(LEVEL)
    start = next((each for each in fits if replaced is None or fit_id(each.fit) == replaced["fit"]), None)
    if start is None:
        raise InvalidRequest(
            f"{name} no longer has fit {replaced['fit']}, which its level for {metric} was made from. Go back to the "
            f"fit before the level: gradewire calibrate --undo --metric correctness --model {name}"
        )
    with invalid_request(FitError, named=f"the fit of {name} for {metric} cannot be used: "):
        identity = read_fit(start.fit, features_of(grader), version=VERSION).identity
        return LevelStart(identity, json.loads(start.fit), start.described, replaced)


def stored_fit(
    repository: Path | None, name: str, grader: str = "", *, votes: bool = False
) -> tuple[str, dict[str, Any], str] | None:
    """Return the ID, the form and the origin of the fit for `correctness` that servers use, or None without one.

    With `votes`, this is the fit `votes`.

    Raises:
        InvalidRequest: The model is missing or broken.
    """
    from gradewire_server.metrics.correctness.features import features_of  # noqa: PLC0415 - for fitting alone
    from gradewire_server.metrics.correctness.fit import FitError, read_fit  # noqa: PLC0415 - as above
    from gradewire_server.metrics.correctness.metric import VERSION  # noqa: PLC0415 - as above

    key = ("correctness", VERSION, fit_parameters(grader, votes=votes))
    with invalid_request(ModelError, ValueError):
        model = load_built(_repository(repository), name, graph=False)
    found = next((each for each in model.calibrations if each.key == key and each.fit), None)
    try:
        if found is None:
            return None
        identity = read_fit(found.fit, features_of(grader, votes=votes), version=VERSION).identity
    except FitError:
        return None
    return identity, json.loads(found.fit), found.described


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


class Undone(NamedTuple):
    """A line for each removed fit, and for each earlier fit that applies again."""

    removed: list[str]
    restored: list[str]


def forget_fitted(repository: Path | None, name: str, metric: str, *, dry_run: bool = False) -> Undone:
    """Remove users' fits for `metric` ("" means all metrics) from a model, and restore the users' fits before them.

    With `dry_run`, change nothing, and return the lines of the fits to remove and to restore.

    Raises:
        InvalidRequest: The model is missing or broken.
    """
    from gradewire_models.build.fitted import (  # noqa: PLC0415 - as in `store_fitted`
        forget_calibrations,
        removable_calibrations,
        restorable_calibrations,
    )

    forget = removable_calibrations if dry_run else forget_calibrations
    place, model = _repository(repository), name or default_model().name
    with invalid_request(ModelError, ValueError):
        restored = [each.summary for each in restorable_calibrations(place, model, metric)]
        gone = forget(place, model, metric)
    return Undone([each.summary for each in gone], restored)


def _repository(named: Path | None) -> Path:
    return named or Settings.load().engine.model_repository
