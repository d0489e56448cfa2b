"""Long texts are translated in parts, with the outcome of one call."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_server.domain.items import Item, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.metrics.text.words import (
    MAX_CHARACTERS,
    MAX_REFERENCE_WORDS,
    MAX_WORDS,
    first_words,
    split_words,
    translated,
    words_of_references,
)

TABLE = str.maketrans({"a": "b", "b": None, "é": "ee", "語": " "})


@given(st.text(alphabet="abcé語 ", max_size=40), st.sampled_from([1, 819, 2_000, 5_000]))
def test_the_outcome_is_that_of_one_call(text: str, times: int) -> None:
    long = text * times
    assert translated(long, TABLE) == long.translate(TABLE)


MANY = ("cat " * MAX_WORDS,) * (MAX_REFERENCE_WORDS // MAX_WORDS)
METRICS = pytest.mark.parametrize(
    ("name", "parameters"), [("bleu", {}), ("rouge_l", {"stem": True}), ("meteor", {"synonyms": "none"})]
)


def grade(name: str, parameters: dict[str, Any], prediction: str, references: tuple[str, ...]) -> Any:
    metric = REGISTRY[name]
    return Table().run(
        metric.score(Item("1", "", references, prediction), metric.parameters_type(**parameters), NO_MODEL)
    )


def test_as_many_references_as_fit_are_kept() -> None:
    kept, cut = words_of_references(MANY, first_words)
    assert (sum(map(len, kept)), cut) == (MAX_REFERENCE_WORDS, False)
    assert words_of_references((*MANY, "dog"), first_words) == (kept, True)
    assert words_of_references(("a b", "c"), first_words) == ([["a", "b"], ["c"]], False)
    assert words_of_references(("cat " * 100_000,), first_words) == ([["cat"] * MAX_WORDS], True)


def test_none_stands_in_for_one_that_does_not_fit() -> None:
    # else which ones are compared would depend on their lengths in a way that nobody can follow
    assert words_of_references((*MANY[1:], "dog", MANY[0], "cow"), first_words)[0][-1] == ["dog"]


@METRICS
def test_references_beyond_are_left_out_and_the_result_says_so(name: str, parameters: dict[str, Any]) -> None:
    right = "a dog ran off"
    found = grade(name, parameters, right, (*MANY, right))
    assert found.warnings == (ResultWarning.TRUNCATED,)
    assert found.score == grade(name, parameters, right, MANY).score == 0
    assert grade(name, parameters, right, MANY).warnings == ()
    assert grade(name, parameters, right, (right, *MANY)).score > 0.9


@METRICS
def test_a_blank_one_among_them_is_told_all_the_same(name: str, parameters: dict[str, Any]) -> None:
    result = grade(name, parameters, "dog", (*MANY, "dog", " "))
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith(f"references[{len(MANY) + 1}]")


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
