"""Choosing windows by approximate vectors: the same result, for fewer exact ones."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import token_vectors
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

import gradewire_server.metrics.smile.metric as smile_module
from gradewire_proto.choices import SmilePreset
from gradewire_server.domain.items import (
    Failure,
    Item,
    ResultWarning,
    Status,
)
from gradewire_server.domain.metric import NO_MODEL, ModelMetadata
from gradewire_server.domain.needs import Embed, EmbedRoughly, EmbedTokens, Need, Tier, TokenVectors, Vectors
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.rounds import FEW_TOKENS, NEAR_TIE, SHORTLIST, closest_in_context, shortlist
from gradewire_server.metrics.smile.texts import SmileTexts, smile_texts

WORDS = st.sampled_from(["w1", "w2", "w3", "w4", "w5"])
PHRASE = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


class AnyTable(Table):
    """Vectors for every text: a direction drawn from the text alone, unless it is given."""

    def __init__(self, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(_Directions(given))


class _Directions(dict[str, Any]):
    def __missing__(self, text: str) -> Any:
        random = np.random.default_rng(list(text.encode()))
        return at(float(random.uniform(0, 180)))


def exhaustive_texts(prediction: str, references: tuple[str, ...], sentences: tuple[str, ...]) -> SmileTexts:
    """As smile_texts, but no reference counts as held: every window is looked at."""
    texts = smile_texts(prediction, references, sentences)
    return dataclasses.replace(texts, held=()).with_open(tuple(range(len(references))))


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


VERBOSE = " ".join(f"n{number}" for number in range(60))


class RoughTable(AnyTable):
    """Turns every vector that is asked for roughly by up to an angle, which bounds the error of its cosines."""

    def __init__(self, error_radians: float, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(given)
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


class WideTable(AnyTable):
    """Vectors with as many dimensions as an encoder's, whose products round differently in products of other shapes."""

    def _answer(self, need: Need) -> Any:
        assert isinstance(need, (Embed, EmbedRoughly))
        drawn = np.array([np.random.default_rng(list(text.encode())).normal(size=384) for text in need.texts])
        vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
        return Vectors(vectors, np.zeros(len(vectors), np.bool_))


