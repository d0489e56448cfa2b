"""The preset `fast`: which windows are embedded alone, and that the score is SMILE's over those."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.hash_engine import token_vectors
from tests.support.engines.programs import Table, at
from tests.support.examples import example_count

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, EmbedTokens, Tier, TokenVectors
from gradewire_server.domain.result import Warning  # noqa: A004 - as domain
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters
from gradewire_server.metrics.smile.shortlist import NEAR_TIE, SHORTLIST, shortlist
from gradewire_server.metrics.smile.texts import SmileTexts, smile_texts

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
    assert Warning.TRUNCATED in run(table, "x").warnings


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
    keywords = np.array([token_vectors(keyword, 100).sentence for keyword in texts.asked_keywords])
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
