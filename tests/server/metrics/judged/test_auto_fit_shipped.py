"""The fit that the catalog brings: readable, for the fit of `correctness`, the judge and the prompt of this release."""

import pytest

from gradewire_models.catalog.calibration import StoredCalibration
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.judges.catalog import find_judge
from gradewire_server.domain.metric import Calibration, ModelMetadata
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.judged.auto_fit import AutoFit, AutoParameters, find_fit, read_auto_fit

SHIPPED = [
    (name, model.digest, model.calibrations, each)
    for name, model in load_catalog().items()
    for each in model.calibrations
    if each.metric == "auto" and each.model_digest == model.digest
]


def test_the_default_encoder_has_one() -> None:
    assert "all-MiniLM-L6-v2" in {name for name, *_ in SHIPPED}


@pytest.mark.parametrize(("name", "digest", "all_fits", "shipped"), SHIPPED)
def test_it_is_read_and_fits_what_else_is_shipped(
    name: str, digest: str, all_fits: tuple[StoredCalibration, ...], shipped: StoredCalibration
) -> None:
    fit = read_auto_fit(shipped.fit)
    assert isinstance(fit, AutoFit), (name, fit)
    (correctness,) = [each for each in all_fits if each.metric == "correctness" and not each.parameters]
    assert fit.form.correctness_fit == fit_id(correctness.fit)
    said = dict(shipped.parameters)
    judge = find_judge(said["judge_model"])
    assert judge.name == said["judge_model"]
    stored = tuple(
        Calibration(each.metric, each.metric_version, each.parameters, each.threshold, fit=each.fit)
        for each in all_fits
    )
    found = find_fit(ModelMetadata(stored, digest=digest), AutoParameters())
    assert not isinstance(found, str), found
    assert found[0].form.asked_below is None, "the judge that ships is refused (docs/research/judge.md)"
