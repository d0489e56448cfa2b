"""Opposite words: those of WordNet's files, and what a prefix negates."""

import re
import unicodedata

import pytest
from benchmarks.data import antonyms as writer
from hypothesis import given
from hypothesis import strategies as st
from lemminflect import config, getAllLemmas
from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec
from tests.support.debian.wordnet import wordnet_files

from gradewire_server.metrics.text.normalise import (
    antonym_table,
    bare_words,
    known_words,
    lemma_table,
    lemmatizer,
    normalise,
    opposites_of,
    verb_lemmas,
    word_spans,
)


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


TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab İßΣςé1_'.,-!?\t\n\u00a0\u0307\u200b\u0e31\U0001f600", max_size=60),
    st.lists(st.sampled_from(["cats", "U.S.", "well-known", "—", "İs", "1,000", "(the", "end)."]), max_size=12).map(
        " ".join
    ),
).filter(str.strip)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("The Cats!", ("the", "cat")),
        ("U.S. well-known   o'clock", ("us", "wellknown", "oclock")),
        ("1,000 - 2.5%", ("1000", "25")),
        ("Ein Straßenfest in İzmir", ("ein", "straßenfest", "in", "izmir")),
        ("snake_case", ("snake_case",)),
        ("東京 タワー", ("東京", "タワー")),
    ],
)
def test_words_are_lower_cased_bare_lemmas(raw: str, words: tuple[str, ...]) -> None:
    normalised = normalise(raw)
    assert normalised.words == words
    assert normalised.text == " ".join(words)


def test_a_text_without_any_word_stays_itself_in_lower_case() -> None:
    assert normalise(" ?! … ").text == " ?! … "
    assert normalise(" ?! … ").words == ("?!", "…")
    assert word_spans(" ?! … ", 99).tolist() == [[1, 3], [4, 5]]


def test_spans_leave_the_punctuation_around_a_word_out() -> None:
    text = '"Well-known (cats)," U.S.'
    assert [text[a:b] for a, b in word_spans(text, 99)] == ["Well-known", "cats", "U.S"]


def test_spans_count_characters_of_the_raw_text_where_lower_case_is_longer() -> None:
    text = "İİ and İ"  # lower-cased: two characters each
    assert [text[a:b] for a, b in word_spans(text, 99)] == ["İİ", "and", "İ"]


def test_only_as_many_spans_as_asked_for() -> None:
    text = "İİ, a b İ c"
    assert [text[a:b] for a, b in word_spans(text, 3)] == ["İİ", "a", "b"]


@given(TEXTS)
def test_every_word_has_the_span_it_comes_from(raw: str) -> None:
    text = unicodedata.normalize("NFC", raw)
    normalised = normalise(text)
    spans = word_spans(text, 99).tolist()
    assert len(spans) == len(normalised.words)
    assert [position for span in spans for position in span] == sorted(p for span in spans for p in span)
    if any(re.match(r"\w", character) for character in text.lower()):
        bare = [re.sub(r"[^\w\s]", "", text[a:b].lower()) for a, b in spans]
        assert tuple(lemmatizer()(word, word) for word in bare) == normalised.words
    else:
        assert tuple(text[a:b].lower() for a, b in spans) == normalised.words


@given(TEXTS)
def test_words_are_never_blank_and_hold_no_white_space(raw: str) -> None:
    normalised = normalise(raw)
    assert normalised.words
    assert all(word and word.split() == [word] for word in normalised.words)


@given(TEXTS, st.sampled_from([1, 10_000]))
def test_words_are_the_same_however_long_the_text(text: str, times: int) -> None:
    long = text * times
    assert bare_words(long) == re.sub(r"[^\w\s]+", "", long.lower()).split()


@pytest.mark.parametrize("end", [128, 0x110000])
def test_every_character_is_kept_or_deleted_as_a_regular_expression_says(end: int) -> None:
    text = "".join(map(chr, range(end)))
    assert bare_words(text) == re.sub(r"[^\w\s]+", "", text.lower()).split()


def test_verbs_have_all_their_lemmas() -> None:
    assert verb_lemmas("bit") == ("bite",)
    assert verb_lemmas("found") == ("find", "found")
    assert verb_lemmas("taught") == ("teach",)
    assert verb_lemmas("planet") == ()
