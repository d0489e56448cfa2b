"""Words of all scripts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.text.word_split import MAX_CHARACTERS, MAX_WORDS, first_words, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The U.S., in 1_000 words!", ["the", "u", "s", "in", "1", "000", "words"]),
        ("naïve d'été Straße", ["naïve", "d", "été", "straße"]),
        ("हिन्दी भाषा है।", ["हिन्दी", "भाषा", "है"]),  # vowel signs are marks and stay with their letter
        ("Москва — столица", ["москва", "столица"]),
        ("这是猫。", ["这", "是", "猫"]),  # no spaces between words: letters
        ("ネコ and 猫x", ["ネ", "コ", "and", "猫", "x"]),
        ("ก้าว", ["ก้", "า", "ว"]),
        ("“cat”", ["cat"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("?! ...", ["?!", "..."]),  # no word in it
        ("👍", ["👍"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
def test_ascii_text_is_split_as_rouge_does(text: str) -> None:
    words = [word for word in re.split("[^a-z0-9]+", text.lower()) if word]
    assert split_words(text) == (words or text.split())


@given(st.text(max_size=80))
def test_what_is_not_white_space_has_words_without_white_space(text: str) -> None:
    words = split_words(text)
    assert bool(words) == bool(text.split())
    assert all(word.split() == [word] for word in words)


@given(st.text("猫ネก\u0e33\U00020001aéж\u0e49\u094d\U000e0100 .", max_size=20))
def test_a_walk_from_letter_to_letter_finds_the_same_words(text: str) -> None:
    expected: list[str] = []
    before = ""  # what a mark, or a letter of a spaced script, could belong to
    for character in text:
        if character in "猫ネก\u0e33\U00020001":
            expected.append(character)
            before = "letter of its own"
        elif character in "aéж" and before != "word":
            expected.append(character)
            before = "word"
        elif character in "aéж" or (character in "\u0e49\u094d\U000e0100" and before):
            expected[-1] += character
        else:
            before = ""
    assert split_words(text) == (expected or text.split())


def test_long_texts_are_cut_and_say_so() -> None:
    assert first_words("x " * MAX_WORDS) == (["x"] * MAX_WORDS, False)
    assert first_words("x " * (MAX_WORDS + 1)) == (["x"] * MAX_WORDS, True)
    assert first_words("x" * 1_000_000) == (["x" * MAX_CHARACTERS], True)
    assert first_words(" " * 1_000_000 + "x") == (["x"], False)
