"""Soft VQA accuracy by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_proto.parts import VqaParts
from gradewire_server.domain.items import Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.matching.vqa_accuracy import (
    MAX_CHARACTERS,
    SoftVqaAccuracy,
    VqaAccuracy,
    VqaAccuracyParameters,
    character_similarity,
)


def grade(prediction: str, *references: str, **parameters: Any) -> Any:
    item = Item("1", "", references, prediction)
    return Table().run(SoftVqaAccuracy().score(item, VqaAccuracyParameters(**parameters), NO_MODEL))


@pytest.mark.parametrize(
    ("prediction", "reference", "similarity"),
    [
        ("cat", "cat", 1.0),
        ("cats", "cat", 2 / 3),  # one letter too many of three
        ("ca", "cat", 2 / 3),
        ("cut", "cat", 2 / 3),
        ("dog", "cat", 0.0),  # three edits of three
        ("a long answer about a cat", "cat", 0.0),  # more edits than letters: not below 0
        ("kitten", "sitting", 4 / 7),  # two substitutions and one insertion
        ("abcxxxxxxx", "abcdefghij", 0.3),  # seven substitutions of ten
        ("", "cat", 0.0),
        ("cat", "", 0.0),  # three edits of none
        ("", "", 1.0),
    ],
)
def test_similarity_is_one_minus_edits_per_letter_of_the_reference(
    prediction: str, reference: str, similarity: float
) -> None:
    assert character_similarity(prediction, reference) == pytest.approx(similarity, abs=1e-12)


def edits(one: str, other: str) -> int:
    """The textbook's table, row by row."""
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        above, row = row, [i]
        for j, theirs in enumerate(other, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (mine != theirs)))
    return row[-1]


@given(st.text("abc", max_size=12), st.text("abc", min_size=1, max_size=12))
def test_similarity_is_that_of_the_textbook_over_the_whole_range(prediction: str, reference: str) -> None:
    expected = max(0.0, 1 - edits(prediction, reference) / len(reference))
    assert character_similarity(prediction, reference) == pytest.approx(expected, abs=1e-12)


def test_leave_one_out_by_hand() -> None:
    # "cats" against cat, cat, dog: 2/3, 2/3, 0 (c-a-t-s to d-o-g takes 4 edits). Left out in turn:
    # cat: (2/3 + 0) / 3 = 2/9, twice; dog: (2/3 + 2/3) / 3 = 4/9; mean (2/9 + 2/9 + 4/9) / 3 = 8/27
    result = grade("cats", "cat", "cat", "dog")
    assert result.score == pytest.approx(8 / 27)
    assert result.parts == VqaParts(0, 3, "cats")
    assert result.matched_reference == 0
    assert result.correct is None


def test_direct_by_hand() -> None:
    # similarities 2/3, 2/3, 0: 4/3 of an annotator, a third of which is 4/9
    assert grade("cats", "cat", "cat", "dog", consensus="direct").score == pytest.approx(4 / 9)


def test_a_cut_makes_a_verdict_and_none_makes_none() -> None:
    assert grade("cats", "cat", "cat", "dog", consensus="direct", verdict_cut=4 / 9).correct is True
    assert grade("cats", "cat", "cat", "dog", consensus="direct", verdict_cut=0.5).correct is False


def test_nothing_in_common_names_no_reference() -> None:
    result = grade("xyz", "cat", "dog")
    assert (result.score, result.matched_reference) == (0.0, None)


def test_an_answer_of_articles_alone_is_like_others_of_that_kind_as_of_the_hard_one() -> None:
    result = grade("the", "a", "?", "dog")
    # similarities 1, 1, 0, left out in turn: (1/3 + 1/3 + 2/3) / 3
    assert result.score == pytest.approx(4 / 9)
    assert (result.matched_reference, result.parts) == (0, VqaParts(2, 3, ""))
    assert SoftVqaAccuracy.info.version == 2


def test_long_texts_are_cut_and_say_so() -> None:
    prediction = "x" * 1_000_000
    result = grade(prediction, prediction[:-1] + "y", "dog")
    assert result.warnings == (ResultWarning.TRUNCATED,)
    assert result.score == pytest.approx(1 / 6)  # equal as far as they are read, and not counted as agreeing
    assert result.parts.agreeing == 0
    assert not grade("x" * MAX_CHARACTERS, "cat", "dog").warnings


@given(
    st.sampled_from(["cat", "dog", "Two", "the cat", "the", "?"]),
    st.lists(st.sampled_from(["cat", "2", "a cat", "a", "..."]), min_size=2),
)
def test_it_is_never_below_the_hard_one(prediction: str, references: list[str]) -> None:
    item = Item("1", "", tuple(references), prediction)
    hard = Table().run(VqaAccuracy().score(item, VqaAccuracyParameters(), NO_MODEL))
    soft = grade(prediction, *references)
    assert hard.score - 1e-12 <= soft.score <= 1


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "cat").status is Status.INVALID_INPUT
    assert grade(" ", "cat", "dog").status is Status.EMPTY_PREDICTION
    failure = Table().run(SoftVqaAccuracy().prepare(ReferenceEntry("", ("",)), VqaAccuracyParameters()))
    assert failure.status is Status.INVALID_INPUT
