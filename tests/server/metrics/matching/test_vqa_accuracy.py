"""VQA accuracy: values by hand on the official edge cases.

With 10 annotators of whom n agree, an agreeing one sees n - 1 others agree, the 10 - n rest see n:
score = (n * min(1, (n - 1) / 3) + (10 - n) * min(1, n / 3)) / 10.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_proto.choices import VqaConsensus
from gradewire_proto.parts import VqaParts
from gradewire_server.domain.items import Item, ReferenceEntry, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.matching.vqa_accuracy import (
    VqaAccuracy,
    VqaAccuracyParameters,
    is_at_least,
    tidy,
    vqa_normalise,
)


def grade(prediction: str, *references: str, **parameters: Any) -> Any:
    item = Item("1", "", references, prediction)
    return Table().run(VqaAccuracy().score(item, VqaAccuracyParameters(**parameters), NO_MODEL))


@pytest.mark.parametrize(
    ("agreeing", "score"),
    [
        (0, 0.0),  # nobody
        (1, 0.3),  # the one sees 0 others; 9 see 1: 9 * 1/3 / 10
        (2, 0.6),  # (2 * 1/3 + 8 * 2/3) / 10
        (3, 0.9),  # (3 * 2/3 + 7 * 1) / 10
        (4, 1.0),  # the 4 see 3 others, the 6 see 4
        (9, 1.0),
    ],
)
def test_ten_annotators_left_out_one_by_one(agreeing: int, score: float) -> None:
    references = ["cat"] * agreeing + [f"dog {n}" for n in range(10 - agreeing)]
    result = grade("cat", *references)
    assert result.score == pytest.approx(score, abs=1e-12)
    assert result.parts == VqaParts(agreeing, 10, "cat")
    assert result.correct is (agreeing > 0)
    assert result.matched_reference == (0 if agreeing else None)


@pytest.mark.parametrize(("agreeing", "score"), [(0, 0.0), (1, 1 / 3), (2, 2 / 3), (3, 1.0), (5, 1.0)])
def test_direct_counts_to_three(agreeing: int, score: float) -> None:
    references = ["cat"] * agreeing + [f"dog {n}" for n in range(10 - agreeing)]
    assert grade("cat", *references, consensus=VqaConsensus.DIRECT).score == pytest.approx(score, abs=1e-12)


def test_two_annotators_cannot_give_full_marks() -> None:
    # unanimous: each sees one other agree, 1/3; not unanimous: the agreeing one sees none, the other sees one: 1/6
    assert grade("cat", "cat", "cat").score == pytest.approx(1 / 3)
    assert grade("cat", "dog", "cat").score == pytest.approx(1 / 6)
    assert grade("cat", "dog", "cat").matched_reference == 1


def test_unanimous_references_and_their_prediction_are_not_normalised() -> None:
    assert grade("The cat", *["the cat"] * 10).score == 0.0  # the capital counts
    assert grade("cat", *["the cat"] * 10).score == 0.0  # and so does the article
    assert grade(" the\tcat\n", *["the cat"] * 10).score == 1.0  # white space at the ends and tabs never do
    # one annotator differs, so all are normalised: nine agree
    assert grade("The cat", *["the cat"] * 9, "a dog").score == 1.0
    assert grade("The cat", *["the cat"] * 9, "a dog").parts.compared_prediction == "cat"
    # annotators who differ before the normalisation are not unanimous, even where they agree after it
    assert grade("A cat", *["the cat"] * 9, "cat").score == 1.0


def test_what_is_unanimous_is_normalised_too_where_that_is_asked_for() -> None:
    assert grade("Yes", *["yes"] * 10).score == 0.0  # the official program's rule
    assert grade("Yes", *["yes"] * 10, normalise="always").score == 1.0
    assert grade("The cat.", *["a cat"] * 10, normalise="always").score == 1.0
    assert grade("The cat.", *["a cat"] * 10, normalise="always").parts.compared_prediction == "cat"
    # where annotators differ both are one
    assert grade("The cat", *["the cat"] * 9, "a dog", normalise="always").score == 1.0
    with pytest.raises(ParameterError, match="normalise"):
        VqaAccuracyParameters(normalise="never")  # type: ignore[arg-type] # what the wire could send


def test_the_empty_text_that_normalisation_leaves_equals_the_empty_text() -> None:
    # two of ten annotators gave nothing but an article or a mark: (2 * 1/3 + 8 * 2/3) / 10
    references = ["a", "?", *[f"dog {n}" for n in range(8)]]
    for prediction in ("the", "A", "...", "(an)"):
        result = grade(prediction, *references)
        assert result.score == pytest.approx(0.6)
        assert (result.matched_reference, result.correct) == (0, True)
        assert result.parts == VqaParts(2, 10, "")
    assert grade("the dog", *references).score == 0.0
    # where all annotators agree nothing is taken away
    assert grade("the", *["a"] * 10).score == 0.0
    assert grade("the", *["a"] * 10, normalise="always").score == 1.0
    assert VqaAccuracy.info.version == 2


@pytest.mark.parametrize(
    ("prediction", "references", "normalise", "score"),
    [
        ("two", ["two"], "official", 1.0),
        ("Two", ["two"], "official", 0.0),  # a single reference is unanimous, so nothing is normalised
        ("Two", ["2"], "always", 1.0),
        ("three", ["2"], "always", 0.0),
        ("a cat", ["dog", "cat"], "official", 1.0),  # any one will do
        ("cow", ["dog", "cat"], "official", 0.0),
    ],
)
def test_single_is_one_where_any_reference_is_met(
    prediction: str, references: list[str], normalise: str, score: float
) -> None:
    result = grade(prediction, *references, consensus="single", normalise=normalise)
    assert (result.score, result.correct) == (score, score == 1)


def test_one_annotator_cannot_be_left_out() -> None:
    result = grade("cat", "cat")
    assert result.status is Status.INVALID_INPUT
    assert "consensus=single" in result.message
    assert grade("cat", "cat", consensus="direct").score == pytest.approx(1 / 3)


def test_a_cut_makes_the_verdict() -> None:
    references = ["cat"] * 2 + [f"dog {n}" for n in range(8)]
    assert grade("cat", *references).correct is True  # one agreeing annotator is enough
    assert grade("cat", *references, verdict_cut=0.6).correct is True  # the score is 0.6 but for rounding
    assert grade("cat", *references, verdict_cut=0.61).correct is False
    assert is_at_least(0.3 - 1e-15, 0.3)
    assert not is_at_least(0.3 - 1e-6, 0.3)


@pytest.mark.parametrize("cut", [0.0, -1.0, 1.01, float("nan"), float("inf")])
def test_a_cut_out_of_range_is_refused(cut: float) -> None:
    with pytest.raises(ParameterError, match="verdict_cut"):
        VqaAccuracyParameters(verdict_cut=cut)


def test_an_unknown_consensus_is_refused() -> None:
    with pytest.raises(ParameterError, match="consensus"):
        VqaAccuracyParameters(consensus="mean")  # type: ignore[arg-type] # what the wire could send


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog", "cat").status is Status.EMPTY_PREDICTION


@given(st.lists(st.sampled_from(["cat", "dog", "The cat.", "two", "2"]), min_size=2, max_size=12), st.data())
def test_the_score_depends_on_how_many_agree_and_not_on_their_order(references: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(references))
    one, other = grade("cat", *references), grade("cat", *shuffled)
    assert one.score == pytest.approx(other.score, abs=1e-12)
    agreeing, total = one.parts.agreeing, one.parts.annotators
    by_hand = agreeing * min(1, max(0, agreeing - 1) / 3) + (total - agreeing) * min(1, agreeing / 3)
    assert one.score == pytest.approx(by_hand / total, abs=1e-12)


def test_prepare_needs_nothing_but_references() -> None:
    table = Table()
    assert table.run(VqaAccuracy().prepare(ReferenceEntry("", ("x",)), VqaAccuracyParameters())) is None
    failure = table.run(VqaAccuracy().prepare(ReferenceEntry("", ("x", "")), VqaAccuracyParameters()))
    assert failure.status is Status.INVALID_INPUT
    assert table.rounds == []


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        # number words, as whole words, zero to ten; "none" is 0 too
        ("two", "2"),
        ("None", "0"),
        ("zero", "0"),
        ("ten", "10"),
        ("eleven", "eleven"),
        ("twofold", "twofold"),
        ("twenty one", "twenty 1"),
        # articles, as whole words, in any case
        ("a cat", "cat"),
        ("The cat and an owl", "cat and owl"),
        ("theatre", "theatre"),
        # punctuation between two words becomes a space
        ("black/white", "black white"),
        ("blue-green", "blue green"),
        ("yes!no?", "yes no"),
        # beside a space it goes without one, and then everywhere in the text
        ("well , yes", "well yes"),
        ("left- right-hand", "left righthand"),
        ("yes, no,maybe", "yes nomaybe"),
        # at the ends there is no space beside it: it becomes one, which goes with the splitting
        ("yes!", "yes"),
        ("(yes)", "yes"),
        # a comma between digits takes all punctuation away without a space
        ("1,000", "1000"),
        ("1,000/2", "10002"),
        ("1, 2", "1 2"),
        # periods: kept before a digit, even at the start; otherwise gone without a space
        ("3.5", "3.5"),
        (".5", ".5"),
        ("3.", "3"),
        ("p.m.", "pm"),
        ("end.", "end"),
        ("a.1", "a.1"),
        # colons and apostrophes are no punctuation here
        ("10:30", "10:30"),
        ("man's", "man's"),
        # contractions get their apostrophe back, also where one of two is missing
        ("dont", "don't"),
        ("cant", "can't"),
        ("couldnt've", "couldn't've"),
        ("couldn'tve", "couldn't've"),
        ("couldntve", "couldntve"),  # both missing is nobody's spelling
        ("oclock", "o'clock"),
        ("yall'd've", "y'all'd've"),
        ("shes", "shes"),  # left out as the challenge does, like "its" and "were"
        ("its", "its"),
        ("Im", "im"),
        # order: punctuation first, so a contraction written with a dash is two words
        ("don-t", "don t"),
        # other scripts
        ("ДВА кота!", "два кота"),
        ("猫/犬", "猫 犬"),
        # nothing but articles and punctuation
        ("A", ""),
        ("the", ""),
        ("?", ""),
        ("...", ""),
        ("a.-the", ""),
        ("the 1", "1"),
    ],
)
def test_rules(text: str, normalised: str) -> None:
    assert vqa_normalise(text) == normalised


def test_only_ends_tabs_and_line_ends_are_tidied() -> None:
    assert tidy(" The\tcat\nsat ") == "The cat sat"


@given(st.text(alphabet="bx", min_size=1, max_size=5), st.text(alphabet="ab ,.-'!", max_size=20))
def test_a_word_that_is_no_article_stays(word: str, text: str) -> None:
    assert vqa_normalise(f"{text} {word}").endswith(word)


@given(st.lists(st.sampled_from(["a", "An", "THE", "?", "-", ".", "(", " "]), max_size=6).map(" ".join))
def test_nothing_is_left_of_articles_and_punctuation(text: str) -> None:
    assert vqa_normalise(text) == ""


@given(st.text(alphabet="ab 1,.-'!", max_size=30))
def test_words_are_single_spaced(text: str) -> None:
    assert " ".join(vqa_normalise(text).split()) == vqa_normalise(text)