@pytest.mark.parametrize("error", [0.01, 0.06], ids=["a few windows near", "many windows near"])
def test_the_score_has_the_bits_of_exact_vectors(error: float) -> None:
    for number in range(40):
        references = tuple(" ".join(f"r{number}{letter}" for letter in letters) for letters in ("a", "bc", "d", "ef"))
        item, parameters = Item("1", "q", references, VERBOSE), SmileParameters(preset=SmilePreset.REFERENCE_CODE)
        expected = WideTable().run(Smile().score(item, parameters, NO_MODEL))
        assert WideTable().run(Smile().score(item, parameters, rough(error))) == expected


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
    few = " ".join(VERBOSE.split()[: FEW_TOKENS // 3])  # a word and two special tokens each
    table.run(Smile().score(Item("1", "q", ("zero",), few), SmileParameters(), rough(1e-3)))
    assert len(table.rounds) == 1
    assert not any(isinstance(need, EmbedRoughly) for need in table.rounds[0])


def exact_texts(table: RoughTable) -> list[tuple[str, ...]]:
    """The texts of each round after the first that are embedded exactly."""
    return [need.texts for needs in table.rounds[1:] for need in needs if isinstance(need, Embed)]


def test_of_many_near_windows_a_few_are_embedded_first_and_only_what_they_leave_after_that() -> None:
    # Of windows at 0°, 1°, … 59°, those to 41° are within .25 of cos 0°, to 28° within .125, to 16° within .125 / 3.
    vectors = {text: at(degrees) for degrees, text in enumerate(VERBOSE.split())}
    table = RoughTable(0.0, vectors | {"zero": at(0)})
    result = table.run(Smile().score(Item("1", "q", ("zero",), VERBOSE), SmileParameters(), rough(0.125)))
    first, second = exact_texts(table)
    assert first == tuple(VERBOSE.split()[:17])
    assert second == tuple(VERBOSE.split()[:29])
    assert result.parts.best_window == "n0"


def test_a_reference_that_cannot_win_has_no_exact_windows() -> None:
    vectors = {text: at(90 + degrees) for degrees, text in enumerate(VERBOSE.split())}
    table = RoughTable(0.0, vectors | {VERBOSE: at(0), "near": at(5), "far off": at(180)})
    item = Item("1", "q", ("near", "far off"), VERBOSE)
    result = table.run(Smile().score(item, SmileParameters(sentence_weight=0.9), rough(0.05)))
    assert result.matched_reference == 0
    assert all(" " not in text for texts in exact_texts(table) for text in texts)


def test_a_text_that_was_cut_is_told() -> None:
    table = RoughTable(1e-3)
    table.truncated = frozenset({"n59"})
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


PREDICTION = "w0, w1 w2! w3 w4"


def tokens_of(text: str, vectors: dict[str, tuple[float, float]], *, truncated: bool = False) -> TokenVectors:
    """One token per key of `vectors`, in the order of the text, where the key stands first."""
    found = sorted((text.index(token), token) for token in vectors)
    return TokenVectors(
        sentence=np.array(at(0), dtype=np.float32),
        tokens=np.array([vectors[token] for _, token in found], dtype=np.float32),
        offsets=np.array([(start, start + len(token)) for start, token in found], dtype=np.int32),
        ids=np.arange(len(found), dtype=np.int32),
        truncated=truncated,
    )


def texts_for(*references: str, prediction: str = PREDICTION) -> SmileTexts:
    return smile_texts(prediction, references, references)


def chosen(texts: SmileTexts, tokens: TokenVectors, *keywords: tuple[float, float]) -> Any:
    return shortlist(texts, tokens, np.array(keywords, dtype=np.float32))


IN_CONTEXT = {"w0": at(80), "w1": at(10), "w2": at(50), "w3": at(20), "w4": at(30)}


def test_the_three_closest_windows_in_order_of_position() -> None:
    assert chosen(texts_for("x"), tokens_of(PREDICTION, IN_CONTEXT), at(0)) == {1: ("w1", "w3", "w4")}


def test_closest_to_any_reference_of_the_length() -> None:
    # 0° draws w1 (10°) and w3 (20°), 80° draws w0 (0° away); w4 and w2 are 30° away from the nearest.
    texts = texts_for("x", "y")
    assert chosen(texts, tokens_of(PREDICTION, IN_CONTEXT), at(0), at(80)) == {1: ("w0", "w1", "w3")}


def test_a_window_is_the_mean_of_its_words_tokens() -> None:
    # "w0 w1" lies at 84°, because vectors keep their length (unit vectors: 45°) and because the comma, which would draw
    # it to 0°, is no part of a word.
    text = "w0, w1 w2 w3 w4 w5"
    vectors = {"w0": (1.0, 0.0), ",": (99.0, 0.0), "w1": (0.0, 9.0)} | dict.fromkeys(("w2", "w3", "w4", "w5"), at(60))
    found = chosen(texts_for("x y", prediction=text), tokens_of(text, vectors), at(0))
    assert found == {2: ("w2 w3", "w3 w4", "w4 w5")}


def test_near_ties_with_the_last_are_kept() -> None:
    # cos 30° = .8660; 30.05° is .00044 less: kept. 31° is .0089 less: not.
    vectors = {"w0": at(30.05), "w1": at(10), "w2": at(20), "w3": at(30), "w4": at(31)}
    assert chosen(texts_for("x"), tokens_of(PREDICTION, vectors), at(0)) == {1: ("w0", "w1", "w2", "w3")}


def test_a_word_of_several_tokens_counts_them_all() -> None:
    text = "aabb cc dd ee"
    vectors = {"aa": at(90), "bb": at(0), "cc": at(50), "dd": at(40), "ee": at(60)}  # "aabb": their mean, 45°
    assert chosen(texts_for("x", prediction=text), tokens_of(text, vectors), at(0)) == {1: ("aabb", "cc", "dd")}


def test_words_the_encoder_did_not_read_are_not_shortlisted() -> None:
    vectors = {token: IN_CONTEXT[token] for token in ("w0", "w2", "w3")}
    vectors["w1"] = at(70)
    tokens = tokens_of(PREDICTION, vectors, truncated=True)
    assert chosen(texts_for("x"), tokens, at(30)) == {1: ("w1", "w2", "w3")}
    assert chosen(texts_for("x y"), tokens, at(30)) == {2: ("w0 w1", "w1 w2", "w2 w3")}


def test_where_no_window_was_read_the_first_ones_are_taken() -> None:
    tokens = tokens_of(PREDICTION, {"w0": at(0)}, truncated=True)
    assert chosen(texts_for("x y"), tokens, at(30)) == {2: ("w0 w1", "w1 w2", "w2 w3")}


def test_a_repeated_window_is_judged_by_its_best_place_and_named_once() -> None:
    text = "ab cd ef ab gh"
    tokens = TokenVectors(
        sentence=np.array(at(0), dtype=np.float32),
        tokens=np.array([at(90), at(10), at(80), at(0), at(20)], dtype=np.float32),
        offsets=np.array([(0, 2), (3, 5), (6, 8), (9, 11), (12, 14)], dtype=np.int32),
        ids=np.arange(5, dtype=np.int32),
        truncated=False,
    )
    assert chosen(texts_for("x", prediction=text), tokens, at(0)) == {1: ("cd", "ab", "gh")}


VECTORS = {
    "x": at(0),
    "w1": at(50),  # in context the closest, alone it is not
    "w3": at(70),
    "w4": at(40),
}


def run(table: Table, *references: str, prediction: str = PREDICTION) -> Any:
    item = Item("1", "", references, prediction)
    return table.run(Smile().score(item, SmileParameters(preset="fast"), NO_MODEL))


def test_the_score_is_that_of_the_shortlist_alone() -> None:
    # s: y at 0°, reference at 0°: 1. k = (1 + cos 40°)/2 = .88302, m = 0, l = .44151: .3 + .7·.44151 = .60906
    table = Table(VECTORS, tokens={PREDICTION: tokens_of(PREDICTION, IN_CONTEXT)})
    result = run(table, "x")
    assert result.score == pytest.approx(0.60906, abs=1e-5)
    assert result.parts.best_window == "w4"
    first, second = table.rounds
    assert [(type(need), need.tier) for need in first] == [
        (Embed, Tier.REFERENCE),  # keywords
        (EmbedTokens, Tier.PREDICTION),
        (Embed, Tier.REFERENCE),  # sentences
    ]
    assert [(need.texts, need.tier) for need in second if isinstance(need, Embed)] == [
        (("w1", "w3", "w4"), Tier.WINDOW)
    ]


def test_few_windows_need_no_ranking() -> None:
    vectors = {"a b c": at(0), "a": at(0), "b": at(10), "c": at(20), "x": at(0)}
    table = Table(vectors)
    result = run(table, "x", prediction="a b c")
    assert result.score == pytest.approx(0.3 + 0.7 * 0.5)
    assert len(table.rounds) == 1


def test_a_cut_prediction_is_a_warning() -> None:
    table = Table(VECTORS, tokens={PREDICTION: tokens_of(PREDICTION, IN_CONTEXT, truncated=True)})
    assert ResultWarning.TRUNCATED in run(table, "x").warnings


@settings(max_examples=example_count(60))
@given(
    st.lists(st.sampled_from([f"v{i}," for i in range(12)] + ["sub-word", "U.S."]), min_size=1, max_size=40),
    st.lists(st.lists(st.sampled_from([f"v{i}" for i in range(14)]), min_size=1, max_size=4), min_size=1, max_size=4),
)
def test_the_shortlist_is_what_the_definition_says(words: list[str], references: list[list[str]]) -> None:
    """Against plain loops: mean of the tokens of a window's words, largest cosine over the references of its length."""
    text = " ".join(words)
    texts = texts_for(*map(" ".join, references), prediction=text)
    tokens = token_vectors(text, max_tokens=1000)
    keywords = np.array([token_vectors(keyword, 100).sentence for keyword in texts.open_keywords])
    found = shortlist(texts, tokens, keywords)
    bounds = np.cumsum([0] + [len(word) + 1 for word in words])
    for length, windows in texts.candidates.items():
        if len(windows) <= SHORTLIST:
            assert found[length] == windows
            continue
        best: dict[str, float] = {}
        for start in range(len(words) - length + 1):
            inside = [
                vector
                for vector, (a, b) in zip(tokens.tokens, tokens.offsets, strict=True)
                if bounds[start] <= a
                and b <= bounds[start + length]
                and (text[a:b] not in {",", "."} or text[b : b + 1].isalpha())
            ]
            mean = np.mean(inside, axis=0)
            cosine = max(keywords[i] @ mean / np.linalg.norm(mean) for i in texts.rows_of[length])
            window = " ".join(texts.words.words[start : start + length])
            best[window] = max(best.get(window, -2.0), float(cosine))
        third = sorted(best.values())[-SHORTLIST]
        assert {window for window, cosine in best.items() if cosine >= third - NEAR_TIE + 1e-5} <= set(found[length])
        assert set(found[length]) <= {window for window, cosine in best.items() if cosine >= third - NEAR_TIE - 1e-5}


PREDICTION_WORDS_IN_CONTEXT = "w0, w1 w2"
SPANS = [(0, 2), (2, 3), (4, 6), (7, 9)]  # w0 , w1 w2


def tokens(*vectors: tuple[float, float], sentence: float = 0, truncated: bool = False) -> TokenVectors:
    """Vectors of the first tokens of PREDICTION, and e(y) at an angle."""
    return TokenVectors(
        sentence=np.array(at(sentence), dtype=np.float32),
        tokens=np.array(vectors, dtype=np.float32),
        offsets=np.array(SPANS[: len(vectors)], dtype=np.int32),
        ids=np.arange(len(vectors), dtype=np.int32),
        truncated=truncated,
    )


def run_words_in_context(table: Table, *references: str) -> Any:
    item = Item("1", "", references, PREDICTION_WORDS_IN_CONTEXT)
    return table.run(Smile().score(item, SmileParameters(preset="one_pass"), NO_MODEL))


def test_the_score_of_the_best_window_in_context() -> None:
    # e(y) and the reference at 0°: s = 1. Windows of 2 words: "w0 w1" lies between 20° and 60°, at 40°; "w1 w2" between
    # 60° and 90°, at 75°; the comma at 180° is no part of a word. k = (1 + cos 40°)/2 = .88302, m = 0, l = .44151:
    # .3 + .7·.44151 = .60906
    table = Table({"x y": at(0)}, tokens={PREDICTION_WORDS_IN_CONTEXT: tokens(at(20), at(180), at(60), at(90))})
    result = run_words_in_context(table, "x y")
    assert result.score == pytest.approx(0.60906, abs=1e-5)
    assert (result.parts.best_window, result.parts.keyword) == ("w0 w1", pytest.approx(0.88302, abs=1e-5))
    (needs,) = table.rounds
    assert [(type(need), need.tier) for need in needs] == [
        (Embed, Tier.REFERENCE),  # keywords
        (EmbedTokens, Tier.PREDICTION),
        (Embed, Tier.REFERENCE),  # sentences
    ]
    assert table.embedded == [{"x y"}]


def test_a_longer_token_weighs_more() -> None:
    # "w0 w1": (1, 0) + (0, 9), at 83.7°; cos = 1/sqrt(82) = .11043 and k = .55522
    table = Table(
        {"x y": at(0)}, tokens={PREDICTION_WORDS_IN_CONTEXT: tokens((1.0, 0.0), at(180), (0.0, 9.0), at(170))}
    )
    assert run_words_in_context(table, "x y").parts.keyword == pytest.approx(0.55522, abs=1e-5)


def test_windows_of_words_that_were_not_read_do_not_count() -> None:
    table = Table(
        {"x y": at(60), "z": at(0)}, tokens={PREDICTION_WORDS_IN_CONTEXT: tokens(at(0), at(0), at(60), truncated=True)}
    )
    result = run_words_in_context(table, "x y")  # "w0 w1" at 30°, "w1 w2" was not read whole
    assert (result.parts.best_window, result.parts.keyword) == ("w0 w1", pytest.approx((1 + 3**0.5 / 2) / 2, abs=1e-6))
    assert ResultWarning.TRUNCATED in result.warnings


def test_where_no_window_was_read_whole_the_prediction_stands_for_the_first() -> None:
    # Three words are asked for, two were read; e(y) at 45°, the reference at 0°: k = (1 + cos 45°)/2 = .85355
    read = tokens(at(0), at(0), at(60), sentence=45, truncated=True)
    result = run_words_in_context(Table({"x y z": at(0)}, tokens={PREDICTION_WORDS_IN_CONTEXT: read}), "x y z")
    assert (result.parts.best_window, result.parts.keyword) == ("w0 w1 w2", pytest.approx(0.85355, abs=1e-5))


def test_a_word_without_a_direction_is_far_from_everything_and_no_error() -> None:
    zero = tokens((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
    assert (
        run_words_in_context(Table({"x": at(0)}, tokens={PREDICTION_WORDS_IN_CONTEXT: zero}), "x").parts.keyword == 0.5
    )


@settings(max_examples=example_count(60))
@given(
    st.lists(st.sampled_from([f"v{i}," for i in range(8)] + ["sub-word", "U.S.", "İzmir"]), min_size=1, max_size=30),
    st.lists(st.lists(st.sampled_from([f"v{i}" for i in range(9)]), min_size=1, max_size=4), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_the_keyword_is_what_the_definition_says(words: list[str], references: list[list[str]], read: int) -> None:
    """Against plain loops over the words' own characters."""
    text = " ".join(words)
    texts = smile_texts(text, tuple(map(" ".join, references)), tuple(map(" ".join, references)))
    vectors = token_vectors(text, max_tokens=read)
    keywords = np.array([token_vectors(keyword, 100).sentence for keyword in texts.open_keywords])
    found = closest_in_context(texts, vectors, keywords)
    assert set(found) == set(texts.open_references)
    ends = np.cumsum([len(word) + 1 for word in words])
    of_word: list[list[Any]] = [[] for _ in words]
    for vector, (begin, end) in zip(vectors.tokens, vectors.offsets, strict=True):
        index = int(np.searchsorted(ends, begin, side="right"))
        if text[begin:end] not in {",", "."} or (end < ends[index] - 1):
            of_word[index].append(vector)
    for length, rows in texts.rows_of.items():
        for row in rows:
            cosines = [
                float(keywords[row] @ mean / np.linalg.norm(mean))
                for start in range(len(words) - length + 1)
                if all(of_word[start : start + length])
                for mean in [np.mean([v for parts in of_word[start : start + length] for v in parts], axis=0)]
            ] or [float(keywords[row] @ vectors.sentence)]
            assert found[texts.open_references[row]].cosine == pytest.approx(max(cosines), abs=1e-5)
