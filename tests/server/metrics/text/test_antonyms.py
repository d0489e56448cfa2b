"""Opposite words: those of WordNet's files, and what a prefix negates."""

import pytest
from benchmarks.research import antonyms as writer
from tests.support.debian.wordnet import wordnet_files

from gradewire_server.metrics.text.antonyms import antonym_table, opposites_of


@pytest.mark.parametrize(
    ("word", "opposite"),
    [("hot", "cold"), ("valid", "invalid"), ("increase", "decrease"), ("polar", "nonpolar"), ("nonpolar", "polar")],
)
def test_opposites(word: str, opposite: str) -> None:
    assert opposite in opposites_of(word)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("form", "uniform"),
        ("unit", "it"),
        ("hot", "warm"),
        ("gradewire", "wire"),
        ("union", "ion"),
    ],
)
def test_what_is_no_opposite(word: str, other: str) -> None:
    assert other not in opposites_of(word)
    assert word not in opposites_of(other)


def test_each_is_the_opposite_of_its_opposite() -> None:
    table = antonym_table()
    assert all(word in table[other] for word, others in table.items() for other in others)


def test_the_table_is_what_wordnets_files_say() -> None:
    assert writer.TABLE.read_text("ascii") == writer.antonym_table(wordnet_files())
