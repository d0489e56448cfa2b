"""Another word in the same frame, and opposites: what they find, and what they leave alone."""

import math

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness.denials import led_verdict


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


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Yes, because the air was heated", True),
        ("yes because it was", True),
        ("No, it does not conduct", False),
        ("The answer is no.", False),
        ("False. The sun is a star.", False),
        ("yes", True),
        ("No one knows", None),
        ("No water is lost", None),
        ("Yes Minister", None),
        ("True love", None),
        ("It is hot", None),
        ("", None),
    ],
)
def test_how_a_text_begins(text: str, verdict: bool | None) -> None:  # noqa: FBT001 - a case's outcome
    assert led_verdict(text) is verdict


def test_the_same_and_the_other_verdict() -> None:
    same = of("Yes, because it rained.", "Yes, it rained all day")
    other = of("No, it rained.", "Yes, it rained all day")
    assert (same["verdict"], same["verdict_conflict"]) == (1.0, 0.0)
    assert (other["verdict"], other["verdict_conflict"]) == (0.0, 1.0)


def test_a_negation_says_no_where_yes_or_no_is_asked() -> None:
    found = of("It never conducts.", "Yes, it conducts", question="Does it conduct?")
    assert (found["verdict"], found["verdict_conflict"]) == (0.0, 0.0)
    assert of("It doesn't conduct", "No, it does not", question="Does it conduct?")["verdict"] == 1.0


def test_elsewhere_nothing_is_said() -> None:
    assert math.isnan(of("It never conducts.", "Yes, it conducts", question="Why?")["verdict"])
    assert math.isnan(of("No one", "Nobody")["verdict"])
    assert math.isnan(of("It is not hot", "It is cold", question="Is it hot or cold?")["verdict"])
