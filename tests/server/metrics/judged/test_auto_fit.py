"""Stored fits of `auto`: what is read, what is refused, and which band a risk or budget has."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.cascade_fits import FORM, auto_fit_text, metadata_with, stored_auto_fit
from tests.support.engines.correctness_fits import fit_text, stored_fit

from gradewire_server.domain.metric import ModelMetadata, ParameterError
from gradewire_server.metrics.correctness.fit import fit_id
from gradewire_server.metrics.judged.auto_fit import AutoFit, AutoParameters, Band, find_fit, read_auto_fit

ENTRIES = [{"share": 0.02, "accepts_from": 0.9}]


def read(**changes: Any) -> AutoFit:
    fit = read_auto_fit(auto_fit_text(**changes))
    assert isinstance(fit, AutoFit), fit
    return fit


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": 2}, "format"),
        ({"metric_version": 2}, "is for version 2 of the metric"),
        ({"delta": 0.0}, "delta"),
        ({"risks": []}, "risks"),
        ({"risks": [*ENTRIES, {"share": 0.01, "accepts_from": 0.8}]}, "must be in ascending order"),
        ({"risks": [*ENTRIES, {"share": 0.05, "accepts_from": 0.95}]}, "must not have a higher accepts_from"),
        (
            {"budgets": [{"share": 0.0, "accepts_from": 0.9}, {"share": 0.5, "accepts_from": 0.6}]},
            "must not have a lower accepts_from",
        ),
        ({"budgets": ENTRIES}, "the first budget must be 0"),
        ({"correctness_fit": "no"}, "correctness_fit"),
        ({"asked_below": 0.2}, "asked_below"),
    ],
)
def test_what_breaks_a_promise_is_not_used(changes: dict[str, Any], told: str) -> None:
    why = read_auto_fit(auto_fit_text(**changes))
    assert isinstance(why, str)
    assert told in why


def test_a_text_that_is_no_json_is_told() -> None:
    assert isinstance(read_auto_fit("{"), str)


def test_a_share_between_two_fitted_ones_takes_the_smaller() -> None:
    fit = read()
    assert fit.band(AutoParameters(risk=0.19)).accepts_from == 0.9
    assert fit.band(AutoParameters(risk=0.2)).accepts_from == 0.6
    assert fit.band(AutoParameters(judge_budget=0.99)).accepts_from == 0.75
    assert math.isinf(fit.band(AutoParameters(judge_budget=1)).accepts_from)


def test_a_fit_that_names_correctness_by_its_former_name_is_read_and_keeps_its_identity() -> None:
    text = auto_fit_text().replace("correctness_fit", "calibrated_fit")
    found = read_auto_fit(text)
    assert isinstance(found, AutoFit)
    assert found.form == read().form
    assert found.identity == fit_id(text)


@given(st.tuples(st.floats(0.02, 0.99), st.floats(0.02, 0.99)), st.floats(0.5, 2))
def test_a_larger_risk_never_asks_about_more(risks: tuple[float, float], confidence: float) -> None:
    smaller, larger = (read().band(AutoParameters(risk=risk)) for risk in sorted(risks))
    assert smaller.holds(confidence) or not larger.holds(confidence)
    assert smaller.asks(confidence) or not larger.asks(confidence)


@given(st.tuples(st.floats(0, 1), st.floats(0, 1)), st.floats(0.5, 2))
def test_a_larger_budget_never_asks_about_less(budgets: tuple[float, float], confidence: float) -> None:
    smaller, larger = (read().band(AutoParameters(judge_budget=budget)) for budget in sorted(budgets))
    assert larger.asks(confidence) or not smaller.asks(confidence)


def test_a_verdict_of_the_edge_itself_is_accepted() -> None:
    band = Band(0.9, 3.0)
    assert (band.holds(0.9), band.asks(0.9)) == (False, False)
    assert (band.holds(0.89), band.asks(0.89)) == (True, True)


def test_probabilities_of_a_band() -> None:
    assert Band(0.9, 3.0).probabilities == (pytest.approx(0.1), 0.9)
    assert Band(2.0, 3.0).probabilities == (0.0, 1.0)
    assert Band(math.inf, 3.0).probabilities == (0.0, 1.0)


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        (metadata_with(), "has no fit for auto with lave and the judge j"),
        (metadata_with(stored_auto_fit(auto_fit_text())), ""),
        (metadata_with(stored_auto_fit(auto_fit_text(), judge="judge_verdict")), "no fit"),
        (metadata_with(stored_auto_fit(auto_fit_text(), caption="true")), "no fit"),
        (metadata_with(stored_auto_fit(auto_fit_text(judge_digest="8" * 64))), "no fit"),
        (metadata_with(stored_auto_fit(auto_fit_text(model_digest="8" * 64))), "for an encoder with the digest 8888"),
        (metadata_with(stored_auto_fit(auto_fit_text(prompt_digest="8" * 64))), "made for the prompt 8888"),
        (
            metadata_with(stored_auto_fit(auto_fit_text(correctness_fit="8" * 12))),
            "the correctness fit 888888888888",
        ),
        (metadata_with(stored_auto_fit(auto_fit_text(delta=2))), "cannot be used (delta"),
    ],
)
def test_a_fit_is_for_one_encoder_judge_prompt_and_correctness_fit(metadata: ModelMetadata, told: str) -> None:
    found = find_fit(metadata, AutoParameters())
    if told:
        assert isinstance(found, str)
        assert told in found
        assert "gradewire calibrate FILE --metric auto" in found
    else:
        assert not isinstance(found, str)
        assert found[0].form.judge == "lave"


def test_without_a_fit_of_correctness_there_is_none_of_auto() -> None:
    metadata = ModelMetadata((stored_auto_fit(auto_fit_text()),), digest=FORM["model_digest"])
    found = find_fit(metadata, AutoParameters())
    assert isinstance(found, str)
    assert "has no fit for correctness" in found


def test_where_no_judge_is_known_any_fit_for_the_metric_will_do() -> None:
    metadata = metadata_with(stored_auto_fit(auto_fit_text(judge_digest="8" * 64)), judge="")
    assert not isinstance(find_fit(metadata, AutoParameters()), str)


def test_parameters_name_the_fit_and_whose_it_is() -> None:
    resolved = AutoParameters(fit=None).resolved(metadata_with(stored_auto_fit(auto_fit_text())))
    assert resolved.fit == read().identity
    assert resolved.calibration == "user: fitted on ten rows"
    assert stored_fit(fit_text())[0].metric == "correctness"


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"fit": "12345678"}, "fit"),
        ({"risk": 0.01}, "risk"),
    ],
)
def test_another_fit_and_a_risk_that_none_was_fitted_for_are_refused(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        AutoParameters(**parameters).resolved(metadata_with(stored_auto_fit(auto_fit_text())))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"risk": 0.1, "judge_budget": 0.1}, "judge_budget"),
        ({"risk": 0.0}, "risk"),
        ({"risk": 1.0}, "risk"),
        ({"risk": math.nan}, "risk"),
        ({"judge_budget": 1.1}, "judge_budget"),
        ({"sample": -0.1}, "sample"),
        ({"sample": math.nan}, "sample"),
        ({"fit": "XYZ"}, "fit"),
        ({"judge": "smile"}, "judge"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        AutoParameters(**parameters)
    assert caught.value.field == field


def test_the_risk_is_one_in_twenty_unless_a_budget_is_given() -> None:
    assert AutoParameters().risk == 0.05
    assert AutoParameters(judge_budget=0.2).risk is None
