"""ROUGE-L by hand, and equal to rouge-score."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from tests.support.engines.programs import Table

from gradewire_proto.parts import RougeLParts
from gradewire_server.domain.items import Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.overlap.rouge_l import RougeL, RougeLParameters

WORDS = ["the", "cats", "cat", "sat", "relational", "relate", "on", "mats", "running", "runs", "A.B", "1,000", "don't"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=20).map(" ".join)


def grade(prediction: str, *references: str, **parameters: Any) -> Any:
    item = Item("1", "", references, prediction)
    return Table().run(RougeL().score(item, RougeLParameters(**parameters), NO_MODEL))


def test_by_hand() -> None:
    # "police killed the gunman" / "police kill the gunman": the subsequence "police the gunman" is 3 of 4 and 3 of 4
    assert grade("police kill the gunman", "police killed the gunman").score == pytest.approx(0.75)
    # in the wrong order, "the gunman" is the longest: 2 of 4
    assert grade("the gunman kill police", "police killed the gunman").score == pytest.approx(0.5)
    # 2 of 3 predicted words, 2 of 5 right ones: F1 = 2 * 2/3 * 2/5 / (2/3 + 2/5) = 1/2
    result = grade("the black cat", "the cat sat on mats")
    assert result.parts == RougeLParts(pytest.approx(2 / 3), pytest.approx(2 / 5), pytest.approx(1 / 2))
    assert result.score == pytest.approx(1 / 2)


@pytest.mark.parametrize(("measure", "score"), [("precision", 2 / 3), ("recall", 2 / 5), ("f1", 1 / 2)])
def test_the_measure_is_the_score(measure: str, score: float) -> None:
    assert grade("the black cat", "the cat sat on mats", measure=measure).score == pytest.approx(score)


def test_the_best_reference_by_the_measure_counts_and_is_named() -> None:
    references = ("a dog", "the cat sat on mats", "cat", "cat")
    assert grade("the black cat", *references).matched_reference == 1  # F1 1/2 each but for the dog: the first
    assert grade("the black cat", *references, measure="recall").matched_reference == 2
    assert grade("x", "a", "b") == grade("x", "a", "b")
    assert grade("x", "a", "b").score == 0.0


def test_references_closer_than_a_millionth_are_equally_good() -> None:
    # One common word of 1 000: F1 is 2/2001 with the first and 2/2000 with the second reference, 5e-7 apart.
    prediction, longer, shorter = (
        " ".join(["x", *letter * count]) for letter, count in zip("abb", (999, 1000, 999), strict=True)
    )
    assert grade(prediction, longer, shorter).matched_reference == 0
    assert grade(prediction, longer + " c c c", shorter).matched_reference == 1  # 2/2004: 2e-6 less


def test_stems_match_words_of_four_letters_and_more() -> None:
    assert grade("the cats", "the cat").score == pytest.approx(0.5)
    assert grade("the cats", "the cat", stem=True).score == pytest.approx(1.0)  # cats has four letters
    assert grade("runs", "running", stem=True).score == pytest.approx(1.0)
    assert grade("his", "hi", stem=True).score == 0.0  # three letters keep their form


@pytest.mark.parametrize("stem", [False, True])
@given(prediction=SENTENCES, reference=SENTENCES)
def test_it_equals_rouge_score(stem: bool, prediction: str, reference: str) -> None:  # noqa: FBT001 - of parametrize
    theirs = RougeScorer(["rougeL"], use_stemmer=stem).score(reference, prediction)["rougeL"]
    assert grade(prediction, reference, stem=stem).parts == RougeLParts(
        pytest.approx(theirs.precision), pytest.approx(theirs.recall), pytest.approx(theirs.fmeasure)
    )


@given(st.text(alphabet=st.characters(max_codepoint=126), min_size=1), st.text(alphabet="aB c-\t1.", min_size=1))
def test_it_equals_rouge_score_on_any_ascii_text_with_words(prediction: str, reference: str) -> None:
    if not any(map(str.isalnum, prediction)) or not any(map(str.isalnum, reference)):
        return
    theirs = RougeScorer(["rougeL"]).score(reference, prediction)["rougeL"]
    assert grade(prediction, reference).score == pytest.approx(theirs.fmeasure)


@pytest.mark.parametrize(
    ("reference", "prediction", "score"),
    # values that the tests of rouge-score state
    [("testing one two", "testing", 0.5), ("testing one two", "testing one two three", 6 / 7), ("dog", "cat", 0.0)],
)
def test_its_own_examples(reference: str, prediction: str, score: float) -> None:
    theirs = RougeScorer(["rougeL"]).score(reference, prediction)["rougeL"].fmeasure
    assert grade(prediction, reference).score == pytest.approx(score)
    assert theirs == pytest.approx(score)


def test_words_of_other_scripts_count_and_texts_without_words_are_compared_as_they_are() -> None:
    assert grade("Москва столица", "москва").score == pytest.approx(2 / 3)
    assert grade("这是猫", "猫").score == pytest.approx(0.5)
    assert grade("👍", "👍", "no").score == 1.0
    assert grade("?", "!").score == 0.0


def test_long_texts_are_cut_and_say_so() -> None:
    result = grade("cat " * 200_000, "cat " * 200_000)
    assert result.score == 1.0
    assert result.warnings == (ResultWarning.TRUNCATED,)
    assert not grade("cat " * 1024, "cat").warnings
    assert grade("cat", "dog", "cat " * 1025).warnings == (ResultWarning.TRUNCATED,)


def test_bad_items_and_parameters() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog").status is Status.EMPTY_PREDICTION
    assert Table().run(RougeL().prepare(ReferenceEntry("", ("",)), RougeLParameters())).status is Status.INVALID_INPUT
    with pytest.raises(ParameterError, match="measure"):
        RougeLParameters(measure="mean")  # type: ignore[arg-type] # what the wire could send
