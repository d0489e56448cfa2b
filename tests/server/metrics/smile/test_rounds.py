"""References that are said word for word save their windows and never change the result."""

import dataclasses
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.programs import Table, at

import gradewire_server.metrics.smile.metric as smile_module
from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, EmbedTokens, Tier
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.texts import SmileTexts, smile_texts

WORDS = st.sampled_from(["w1", "w2", "w3", "w4", "w5"])
PHRASE = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


class AnyTable(Table):
    """Vectors for every text: a direction drawn from the text alone."""

    def __init__(self) -> None:
        super().__init__(_Directions())


class _Directions(dict[str, Any]):
    def __missing__(self, text: str) -> Any:
        random = np.random.default_rng(list(text.encode()))
        return at(float(random.uniform(0, 180)))


def exhaustive_texts(prediction: str, references: tuple[str, ...], sentences: tuple[str, ...]) -> SmileTexts:
    """As smile_texts, but no reference counts as held: every window is looked at."""
    texts = smile_texts(prediction, references, sentences)
    return dataclasses.replace(texts, held=()).asking(tuple(range(len(references))))


@given(
    prediction=st.lists(WORDS, min_size=1, max_size=12).map(" ".join),
    references=st.lists(PHRASE, min_size=1, max_size=4).map(tuple),
    preset=st.sampled_from([SmilePreset.V1, SmilePreset.PAPER, SmilePreset.REFERENCE_CODE]),
    weight=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
)
def test_looking_at_fewer_windows_changes_nothing(
    prediction: str, references: tuple[str, ...], preset: SmilePreset, weight: float
) -> None:
    item = Item("1", "q", references, prediction)
    parameters = SmileParameters(preset=preset, sentence_weight=weight)
    found = AnyTable().run(Smile().score(item, parameters, NO_MODEL))
    original = smile_module.smile_texts
    try:
        smile_module.smile_texts = exhaustive_texts  # the slow way, for comparison
        expected = AnyTable().run(Smile().score(item, parameters, NO_MODEL))
    finally:
        smile_module.smile_texts = original
    assert abs(found.score - expected.score) < 1e-6
    assert found.matched_reference == expected.matched_reference
    for name in ("sentence", "keyword", "exact", "lexical"):
        assert abs(getattr(found.parts, name) - getattr(expected.parts, name)) < 1e-6


def test_a_reference_said_word_for_word_asks_for_sentences_only() -> None:
    prediction = "w1 w2 w3 w5 w5 w2 w4"
    for preset in SmilePreset:
        table = Table({prediction: at(0), "w3": at(0), "w8 w9": at(90)})
        item = Item("1", "q", ("w3", "w8 w9"), prediction)
        result = table.run(Smile().score(item, SmileParameters(preset=preset), NO_MODEL))
        assert (result.matched_reference, result.parts.keyword, result.parts.best_window) == (0, 1.0, "w3")
        (needs,) = table.rounds
        assert [(type(need), need.tier) for need in needs] == [(Embed, Tier.PREDICTION), (Embed, Tier.REFERENCE)]


def test_another_reference_that_can_still_win_is_looked_at() -> None:
    # Both are held in parts; "w2 w1" has all its words in the answer (m = 1) and the better sentence: its bound is 1.
    vectors = {"w1 w3 w2 w4": at(0), "w4": at(90), "w2 w1": at(0), "w1 w3": at(40), "w3 w2": at(50), "w2 w4": at(60)}
    for preset, kinds in ((SmilePreset.V1, [Embed, Embed]), (SmilePreset.FAST, [Embed, Embed])):
        table = Table(vectors)
        item = Item("1", "q", ("w4", "w2 w1"), "w1 w3 w2 w4")
        result = table.run(Smile().score(item, SmileParameters(preset=preset), NO_MODEL))
        # w4: .3 * .5 + .7 * (1 + 1) / 2 = .85; w2 w1: k = (1 + cos 40°) / 2 = .88302, .3 + .7 * .94151 = .95906
        assert abs(result.score - 0.95906) < 1e-5
        assert (result.matched_reference, result.parts.best_window) == (1, "w1 w3")
        first, second = table.rounds
        assert [type(need) for need in second] == kinds
        assert not any(isinstance(need, EmbedTokens) for need in (*first, *second))
