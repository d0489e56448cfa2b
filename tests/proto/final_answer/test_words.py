"""Lists of words, and the regular expressions of them."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradewire_proto.final_answer
from gradewire_proto.final_answer.words import any_of, expression, pairs, words

TABLES = tomllib.loads(Path(gradewire_proto.final_answer.__file__).with_name("words.toml").read_text(encoding="utf-8"))


def test_a_kind_has_the_words_of_all_languages_once() -> None:
    for kind in ("answer", "retract", "opener"):
        expected = list(dict.fromkeys(word for table in TABLES.values() for word in table.get(kind, ())))
        assert list(words(kind)) == expected
    assert ("not", "but") in pairs("not_but")


@pytest.mark.parametrize("language", [name for name in TABLES if name != "abbreviations"])
def test_no_language_lists_a_word_twice(language: str) -> None:
    for kind, listed in TABLES[language].items():
        keys = [tuple(word) if isinstance(word, list) else word for word in listed]
        assert len(keys) == len(set(keys)), kind


def test_every_word_matches_itself_whole() -> None:
    pattern = re.compile(any_of("answer", "retract"), re.IGNORECASE)
    for word in words("answer") + words("retract"):
        found = pattern.match(word)
        assert found is not None
        assert found[0] == word


def test_words_with_blanks_between_them_match_only_whole() -> None:
    pattern = re.compile(expression(("no", "no wait")), re.IGNORECASE)
    assert pattern.fullmatch("No wait") is not None
    assert pattern.match("not") is None
    assert pattern.search("piano") is None
    assert re.compile(expression(("答案",))).search("最终答案是") is not None


def test_a_words_end_may_be_another() -> None:
    prefixes = re.compile(expression(["fall", "decreas"], end=""))
    assert [match[0] for match in prefixes.finditer("decreasing rainfall falls")] == ["decreas", "fall"]
    plurals = re.compile(expression(["code", "i.e."], end=r"s?(?!\w)"))
    assert [match[0] for match in plurals.finditer("codes, decode, coded, i.e. code")] == ["codes", "i.e.", "code"]


WORD = st.text("abé ", min_size=1, max_size=6).map(lambda text: " ".join(text.split())).filter(bool)


@given(st.lists(WORD, min_size=1, max_size=8, unique=True))
def test_every_listed_word_matches_whole_and_no_other_does(listed: list[str]) -> None:
    pattern = re.compile(expression(tuple(listed)))
    assert all(pattern.fullmatch(word) for word in listed)
    assert not any(pattern.fullmatch(f"{word}x") for word in listed)
