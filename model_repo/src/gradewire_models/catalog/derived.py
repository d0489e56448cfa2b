"""Derive the fits of a variant from its base's, after both models' scores were compared on labelled rows.

A fit holds for one model's digest. A GPU variant has its base's weights, and its vectors differ only by rounding, so
its fits are the base's numbers with the variant's digests. The catalog has this table only for variants that
`benchmarks.agreement.variant_fits` compared.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gradewire_models.catalog.calibration import StoredCalibration, dumped, merge
from gradewire_models.catalog.entries import CatalogModel

_FIT_ID_CHARACTERS = 12


def with_compared_fits(model: CatalogModel, models: Mapping[str, CatalogModel]) -> CatalogModel:
    """Return `model` with its base's fits, rewritten for its own digest, if the catalog compared them.

    A fit with a grader is derived only if the comparison names the variant of this grader. Other models stay as they
    are.

    Raises:
        ValueError: The comparison names a model that is not the variant of one of the base's graders.
    """
    compared = model.compared_fits
    if compared is None:
        return model
    base = models[model.base]
    fits = {dict(each.parameters).get("grader", "") for each in base.calibrations if each.metric == "correctness"}
    for known, variant in compared.graders.items():
        if known not in fits or variant not in models or models[variant].base != known:
            raise ValueError(
                f"model {model.name!r}: compared_fits: {variant!r} is not a variant of {known!r}, or {base.name} has "
                "no fit with this grader"
            )
    graders = {known: models[variant] for known, variant in compared.graders.items()}
    found = _derived(model, base, graders, f"{base.name}'s scores (compared on {compared.rows} rows)")
    return replace(model, calibrations=merge(model.calibrations, found))


def _derived(
    model: CatalogModel, base: CatalogModel, graders: Mapping[str, CatalogModel], scores: str
) -> Iterator[StoredCalibration]:
    identities: dict[str, str] = {}
    # A fit of `auto` names the fit of `correctness` that it uses, so it comes after this fit.
    for calibration in sorted(base.calibrations, key=lambda each: each.metric != "correctness"):
        parameters = dict(calibration.parameters)
        # The comparison is of the usual fits, so a fit with a name is not derived.
        if not calibration.fit or "fit" in parameters:
            continue
        fit = json.loads(calibration.fit)
        changes: dict[str, Any] = {"model": model.name, "model_digest": model.digest}
        if grader := parameters.get("grader", ""):
            if grader not in graders:
                continue
            changes |= {"grader": graders[grader].name, "grader_digest": graders[grader].digest}
            parameters["grader"] = graders[grader].name
        if "correctness_fit" in fit:
            if fit["correctness_fit"] not in identities:
                continue
            changes["correctness_fit"] = identities[fit["correctness_fit"]]
        text = dumped(fit | changes)
        identities[_identity(calibration.fit)] = _identity(text)
        yield replace(
            calibration,
            model_digest=model.digest,
            parameters=tuple(parameters.items()),
            fit=text,
            fitted_on=f"{scores} of {calibration.fitted_on}",
        )


def _identity(text: str) -> str:
    # Keep equal to `gradewire_server.metrics.correctness.fit.fit_id`.
    return hashlib.sha256(text.encode()).hexdigest()[:_FIT_ID_CHARACTERS]
