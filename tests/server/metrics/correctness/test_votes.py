"""The fit `votes`: its features by hand, and which fit a request gets."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.correctness_fits import DIGEST, FORM
from tests.support.engines.hash_engine import HashEngine

from gradewire_proto.parts import CorrectnessParts
from gradewire_server.domain.items import Item, MetricResult, Status
from gradewire_server.domain.metric import Calibration, ModelMetadata, ParameterError
from gradewire_server.metrics.correctness.features import FEATURES, GRADER, VOTE_FEATURES, features_of, vote_features
from gradewire_server.metrics.correctness.fit import VOTES, fit_id
from gradewire_server.metrics.correctness.metric import VERSION, Correctness, CorrectnessParameters, fit_of
from gradewire_server.scoring import MetricRequest, Scorer

ITEM = Item("1", "what color?", ("white", "White", "off white", "white and grey"), "The white.")


def fit_on(feature: str, threshold: float, **changes: Any) -> str:
    """Return a fit with log-odds of -1, and 1 if the feature is above the threshold."""
    stump = {
        "roots": [0],
        "feature": [0, -1, -1],
        "threshold": [threshold, 0.0, 0.0],
        "missing_left": [True] * 3,
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "value": [0.0, -1.0, 1.0],
    }
    features = [{"name": feature, "monotone": 1, "width": 0.25 if feature == "grader" else 0.0}]
    return json.dumps(FORM | {"features": features, "trees": stump, "base": 0.0} | changes)


def stored(text: str, **parameters: str) -> Calibration:
    return Calibration("correctness", VERSION, tuple(parameters.items()), None, described="catalog: fitted", fit=text)


USUAL, OF_VOTES = fit_on("exact", 0.9), fit_on("votes", 0.4)
WITH_GRADER = fit_on("grader", 0.0, grader_digest="6" * 64)
METADATA = ModelMetadata(calibrations=(stored(OF_VOTES, fit=VOTES), stored(USUAL)), digest=DIGEST)


async def scored(item: Item, parameters: CorrectnessParameters, metadata: ModelMetadata = METADATA) -> MetricResult:
    results: list[MetricResult] = []
    await Scorer(HashEngine().ports).score(
        [item],
        [MetricRequest(Correctness(), parameters, metadata)],
        emit=lambda _item, _metric, done: results.append(done.result),
    )
    return results[0]


def features(result: MetricResult) -> dict[str, float]:
    assert isinstance(result.parts, CorrectnessParts)
    return dict(result.parts.features)


@pytest.mark.parametrize(
    ("prediction", "references", "votes", "top"),
    [
        ("white", ["white"] * 6 + ["cream", "grey", "grey"], 6 / 9, 6 / 9),
        ("grey", ["white"] * 6 + ["cream", "grey", "grey"], 2 / 9, 6 / 9),
        ("red", ["white"] * 6 + ["cream", "grey", "grey"], 0, 6 / 9),
        # VQA's normal form: no articles, no marks, digits for words.
        ("Two.", ["2", "two", "the 2", "3"], 3 / 4, 3 / 4),
    ],
)
def test_votes_by_hand(prediction: str, references: list[str], votes: float, top: float) -> None:
    assert vote_features(Item("1", "", tuple(references), prediction)).tolist() == pytest.approx([votes, top])


@given(st.text(max_size=9), st.lists(st.text(max_size=9) | st.sampled_from(["yes", "no"]), min_size=1, max_size=12))
def test_votes_of_any_texts(prediction: str, references: list[str]) -> None:
    votes, top = vote_features(Item("1", "", tuple(references), prediction))
    assert 0 <= votes <= top <= 1
    assert votes == pytest.approx(round(votes * len(references)) / len(references))
    assert vote_features(Item("1", "", (*references, prediction), prediction))[0] > 0
    turned = vote_features(Item("1", "", tuple(reversed(references)), prediction))
    assert turned.tolist() == [votes, top]


def test_features_of_votes_come_before_the_graders() -> None:
    assert features_of("") == FEATURES
    assert features_of("", votes=True) == (*FEATURES, *VOTE_FEATURES)
    assert features_of("words", votes=True)[-1] == GRADER


async def test_the_fit_reads_the_votes_and_the_usual_fit_stays() -> None:
    asked = CorrectnessParameters(model="hash", fit=VOTES).resolved(METADATA)
    assert (asked.fit, asked.grader) == (fit_id(OF_VOTES), "")
    two_of_four = await scored(ITEM, asked)
    assert features(two_of_four)["votes"] == 0.5
    assert (two_of_four.score, two_of_four.correct) == (pytest.approx(0.5 + 0.225), True)
    one_of_four = await scored(replace(ITEM, prediction="off white"), asked)
    assert (one_of_four.score, one_of_four.correct) == (pytest.approx(0.5 - 0.225), False)
    usual = CorrectnessParameters(model="hash").resolved(METADATA)
    assert usual.fit == fit_id(USUAL)
    alone = replace(METADATA, calibrations=(stored(USUAL),))
    assert await scored(ITEM, usual) == await scored(ITEM, usual, alone)
    assert "votes" not in features(await scored(ITEM, usual))


async def test_the_fits_digits_name_it_too() -> None:
    named, digits = (CorrectnessParameters(model="hash", fit=fit) for fit in (VOTES, fit_id(OF_VOTES)[:8]))
    assert digits.resolved(METADATA) == named.resolved(METADATA)
    assert named.resolved(METADATA).calibration == "catalog: fitted"
    with pytest.raises(ParameterError, match=f"the model's fit is {fit_id(USUAL)}, not 00000000"):
        CorrectnessParameters(model="hash", fit="0" * 8).resolved(METADATA)
    with pytest.raises(ParameterError, match="8 to 64 hex digits"):
        CorrectnessParameters(model="hash", fit="vote")


async def test_features_without_a_fit() -> None:
    with_votes, without = [
        await scored(ITEM, CorrectnessParameters(model="hash", features_only=True, fit=fit)) for fit in (VOTES, None)
    ]
    assert features(with_votes) == {**features(without), "votes": 0.5, "votes_top": 0.5}
    assert with_votes.score == without.score


def test_votes_need_no_grader() -> None:
    fits = (stored(WITH_GRADER, grader="words"), stored(OF_VOTES, fit=VOTES), stored(USUAL))
    metadata = replace(METADATA, calibrations=fits)
    assert CorrectnessParameters.usual_graders(metadata) == ("words",)
    for fit in (VOTES, fit_id(OF_VOTES)[:9]):
        assert CorrectnessParameters.usual_graders(metadata, fit) == ()
    # The identifier names `none`, because without it the usual grader would be asked.
    assert CorrectnessParameters(model="hash", fit=VOTES).resolved(metadata).grader == "none"
    refused = fit_of(replace(metadata, grader=f"words@{'6' * 64}"), VOTES)
    assert refused == "the fit votes works without a grader. Omit grader"


async def test_a_model_without_the_fit_says_so() -> None:
    metadata = replace(METADATA, calibrations=(stored(USUAL),))
    with pytest.raises(ParameterError, match="this encoder has no fit votes for correctness"):
        CorrectnessParameters(model="hash", fit=VOTES).resolved(metadata)
    result = await scored(ITEM, CorrectnessParameters(model="hash", fit=VOTES), metadata)
    assert (result.status, result.score) == (Status.INVALID_PARAMETER, None)
    # Without a grader in the request, the usual one is named; leaving it out would not help.
    refused = fit_of(replace(metadata, grader=f"words@{'6' * 64}"), VOTES)
    assert isinstance(refused, str)
    assert refused.startswith("this encoder has no fit votes for correctness")
    # A fit of votes alone is no fit for other requests.
    only = replace(METADATA, calibrations=(stored(OF_VOTES, fit=VOTES),))
    with pytest.raises(ParameterError, match="this encoder has no fit for correctness"):
        CorrectnessParameters(model="hash").resolved(only)
