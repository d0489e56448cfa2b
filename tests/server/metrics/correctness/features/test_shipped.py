"""Rules and values through a whole metric: numbers by the fits that ship, denials whatever the fit."""

from dataclasses import replace

import pytest
from tests.server.metrics.correctness.features.test_measure import inputs
from tests.server.metrics.correctness.test_metric import METADATA
from tests.support.engines.correctness_fits import DIGEST
from tests.support.engines.programs import Table, at

from gradewire_models.catalog.loading import load_catalog
from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Warning  # noqa: A004 - as domain
from gradewire_server.metrics.correctness.features.catalog import FEATURES, RULED_OUT
from gradewire_server.metrics.correctness.features.measure import features
from gradewire_server.metrics.correctness.fit import CorrectnessFit, read_fit
from gradewire_server.metrics.correctness.metric import VERSION, Correctness, CorrectnessParameters


@pytest.fixture(params=["all-MiniLM-L6-v2", "all-mpnet-base-v2", "sfve-mini"])
def fit(request: pytest.FixtureRequest) -> CorrectnessFit:
    (shipped,) = (
        each
        for each in load_catalog()[request.param].calibrations
        if each.metric == "correctness" and not each.parameters
    )
    return read_fit(shipped.fit, FEATURES, version=VERSION)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [("1000", "1,000"), ("There are 1,000 of them.", "1000"), ("3", "\u0663"), ("two", "2"), ("the 8th", "eighth")],
)
def test_equal_numbers_are_right_however_they_are_written(fit: CorrectnessFit, prediction: str, reference: str) -> None:
    """With terms of SMILE as they are where spellings differ: it sees no shared word."""
    item = inputs(prediction, reference, question="How many are there?")
    apart = replace(item.terms, sentence=0.72, keyword=0.8, exact=0.0)
    assert fit(features(replace(item, terms=apart))) > 0.5
    other = inputs("7", reference, question="How many are there?")
    assert fit(features(replace(other, terms=apart))) < 0.5


@pytest.mark.parametrize(("prediction", "overruled"), [("big cat", False), ("not cat", True)])
def test_a_denial_that_the_trees_call_right_is_called_wrong_and_uncertain(prediction: str, overruled: bool) -> None:  # noqa: FBT001
    parameters = CorrectnessParameters(model=f"m@{DIGEST}", confidence=0.8)
    table = Table({prediction: at(0), "cat": at(10)})
    result = table.run(Correctness().score(Item("1", "Which?", ("cat",), prediction), parameters, METADATA))
    assert result.correct is not overruled
    assert (result.score == RULED_OUT) is overruled
    assert (result.parts.uncertain, Warning.UNCERTAIN in result.warnings) == (overruled, overruled)
