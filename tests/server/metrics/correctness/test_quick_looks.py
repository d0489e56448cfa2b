"""What takes less time and finds the same: held against the patterns, and against what is meant, on drawn texts."""

import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import Indel, JaroWinkler
from tests.support.examples import example_count

from gradewire_server.metrics.correctness import hedges, mentions, refusals, sentences
from gradewire_server.metrics.correctness import words as spelling
from gradewire_server.metrics.matching import value_match
from gradewire_server.metrics.text.normalise import known_words
from gradewire_server.metrics.text.words import split_words
from gradewire_server.metrics.values import special
from gradewire_server.metrics.values.matching import ValueMatcher
from gradewire_server.metrics.values.notations import rewritten
from gradewire_server.metrics.values.tokens import plain

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
    assert spelling._closeness(words, spelling._Spelt(tuple(answer)), similarity) == pytest.approx(expected, abs=1e-12)


PIECES = st.sampled_from(
    [
        *"aAbz.'`,1 -\u2018\u2019\u0301\u00e9\u00df\u00bd\u00b2\u03a3\u0130\u0663",
        "U.S.A.",
        "'s",
        "1,000",
        "3rd",
        "two",
        "ten",
        "cats",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS)
@settings(max_examples=example_count(400))
def test_folding_leaves_out_only_steps_that_change_nothing(text: str) -> None:
    folded = unicodedata.normalize("NFKD", text)[: 4 * len(text)]
    folded = re.sub(
        r"(?![0-9])\d", lambda digit: str(unicodedata.decimal(digit[0])), re.sub("[\u0300-\u036f]", "", folded)
    )
    folded = folded.replace("1\u20442", " half ").casefold().translate(spelling._LETTERS)
    folded = spelling._INITIALS.sub(lambda initials: f"{initials[0].replace('.', '')} ", folded)
    folded = spelling._THOUSANDS.sub("", re.sub("['\u2018\u2019`](?:s\\b)?", "", folded))
    assert spelling.folded(text) == folded
    words = split_words(spelling._ORDINAL_DIGITS.sub(r"\1", folded)) or text.split()
    assert spelling.folded_words(text) == tuple(map(spelling.number_or_lemma, words))


@given(st.text("ab ", min_size=1, max_size=6), st.text("ab ", max_size=20))
@settings(max_examples=example_count(200))
def test_a_part_is_as_similar_as_the_comparison_says(text: str, whole: str) -> None:
    compare = fuzz.ratio if len(whole) < len(text) else fuzz.partial_ratio
    if text.strip():
        assert spelling._within(text, whole) == compare(text, whole) / 100


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.lists(st.sampled_from("abc"), max_size=12))
def test_places_are_those_of_the_words_in_a_row(wanted: list[str], words: list[str]) -> None:
    places = [place for place in range(len(words)) if words[place : place + len(wanted)] == wanted]
    found, place = [], -1
    while (place := mentions._place(words, wanted, place + 1)) >= 0:
        found.append(place)
    assert found == places


SPECIAL = st.sampled_from(
    ["yes", "wahr", "MW", "megawatts", "IV", "XIX", "0", "007", "3:2", "two", "to", "John 3:16", "H2O", "NaCl", "x",
     "CO", "water", "cats", "p = 4", "q = 2", ", ", " ", "v1.2", "zero", "no", "salt", "kg"]
)  # fmt: skip


@given(st.lists(SPECIAL, min_size=1, max_size=4).map("".join), st.lists(SPECIAL, max_size=4).map(" ".join))
@settings(max_examples=example_count(400))
def test_a_reference_that_cannot_be_special_is_none_of_the_special_values(reference: str, answer: str) -> None:
    question = "What ratio, score, verse, version, Roman numeral, code, unit, formula or symbol is it?"
    bare = plain(reference).strip(special._AROUND)
    if bare and not special._may_be_special(bare):
        kinds = (special._truth, special._verse, special._version, special._roman, special._ratio, special._named)
        for compare in (*kinds, special._coded, special._zero, special._unit, special._compound, special._symbol):
            assert compare(question, bare, answer) is None


def test_threads_read_a_shared_text_alike() -> None:
    texts = [f"The {word} of the U.S.A., or {number} more" for number in range(40) for word in ("cats", "Dogs")]
    expected = [spelling.FeatureText.of(text) for text in texts]

    def read(start: int) -> list[tuple[object, ...]]:
        found = [spelling.FeatureText.shared(text) for text in (*texts[start:], *texts[:start])]
        found = found[len(texts) - start :] + found[: len(texts) - start]
        return [(each, each.distinct, each.core.words, each.weights, each.written_initials) for each in found]

    with ThreadPoolExecutor(8) as pool:
        for read_here in pool.map(read, range(0, 80, 5)):
            assert read_here == [
                (each, each.distinct, each.core.words, each.weights, each.written_initials) for each in expected
            ]


SENTENCES = st.sampled_from(
    ["Yes, it is.", "Paris is", "isn't cheap", "zzend", "ZZ'END", "the U.S.", "1,000", "?!", "...", " ", "Tom's",
     "\ufdfa", "gluten-free", "no longer", "by", "wird von", "was beaten", "caf\u00e9", "x.", "\n", "!", " - ",
     "(so)", "go up"]
)  # fmt: skip


@example(["x. ", "ZZ'END", ". Paris is"])
@given(st.lists(SENTENCES, max_size=10))
@settings(max_examples=example_count(400))
def test_sentences_are_read_together_as_they_are_read_alone(pieces: list[str]) -> None:
    text = " ".join(pieces)
    parts = [part for part in sentences._SENTENCE_END.split(text)[: sentences._MOST_SENTENCES] if part.strip()]
    alone = [found for found in map(sentences.Sentence.of, parts) if found.tokens]
    assert list(sentences.sentences_of(text)) == alone


def test_sentences_with_too_many_words_for_one_call_are_read_alone() -> None:
    text = ". ".join("a b c d e " * 60 for _ in range(12))
    assert [len(each.tokens) for each in sentences.sentences_of(text)] == [sentences._MOST_WORDS] * 12


VETOES = st.sampled_from(
    ["yes", "no", "Paris", "5", "-5", "two", "1912", "x", "(2, 3)", "A, B", "IV", "5 kg", "the", ".", "007"]
)


@given(
    st.sampled_from(["", "In what order?", "What is the number of the gate?", "Where?", "What are the coordinates?"]),
    st.lists(VETOES, min_size=1, max_size=3).map(" ".join),
    st.lists(VETOES, max_size=4).map(" ".join),
)
@settings(max_examples=example_count(400))
def test_what_cannot_be_contradicted_never_is(question: str, reference: str, answer: str) -> None:
    reference, answer = rewritten(question, reference), rewritten(question, answer)
    if not value_match.may_be_contradicted(question, reference):
        (match,) = value_match.match_references(ValueMatcher(question, answer), question, answer, [reference])
        assert not match.contradicted
