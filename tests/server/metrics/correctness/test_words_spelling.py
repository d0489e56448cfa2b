"""Which of a reference's new words an answer lacks."""

import math

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness.words import FeatureText, head_of


@pytest.mark.parametrize(
    ("reference", "head"),
    [
        ("a large kitchen in the old house", "kitchen"),
        ("under the old oak tree", "tree"),
        ("Ludwig van Beethoven", "beethoven"),
        ("President of the United States", "president"),
        ("Landover, Maryland", "landover"),
        ("the", "the"),
    ],
)
def test_the_head_of_a_phrase(reference: str, head: str) -> None:
    assert head_of(FeatureText.of(reference)) == head


def test_head_and_modifiers() -> None:
    found = of("a large brown dog", "a large brown bear")
    assert (found["head_recall"], found["modifier_recall"]) == (0.0, 1.0)
    found = of("a bear", "a large brown bear")
    assert (found["head_recall"], found["modifier_recall"]) == (1.0, 0.0)


def test_what_the_question_says_is_not_missing() -> None:
    found = of("the brown one", "the brown bear", question="Which bear?")
    assert math.isnan(found["head_recall"])
    assert found["modifier_recall"] == 1.0


def test_names_are_the_words_that_no_dictionary_has() -> None:
    assert of("a captain", "Captain Neemuchwala")["name_recall"] == 0.0
    assert of("it was Neemuchwala", "captain neemuchwala")["name_recall"] == 1.0
    assert math.isnan(of("a captain", "a captain")["name_recall"])


def test_members_of_a_list() -> None:
    assert of("apples, bread and milk", "apples, bread and cheese")["member_recall"] == pytest.approx(2 / 3)
    assert of("cheese, bread, apples", "apples, bread and cheese")["member_recall"] == 1.0
    assert math.isnan(of("apples", "apples")["member_recall"])


def test_a_piece_of_a_reference_is_not_the_reference() -> None:
    assert of("It is New Zealand.", "New Zealand")["spelling_within"] == 1.0
    assert of("Zealand", "New Zealand")["spelling_within"] == pytest.approx(2 * 7 / (7 + 11))
