"""Other forms of a reference's words count as said; words that only look like them do not."""

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness.words import clause_words


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("the WHO declared it", "World Health Organization"),
        ("The World Health Organization did.", "WHO"),
        ("the USA", "U.S.A."),
        ("U.S.A.", "USA"),
        ("they sell icecream", "ice cream"),
        ("they sell ice cream", "icecream"),
        ("J. K. Rowling wrote it", "JK Rowling"),
        ("Edvard Gronlund", "Edvard Gr\u00f8nlund"),
        ("Lodz", "\u0141\u00f3d\u017a"),
        ("a Gryffindor", "Gryffindors"),
    ],
)
def test_other_forms_of_a_word_are_found(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["new_recall"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("the WTO declared it", "World Health Organization"),
        ("The World Trade Organization did.", "WHO"),
        ("the USSR", "U.S.A."),
        ("who has heard of this organization", "World Health Board"),  # the pronoun
        ("we had occasional frost", "WHOF"),  # initials of words that are no name
        ("ice and cream", "icecream"),
        ("as is", "asis"),  # too short to be two words in one
    ],
)
def test_words_that_only_look_like_them_are_not(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["new_recall"] < 1.0


@pytest.mark.parametrize(
    ("prediction", "reference", "near"),
    [
        ("a dairy form", "a dairy farm", False),  # both are words
        ("the prefect", "perfect", False),
        ("Johann Straus", "Johann Strauss", True),  # a name
        ("definately", "definitely", True),  # no word
        ("colonial", "colony", True),  # another ending
    ],
)
def test_a_word_is_not_misspelt_into_another_word(prediction: str, reference: str, near: bool) -> None:  # noqa: FBT001 - a case's outcome
    assert (of(prediction, reference)["spelling_least"] > 0.6) is near


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't hot", ("it", "be", "not", "hot")),
        ("They don\u2019t", ("they", "do", "not")),
        ("I can't, I cannot", ("i", "ca", "not", "i", "ca", "not")),
        ("It won't", ("it", "wo", "not")),
        ("  ", ()),
    ],
)
def test_a_negation_in_a_verb_is_a_word_of_its_own(text: str, words: tuple[str, ...]) -> None:
    assert clause_words(text) == words
