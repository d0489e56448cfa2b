"""Sentence BLEU by hand, and equal to sacrebleu."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from tests.support.engines.programs import Table

from gradewire_proto.parts import BleuParts
from gradewire_server.domain.items import Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.overlap.bleu import MAX_CHARACTERS, Bleu, BleuParameters

WORDS = ["the", "cat", "sat", "on", "a", "mat.", "U.S.", "1,000", "&quot;cat&quot;", "don't", "x-y", "3-4", "猫。"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=15).map(" ".join)
TEXTS = st.text(min_size=1, max_size=40).filter(lambda text: bool(text.split()))


def grade(prediction: str, *references: str, **parameters: Any) -> Any:
    return Table().run(Bleu().score(Item("1", "", references, prediction), BleuParameters(**parameters), NO_MODEL))


def sacrebleu(prediction: str, references: list[str], max_ngram: int) -> Any:
    return BLEU(effective_order=True, max_ngram_order=max_ngram).sentence_score(prediction, references)


def test_a_short_prediction_by_hand() -> None:
    # all n-grams are right; three words have no 4-gram, so three orders count; the reference is a word longer
    result = grade("the cat sat", "the cat sat down")
    assert result.score == pytest.approx(math.exp(1 - 4 / 3))
    assert result.parts == BleuParts(pytest.approx((1, 1, 1, 0)), pytest.approx(math.exp(-1 / 3)), 3, 4)
    assert result.matched_reference is None


def test_smoothing_by_hand() -> None:
    # unigrams 2/4, bigrams 1/3, trigrams 0/2 -> 1/(2*2), 4-grams 0/1 -> 1/(4*1); equal lengths
    result = grade("the cat is red", "the cat sat down")
    assert result.parts.precisions == pytest.approx((1 / 2, 1 / 3, 1 / 4, 1 / 4))
    assert result.score == pytest.approx((1 / 2 * 1 / 3 * 1 / 4 * 1 / 4) ** (1 / 4))


def test_all_references_count_at_once() -> None:
    # "the cat" is in one, "sat down" in the other: bigrams 2/3; each alone has one of three
    result = grade("the cat sat down", "the cat ran off", "he sat down there", max_ngram=2)
    assert result.parts.precisions == pytest.approx((1, 2 / 3))
    assert result.score == pytest.approx(math.sqrt(2 / 3))
    # a word counts as often as in the reference that has it most often: 2 of 3
    assert grade("the the the", "the cat", "the cat and the dog", max_ngram=1).parts.precisions == pytest.approx(
        (2 / 3,)
    )


def test_the_reference_closest_in_length_counts_for_brevity_of_two_the_shorter() -> None:
    assert grade("the cat sat", "the cat", "the cat sat down").parts.reference_words == 2
    assert grade("the cat sat", "the cat sat on the mat", "the cat sat down").parts.reference_words == 4


@pytest.mark.parametrize(
    ("prediction", "references"),
    [
        ("this is a fest", ["this is a test"]),
        ("this is a test", ["this is a test"]),
        ("There is a cat on the mat", ["The cat is on the mat.", "There is a cat on the mat."]),
        ("Niemand hat die Absicht, eine Mauer zu errichten!", ["Niemand hat vor, eine Mauer zu errichten."]),
        ("100%, 1,000.5 km/h -- the U.S. &amp; U.K.", ["1,000.5 km/h: 100 % of the US & UK"]),
        ("x", ["y"]),
    ],
)
@pytest.mark.parametrize("max_ngram", [1, 2, 3, 4])
def test_it_equals_sacrebleu(prediction: str, references: list[str], max_ngram: int) -> None:
    theirs = sacrebleu(prediction, references, max_ngram)
    ours = grade(prediction, *references, max_ngram=max_ngram)
    assert ours.score == pytest.approx(theirs.score / 100, abs=1e-12)
    assert ours.parts == BleuParts(
        pytest.approx([precision / 100 for precision in theirs.precisions]), theirs.bp, theirs.sys_len, theirs.ref_len
    )


@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=4), st.integers(1, 4))
def test_it_equals_sacrebleu_on_random_sentences(prediction: str, references: list[str], max_ngram: int) -> None:
    theirs = sacrebleu(prediction, references, max_ngram)
    assert grade(prediction, *references, max_ngram=max_ngram).score == pytest.approx(theirs.score / 100, abs=1e-12)


@given(TEXTS, TEXTS)
def test_it_equals_sacrebleu_on_any_text(prediction: str, reference: str) -> None:
    result = grade(prediction, reference)
    if result.status is Status.OK:
        assert result.score == pytest.approx(
            sacrebleu(prediction.strip(), [reference.strip()], 4).score / 100, abs=1e-12
        )
    else:
        assert result.status in {Status.INVALID_INPUT, Status.EMPTY_PREDICTION}  # of what cannot be seen


def test_what_the_tokenisation_deletes_has_no_score() -> None:
    assert grade("<skipped>", "cat").status is Status.EMPTY_PREDICTION
    result = grade("cat", "cat", "<skipped>")
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith("references[1]")


def test_long_texts_are_cut_and_say_so() -> None:
    result = grade("the cat sat " * 100_000, "the cat sat " * 100_000)
    assert result.score == pytest.approx(1.0)
    assert result.warnings == (ResultWarning.TRUNCATED,)
    assert (result.parts.prediction_words, result.parts.reference_words) == (1024, 1024)
    assert grade("!" * 1_000_000, "cat").warnings == (ResultWarning.TRUNCATED,)
    assert not grade("cat " * 1024, "cat").warnings
    # Characters are bounded too: twenty references of 64 KB took a fifth of a second.
    assert not grade("x" * MAX_CHARACTERS, "cat").warnings
    assert grade("x" * (MAX_CHARACTERS + 1), "x" * MAX_CHARACTERS).warnings == (ResultWarning.TRUNCATED,)
    assert MAX_CHARACTERS == 16 * 1024


def test_bad_items_and_parameters() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog").status is Status.EMPTY_PREDICTION
    assert Table().run(Bleu().prepare(ReferenceEntry("", ("",)), BleuParameters())).status is Status.INVALID_INPUT
    for max_ngram in (0, 5):
        with pytest.raises(ParameterError, match="max_ngram"):
            BleuParameters(max_ngram=max_ngram)
