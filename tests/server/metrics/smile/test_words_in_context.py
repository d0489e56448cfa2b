"""The preset `one_pass`: windows are looked at in context, and nothing but the prediction is embedded for them."""

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
from gradewire_server.metrics.smile.texts import smile_texts
from gradewire_server.metrics.smile.words_in_context import closest_in_context

PREDICTION = "w0, w1 w2"
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


def run(table: Table, *references: str) -> Any:
    item = Item("1", "", references, PREDICTION)
    return table.run(Smile().score(item, SmileParameters(preset="one_pass"), NO_MODEL))


def test_the_score_of_the_best_window_in_context() -> None:
    # e(y) and the reference at 0°: s = 1. Windows of 2 words: "w0 w1" lies between 20° and 60°, at 40°; "w1 w2" between
    # 60° and 90°, at 75°; the comma at 180° is no part of a word. k = (1 + cos 40°)/2 = .88302, m = 0, l = .44151:
    # .3 + .7·.44151 = .60906
    table = Table({"x y": at(0)}, tokens={PREDICTION: tokens(at(20), at(180), at(60), at(90))})
    result = run(table, "x y")
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
    table = Table({"x y": at(0)}, tokens={PREDICTION: tokens((1.0, 0.0), at(180), (0.0, 9.0), at(170))})
    assert run(table, "x y").parts.keyword == pytest.approx(0.55522, abs=1e-5)


def test_windows_of_words_that_were_not_read_do_not_count() -> None:
    table = Table({"x y": at(60), "z": at(0)}, tokens={PREDICTION: tokens(at(0), at(0), at(60), truncated=True)})
    result = run(table, "x y")  # "w0 w1" at 30°, "w1 w2" was not read whole
    assert (result.parts.best_window, result.parts.keyword) == ("w0 w1", pytest.approx((1 + 3**0.5 / 2) / 2, abs=1e-6))
    assert Warning.TRUNCATED in result.warnings


def test_where_no_window_was_read_whole_the_prediction_stands_for_the_first() -> None:
    # Three words are asked for, two were read; e(y) at 45°, the reference at 0°: k = (1 + cos 45°)/2 = .85355
    read = tokens(at(0), at(0), at(60), sentence=45, truncated=True)
    result = run(Table({"x y z": at(0)}, tokens={PREDICTION: read}), "x y z")
    assert (result.parts.best_window, result.parts.keyword) == ("w0 w1 w2", pytest.approx(0.85355, abs=1e-5))


def test_a_word_without_a_direction_is_far_from_everything_and_no_error() -> None:
    zero = tokens((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
    assert run(Table({"x": at(0)}, tokens={PREDICTION: zero}), "x").parts.keyword == 0.5


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
    keywords = np.array([token_vectors(keyword, 100).sentence for keyword in texts.asked_keywords])
    found = closest_in_context(texts, vectors, keywords)
    assert set(found) == set(texts.asked)
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
            assert found[texts.asked[row]].cosine == pytest.approx(max(cosines), abs=1e-5)
