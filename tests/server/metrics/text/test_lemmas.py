"""The lemma of a word alone is lemminflect's first noun lemma, else verb, adjective, adverb, else the word."""

import pytest
from lemminflect import config, getAllLemmas
from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec

from gradewire_server.metrics.text.lemmas import known_words, lemma_table, lemmatizer


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("cats", "cat"),
        ("feet", "foot"),
        ("was", "be"),
        ("painted", "paint"),
        ("does", "doe"),  # a noun before a verb: odd, but the rule
        ("best", "best"),  # a noun before an adjective
        ("quicker", "quick"),
        ("gradewire", "gradewire"),
        ("1990s", "1990s"),
    ],
)
def test_lemma_of_a_word(word: str, lemma: str) -> None:
    assert lemmatizer()(word, word) == lemma


def test_the_table_says_what_the_library_says_of_every_word_it_knows() -> None:
    def rule(word: str) -> str:
        lemmas = getAllLemmas(word)
        return next((lemmas[pos][0] for pos in ("NOUN", "VERB", "ADJ", "ADV") if pos in lemmas), word)

    words = [word for word in LemmaLUCodec.load(config.lemma_lu_fn) if word == word.lower()]
    assert len(words) > 60_000
    look_up = lemmatizer()
    assert [word for word in words if look_up(word, word) != rule(word)] == []


def test_a_word_stays_one_word() -> None:
    assert [word for word, lemma in lemma_table().items() if " " not in word and len(lemma.split()) != 1] == []


@pytest.mark.parametrize(
    ("word", "known"), [("form", True), ("farms", True), ("definately", False), ("neemuchwala", False)]
)
def test_words_of_the_dictionary(word: str, known: bool) -> None:  # noqa: FBT001 - a case's outcome
    assert (word in known_words()) is known
