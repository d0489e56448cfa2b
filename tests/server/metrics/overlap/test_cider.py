"""CIDEr-D equals the COCO caption evaluation's program, and an oracle that works with dense vectors."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_proto.choices import Corpus
from gradewire_proto.parts import CiderParts
from gradewire_server.domain.items import Failure, Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.domain.needs import CorpusStatistics, DocumentFrequencies, Terms
from gradewire_server.metrics.overlap.cider import (
    Cider,
    CiderParameters,
    _similarities,
    _Vector,
    document_frequencies,
    ngrams,
    words_of,
)
from gradewire_server.metrics.smile.texts import MAX_WORDS
from gradewire_server.metrics.text.words import MAX_REFERENCE_WORDS

# Scores by CiderScorer(n=4, sigma=6.0) of pycocoevalcap 1.2 over these seven rows as one corpus. The sentences hold
# lower-case words only, which its tokenizer and ours leave as they are.
GOLDEN = [
    (
        "a brown dog runs over the wet grass",
        ("a brown dog is running over wet grass", "the dog runs over the grass", "a dog on the grass"),
        3.0867148175636845,
    ),
    ("two children play football on the beach", ("two children play football on the beach",), 10.0),
    (
        "a man rides a horse",
        ("a man is riding a white horse along the shore", "someone rides a horse by the sea"),
        1.9654345919442073,
    ),
    (
        "the the the the dog dog",
        ("the dog sleeps on the sofa", "a dog lies on the sofa"),
        0.5918950884535914,
    ),
    ("red", ("red", "dark red"), 2.1216921748800703),
    (
        "a plate with rice beans and two eggs on a wooden table near the window of a small kitchen",
        ("rice and beans",),
        0.031975762212718556,
    ),
    ("nothing in common here", ("a train leaves the station",), 0.0),
]
WORDS = st.text("abcd ", min_size=1, max_size=24).filter(str.strip)
ROWS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3).map(tuple)), min_size=2, max_size=5)


def corpus_of(documents: Sequence[Sequence[str]]) -> DocumentFrequencies:
    return DocumentFrequencies("request:x", len(documents), document_frequencies(documents))


def grade(prediction: str, references: Sequence[str], corpus: DocumentFrequencies | None) -> Any:
    item = Item("1", "", tuple(references), prediction)
    return Table(corpus=corpus).run(Cider().score(item, CiderParameters(), NO_MODEL))


def oracle(prediction: str, references: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """By order, with one dense vector a text over all n-grams that occur anywhere."""

    def grams(text: str, order: int) -> list[str]:
        words = text.split()
        return [" ".join(words[start : start + order]) for start in range(len(words) - order + 1)]

    found = []
    for order in range(1, 5):
        vocabulary = sorted({gram for text in [prediction, *references] for gram in grams(text, order)})
        frequency = [sum(any(gram in grams(text, order) for text in each) for each in documents) for gram in vocabulary]
        idf = np.array([math.log(len(documents) / max(1, count)) for count in frequency])
        total = 0.0
        for reference in references:
            both = [grams(prediction, order), grams(reference, order)]
            ours, theirs = (np.array([each.count(gram) for gram in vocabulary]) * idf for each in both)
            norm = np.linalg.norm(ours) * np.linalg.norm(theirs) if vocabulary else 0.0
            difference = len(prediction.split()) - len(reference.split())
            if norm:
                total += float(np.minimum(ours, theirs) @ theirs) / norm * math.exp(-(difference**2) / 72)
        found.append(10 * total / len(references))
    return found


def test_the_program_of_the_coco_evaluation_gives_the_same() -> None:
    corpus = corpus_of([references for _, references, _ in GOLDEN])
    for prediction, references, expected in GOLDEN:
        result = grade(prediction, references, corpus)
        assert result.score == pytest.approx(expected, abs=1e-12)
        assert result.parts.corpus == "request:x"
        assert sum(result.parts.by_order) / 4 == pytest.approx(result.score)
        assert result.matched_reference is None, "all references count"


@settings(deadline=None)
@given(ROWS)
def test_an_oracle_of_dense_vectors_gives_the_same(rows: list[tuple[str, tuple[str, ...]]]) -> None:
    documents = [references for _, references in rows]
    corpus = corpus_of(documents)
    for prediction, references in rows:
        result = grade(prediction, references, corpus)
        if result.status is not Status.OK:
            assert all(set(text.split()) <= set.intersection(*map(_words, documents)) for text in references)
            continue
        assert result.parts.by_order == pytest.approx(oracle(prediction, references, documents), abs=1e-9)
        assert 0 <= result.score <= 10


def _words(references: Sequence[str]) -> set[str]:
    return {word for text in references for word in text.split()}


def test_the_order_of_references_and_documents_changes_nothing() -> None:
    documents = [references for _, references, _ in GOLDEN]
    for prediction, references, _ in GOLDEN:
        one = grade(prediction, references, corpus_of(documents))
        other = grade(prediction, references[::-1], corpus_of([each[::-1] for each in documents[::-1]]))
        assert other.score == pytest.approx(one.score, abs=1e-12)


def test_what_one_document_has_weighs_as_what_none_has() -> None:
    documents = [("a cat", "a cat here"), ("a dog",)]
    assert document_frequencies(documents) == {("a",): 2}
    # log(2) each for "cat", "new", "a cat" and so on, whether a document has them or not.
    result = grade("a new cat", ("a cat",), corpus_of(documents))
    cosine = 1 / math.sqrt(2)  # of (new, cat) with (cat)
    assert result.parts.by_order[0] == pytest.approx(10 * cosine * math.exp(-1 / 72))


@pytest.mark.parametrize("text", ["Red, WHITE & blue!", "red\twhite  blue", "«red» (white) — blue…"])
def test_case_punctuation_and_white_space_are_nothing(text: str) -> None:
    assert words_of(text) == (["red", "white", "blue"], False)


def test_other_scripts_and_texts_without_words_are_compared() -> None:
    corpus = corpus_of([("Київ",), ("हिन्दी भाषा",), ("?!",), ("东京",)])
    for text in ("Київ", "हिन्दी भाषा", "?!", "东京"):
        assert grade(text, (text,), corpus).score == pytest.approx(2.5 * len(text.split()))
    assert grade("...", ("东京",), corpus).score == 0


def test_a_corpus_of_one_document_fails_and_is_never_0() -> None:
    result = grade("a cat", ("a cat",), corpus_of([("a cat",)]))
    assert (result.status, result.score) == (Status.INVALID_PARAMETER, None)
    assert "several questions" in result.message


def test_references_without_any_weight_fail_and_others_do_not() -> None:
    corpus = corpus_of([("yes",), ("yes", "yes it is")])
    result = grade("yes", ("yes",), corpus)
    assert (result.status, result.score) == (Status.INVALID_INPUT, None)
    assert "all 2 documents of the corpus request:x" in result.message
    # With one reference that has a weight the others count as zeros, as in the COCO evaluation.
    assert grade("yes it is", ("yes", "yes it is"), corpus).score == pytest.approx(10 * 3 / 4 / 2)


def test_bad_items_and_a_failed_corpus_have_a_status_and_no_score() -> None:
    assert grade("cat", (), None).status is Status.INVALID_INPUT
    assert grade("cat", ("cat", " "), None).status is Status.INVALID_INPUT
    assert grade("\u200b", ("cat",), None).status is Status.EMPTY_PREDICTION
    failing = Table(failure=Failure(Status.NOT_PREPARED, "prepare it"))
    result = failing.run(Cider().score(Item("1", "", ("cat",), "cat"), CiderParameters(Corpus.PREPARED), NO_MODEL))
    assert (result.status, result.message) == (Status.NOT_PREPARED, "prepare it")
    assert failing.rounds == [(CorpusStatistics(Corpus.PREPARED, Terms.NGRAMS),)]


def test_long_texts_are_cut_and_say_so() -> None:
    corpus = corpus_of([("a b c",), ("d",)])
    short = grade("a b c", ("a b c",), corpus)
    assert short.warnings == ()
    for prediction, reference in [("a " * (MAX_WORDS + 1), "a b c"), ("a b c", "a " * (MAX_WORDS + 1))]:
        assert grade(prediction, (reference,), corpus).warnings == (ResultWarning.TRUNCATED,)
    many = ("a " * MAX_WORDS,) * (MAX_REFERENCE_WORDS // MAX_WORDS)
    # References beyond the bound are left out of the mean: they are no wrong answers.
    full = grade("a " * MAX_WORDS, (*many, "b"), corpus)
    assert full.score == pytest.approx(grade("a " * MAX_WORDS, many, corpus).score)
    assert full.warnings == (ResultWarning.TRUNCATED,)


class Unread(dict[Any, float]):
    """Weights that may be looked up and not be gone through."""

    def __iter__(self) -> Any:
        raise AssertionError

    items = keys = values = __iter__  # type: ignore[assignment] # all ways through


def test_of_a_long_and_a_short_text_the_short_one_is_gone_through() -> None:
    # A thousand short references with an answer of 4 096 n-grams took a quarter of a second.
    short, long = {("a",): 2.0}, {("a",): 1.0, ("b",): 1.0}
    nothing = ({},) * 3
    for prediction, reference in [(short, Unread(long)), (Unread(long), short)]:
        mine = _Vector((prediction, *nothing), (2.0, 0.0, 0.0, 0.0), 1)
        theirs = _Vector((reference, *nothing), (2.0, 0.0, 0.0, 0.0), 1)
        # clipped to the smaller weight, 1, times the reference's
        assert _similarities(mine, theirs) == [pytest.approx(reference["a",] / 4), 0.0, 0.0, 0.0]


def test_one_word_of_a_megabyte_is_a_word() -> None:
    word = "x" * (1 << 20)
    result = grade(word, (word, "y"), corpus_of([(word,), ("y",)]))
    assert result.score == pytest.approx(2.5 / 2)


def test_ngrams_are_counted_as_often_as_they_occur() -> None:
    assert ngrams(["a", "b", "a", "b"]) == {
        ("a",): 2,
        ("b",): 2,
        ("a", "b"): 2,
        ("b", "a"): 1,
        ("a", "b", "a"): 1,
        ("b", "a", "b"): 1,
        ("a", "b", "a", "b"): 1,
    }
    assert ngrams([]) == {}


def test_parameters_name_a_corpus() -> None:
    assert CiderParameters().corpus is Corpus.REQUEST
    assert not CiderParameters().reads_prepared
    assert CiderParameters(Corpus.PREPARED).reads_prepared
    for wrong in ("none", "all"):
        with pytest.raises(ParameterError, match="corpus"):
            CiderParameters(wrong)  # type: ignore[arg-type]


def test_prepare_needs_nothing_but_references() -> None:
    table = Table()
    assert table.run(Cider().prepare(ReferenceEntry("", ("x",)), CiderParameters())) is None
    assert table.run(Cider().prepare(ReferenceEntry("", ()), CiderParameters())).status is Status.INVALID_INPUT
    assert table.rounds == []


def test_parts_hold_the_corpus_that_was_used() -> None:
    parts = grade("a cat", ("a cat",), corpus_of([("a cat",), ("a dog",)])).parts
    assert parts == CiderParts(by_order=pytest.approx((10, 10, 0, 0)), corpus="request:x")  # type: ignore[arg-type]
