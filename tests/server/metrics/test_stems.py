"""Porter's stems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from gradewire_server.metrics.stems import LONGEST_STEMMED_CHARACTERS, stem


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [("obeys", "obey"), ("relational", "relat"), ("dying", "die"), ("skies", "sky"), ("猫", "猫")],
)
def test_stems(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


@given(st.from_regex("[a-z]{1,12}(s|ed|ing|ational|fulness)?", fullmatch=True))
def test_stems_are_those_of_nltk(word: str) -> None:
    assert stem(word) == PorterStemmer().stem(word)


def test_what_is_longer_than_any_word_stays() -> None:
    word = "y" * LONGEST_STEMMED_CHARACTERS + "ing"
    assert stem(word) == word
    assert stem("y" * 1_000_000) == "y" * 1_000_000
