"""What takes less time and finds the same: held against the patterns, and against what is meant, on drawn texts."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Indel, JaroWinkler
from tests.support.examples import example_count

from gradewire_server.metrics.correctness import hedges, refusals
from gradewire_server.metrics.correctness import words as spelling
from gradewire_server.metrics.text.normalise import known_words

LOOKS = {
    "refusal": (refusals._COUNTED_PHRASES, refusals._IN_EACH_REFUSAL),
    "refuses": (refusals._REFUSES, refusals._IN_EACH_THAT_REFUSES),
    "hedge": (hedges._HEDGE, hedges._IN_EACH_HEDGE),
}
LETTERS = st.characters(codec="ascii", categories=("L", "P", "Z"))


@pytest.mark.parametrize("name", LOOKS)
@given(data=st.data())
@settings(max_examples=example_count(200))
def test_what_the_pattern_finds_has_one_of_the_phrases(name: str, data: st.DataObject) -> None:
    pattern, phrases = LOOKS[name]
    text = data.draw(st.from_regex(pattern, alphabet=LETTERS))
    assert any(phrase in text for phrase in phrases), text


@given(st.text(alphabet="adehntu,.;) 12\n", max_size=80), st.integers(1, 6))
@settings(max_examples=example_count(200))
def test_commas_are_counted_as_the_pattern_counts_them(text: str, least: int) -> None:
    assert hedges._has_commas(text, least) is (len(re.findall(hedges._COMMA, text)) >= least)


WORDS = st.sampled_from(["colony", "colonial", "colonel", "farm", "form", "1912", "12"]) | st.text(
    "colnyfarm", min_size=1
)


@given(
    st.lists(WORDS, min_size=1, max_size=5),
    st.lists(WORDS, max_size=6),
    st.sampled_from([Indel.normalized_similarity, JaroWinkler.normalized_similarity]),
)
@settings(max_examples=example_count(200))
def test_the_closest_word_is_that_of_all_that_may_be_near(
    words: list[str], answer: list[str], similarity: Callable[[str, str], float]
) -> None:
    known = known_words()

    def near(word: str, other: str) -> float:
        if word.isdecimal():
            return float(word == other)
        alike = word == other or other.startswith(word[: max(4, min(len(word), len(other)) - 1)])
        return similarity(word, other) if alike or not (word in known and other in known) else 0.0

    expected = [max((near(word, other) for other in answer), default=0.0) for word in words]
    assert spelling._closeness(words, answer, similarity) == pytest.approx(expected, abs=1e-12)
