"""Porter's stems."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from tests.support.debian.wordnet import wordnet_files

from gradewire_server.metrics.text.stems import LONGEST_STEMMED_CHARACTERS, stem

NLTK = PorterStemmer()
ENDINGS = ["s", "es", "ies", "ed", "ied", "eed", "ing", "ly", "y", "e", "ll", "al", "ational", "alli", "logi", "fulli"]
ENDINGS += ["bli", "eli", "ization", "fulness", "ness", "ement", "ion", "ical", "able"]


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("obeys", "obey"),
        ("relational", "relat"),
        ("dying", "die"),
        ("skies", "sky"),
        ("猫", "猫"),
        # of Porter's paper, by step; what later steps do to them is in brackets there
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("feed", "feed"),
        ("plastered", "plaster"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("vietnamization", "vietnam"),
        ("triplicate", "triplic"),
        ("adoption", "adopt"),
        ("rate", "rate"),
        ("controll", "control"),
        # what NLTK does otherwise
        ("ties", "tie"),
        ("enjoy", "enjoy"),
        ("fly", "fli"),
        ("geology", "geolog"),
        ("rationally", "ration"),
        ("by", "by"),
        ("inning", "inning"),
    ],
)
def test_stems(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


def test_stems_are_those_of_nltk_for_the_words_of_wordnet() -> None:
    words: set[str] = set()
    for part in ("noun", "verb", "adj", "adv"):
        text = (wordnet_files() / f"index.{part}").read_text(encoding="ascii")
        words.update(re.findall(r"^[a-z]+(?= )", text, re.MULTILINE))
    some = sorted(words)[::4]
    assert len(some) > 15_000
    assert {word for word in some if stem(word) != NLTK.stem(word)} == set()


@given(
    st.one_of(
        st.from_regex("[a-z]{1,12}", fullmatch=True),
        st.from_regex("[aeiybstlz]{1,6}", fullmatch=True),  # vowels, "y" and double consonants more often
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8).map(str.lower),
    ),
    st.lists(st.sampled_from(ENDINGS), max_size=2).map("".join),
)
def test_stems_are_those_of_nltk(word: str, ending: str) -> None:
    assert stem(word + ending) == NLTK.stem(word + ending)


def test_what_is_longer_than_any_word_stays() -> None:
    word = "y" * LONGEST_STEMMED_CHARACTERS + "ing"
    assert stem(word) == word
    assert stem("y" * 1_000_000) == "y" * 1_000_000
