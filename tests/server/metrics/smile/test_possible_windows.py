"""Choosing windows by approximate vectors: the same result, for fewer exact ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.metrics.smile.test_rounds import PHRASE, WORDS, AnyTable
from tests.support.examples import example_count

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL, ModelMetadata
from gradewire_server.domain.needs import Embed, EmbedRoughly, Need, Tier, Vectors
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.possible_windows import FEW_WINDOWS

VERBOSE = "one two three four five six seven eight nine ten eleven twelve"


class RoughTable(AnyTable):
    """Turns every vector that is asked for roughly by up to an angle, which bounds the error of its cosines."""

    def __init__(self, error_radians: float) -> None:
        super().__init__()
        self._error = error_radians

    def _answer(self, need: Need) -> Any:
        if not isinstance(need, EmbedRoughly):
            return super()._answer(need)
        if self.failure is not None:
            return self.failure
        exact = super()._answer(Embed(need.model, need.texts, Tier.WINDOW))
        turned = []
        for text, (x, y) in zip(need.texts, exact.values, strict=True):
            draw = np.random.default_rng([7, *text.encode()])
            angle = np.arctan2(y, x) + self._error * draw.uniform(-1, 1)
            turned.append((np.cos(angle), np.sin(angle)))
        return Vectors(np.array(turned, np.float32), exact.truncated)


def rough(error: float) -> ModelMetadata:
    return ModelMetadata(rough_cosine_error=error)


@given(
    prediction=st.lists(WORDS, min_size=1, max_size=30).map(" ".join),
    references=st.lists(PHRASE, min_size=1, max_size=4).map(tuple),
    preset=st.sampled_from([SmilePreset.V1, SmilePreset.PAPER, SmilePreset.REFERENCE_CODE]),
    error=st.sampled_from([0.0, 1e-3, 0.05, 0.5]),
)
@settings(max_examples=example_count(50))
def test_the_result_is_that_of_exact_vectors(
    prediction: str, references: tuple[str, ...], preset: SmilePreset, error: float
) -> None:
    item, parameters = Item("1", "q", references, prediction), SmileParameters(preset=preset)
    expected = AnyTable().run(Smile().score(item, parameters, NO_MODEL))
    found = RoughTable(error).run(Smile().score(item, parameters, rough(error + 1e-6)))
    assert found.score == pytest.approx(expected.score, abs=1e-6)
    assert found.matched_reference == expected.matched_reference
    assert found.parts.best_window == expected.parts.best_window


def test_only_windows_that_can_be_the_closest_are_embedded_exactly() -> None:
    table = RoughTable(1e-3)
    result = table.run(Smile().score(Item("1", "q", ("zero",), VERBOSE), SmileParameters(), rough(1e-3)))
    assert result.status is Status.OK
    first, second = table.rounds
    every = [need.texts for need in first if isinstance(need, EmbedRoughly)]
    assert every == [tuple(VERBOSE.split())]
    (exact,) = second
    assert isinstance(exact, Embed)
    assert 1 <= len(exact.texts) < len(VERBOSE.split()) // 2
    assert result.parts.best_window in exact.texts


def test_few_windows_are_embedded_exactly_at_once() -> None:
    table = RoughTable(1e-3)
    few = " ".join(VERBOSE.split()[:FEW_WINDOWS])
    table.run(Smile().score(Item("1", "q", ("zero",), few), SmileParameters(), rough(1e-3)))
    assert len(table.rounds) == 1
    assert not any(isinstance(need, EmbedRoughly) for need in table.rounds[0])


def test_a_text_that_was_cut_is_told() -> None:
    table = RoughTable(1e-3)
    table.truncated = frozenset({"twelve"})
    exact = AnyTable()
    exact.truncated = table.truncated
    item = Item("1", "q", ("zero",), VERBOSE)
    found = table.run(Smile().score(item, SmileParameters(), rough(1e-3)))
    assert found.warnings == exact.run(Smile().score(item, SmileParameters(), NO_MODEL)).warnings


def test_a_failure_is_handed_on() -> None:
    table = RoughTable(1e-3)
    table.failure = Failure(Status.TIMEOUT, "too late")
    result = table.run(Smile().score(Item("1", "q", ("zero",), VERBOSE), SmileParameters(), rough(1e-3)))
    assert (result.status, result.score) == (Status.TIMEOUT, None)
