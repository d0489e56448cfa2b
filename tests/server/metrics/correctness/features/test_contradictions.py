"""Another word in the same frame, and opposites: what they find, and what they leave alone."""

import pytest
from tests.server.metrics.correctness.features.test_measure import of


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("It looks like a living room.", "It looks like a kitchen"),
        ("They met in front of the station", "in front of the theatre"),
        ("Captain Harris wrote it", "Captain Morris wrote it"),
        ("a dairy form", "a dairy farm"),
    ],
)
def test_another_word_in_the_same_frame(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["swapped"] > 0.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("It looks like a kitchen.", "It looks like a kitchen"),
        ("It looks like a big kitchen.", "It looks like a kitchen"),
        ("It looks like the kitchen", "It looks like a kitchen"),
        ("Abid Neemuchwalla leads it", "Abid Neemuchwala leads it"),  # a misspelt name
        ("no idea at all", "a kitchen"),
    ],
)
def test_no_other_word_is_in_the_frame(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["swapped"] == 0.0


OPPOSITE = [
    ("Does it conduct?", "No, it does not conduct", "Yes, it conducts"),
    ("Will it rain?", "No, it will stay dry", "No, it will not stay dry"),
    ("", "The conclusion is valid", "The conclusion is invalid"),
    ("Is it valid?", "It is valid", "It is invalid"),
    ("", "The volume increases", "the volume decreases"),
    ("", "There is a gap in the circuit", "there is no gap in the circuit"),
    ("", "They do not need oxygen", "They need oxygen"),
    ("", "The molecule is polar", "The molecule is nonpolar"),
    ("", "hot", "It was cold."),
    ("Which is older, A or B?", "Anna is older than Bert", "Anna is younger than Bert"),
    ("Which is older?", "Anna is older than Bert", "Bert is older than Anna"),
]
ALIKE = [
    # The verdict at the beginning negates nothing of what is said behind it.
    ("Does it conduct?", "No, it does not conduct", "No, it doesn't conduct"),
    ("Would she like tea?", "No, she prefers coffee", "She prefers coffee"),
    ("Would she like tea?", "No, she prefers coffee", "No, she'd rather have coffee."),
    ("", "The conclusion is valid", "The conclusion is valid"),
    ("", "The conclusion is valid", "The conclusion is not invalid"),
    ("", "They do not need oxygen", "They don't need oxygen"),
    ("", "hot", "hot, not cold"),
    ("", "the uniform", "a uniform form"),
    ("", "Paris", "It was not only Paris"),
    ("Which prize did he not win?", "the Nobel Prize", "He did not win the Nobel Prize"),
    ("Which is older?", "Anna is older than Bert", "Bert is younger than Anna"),
    ("", "83 or more", "no less than 83"),
    ("", "Paris", "Paris rather than Rome"),
    ("", "blue", "Not red but blue"),
]


@pytest.mark.parametrize(("question", "reference", "prediction"), OPPOSITE)
def test_the_opposite_is_found(question: str, reference: str, prediction: str) -> None:
    assert of(prediction, reference, question=question)["opposite"] == 1.0


@pytest.mark.parametrize(("question", "reference", "prediction"), ALIKE)
def test_what_says_the_same_is_no_opposite(question: str, reference: str, prediction: str) -> None:
    assert of(prediction, reference, question=question)["opposite"] == 0.0


@pytest.mark.parametrize("prediction", ["It was not founded until 1912.", "It did not open until 1912"])
def test_what_was_not_until_then_was_then(prediction: str) -> None:
    assert of(prediction, "1912", question="When was it founded?")["opposite"] == 0
