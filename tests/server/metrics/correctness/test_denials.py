"""Yes and no of answers and references: where they agree, contradict each other, or cannot be read."""

import math

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness.denials import denies, led_verdict
from gradewire_server.metrics.correctness.words import FeatureText


@pytest.mark.parametrize("prediction", ["It was not founded until 1912.", "It did not open until 1912"])
def test_what_was_not_until_then_was_then(prediction: str) -> None:
    assert of(prediction, "1912", question="When was it founded?")["negated"] == 0


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


@pytest.mark.parametrize(
    ("prediction", "reference", "unread"),
    [
        ("Hard to say from here", "yes", 1.0),
        ("It rained", "No", 1.0),
        ("Yes, it rained", "yes", 0.0),
        ("It rained", "Yes, it rained", 0.0),  # the sentence can be compared
        ("It rained", "rain", 0.0),
    ],
)
def test_a_verdict_that_cannot_be_read(prediction: str, reference: str, unread: float) -> None:
    assert of(prediction, reference, question="Was the match cancelled?")["verdict_unread"] == unread


@pytest.mark.parametrize(
    ("question", "reference", "prediction", "negated"),
    [
        ("Which mineral does not scratch glass: quartz or talc?", "talc", "Talc is the one that scratches glass.", 1),
        ("Which planet has no moons?", "Mercury", "Mercury has moons.", 1),
        ("Who did not sign the letter?", "Paul", "Paul signed the letter.", 1),
        ("Which mineral does not scratch glass: quartz or talc?", "talc", "Talc, both others scratch glass.", 0),
        ("Which mineral does not scratch glass: quartz or talc?", "talc", "Talc does not scratch glass.", 0),
        ("Which planet has no moons?", "Mercury", "Mercury lacks moons.", 0),
        ("Which bird cannot fly?", "the ostrich", "The ostrich, a flightless bird.", 0),
        ("Who did not sign the letter?", "Paul", "Everyone but Paul signed the letter.", 0),
        ("What decides whether or not a fuse melts?", "the current", "The current melts the fuse.", 0),
    ],
)
def test_what_is_said_not_to_be_so(question: str, reference: str, prediction: str, negated: float) -> None:
    assert of(prediction, reference, question=question)["negated"] == negated


def test_a_negated_negation_is_a_yes() -> None:
    question = "Do parallel lines in a plane meet?"
    assert of("They never fail to meet.", "no", question=question)["verdict"] == 0
    assert of("They never meet.", "no", question=question)["verdict"] == 1


def test_a_negation_before_the_question_does_not_hide_the_other_verdict() -> None:
    question = "The children did not water one of the pots. Did they do a good job?"
    assert of("Yes, they did.", "no", question=question)["verdict_conflict"] == 1
    assert of("No, they did not.", "no", question=question)["verdict_conflict"] == 0


def test_an_antonym_in_a_clause_of_its_own_denies_nothing() -> None:
    asked, wanted = FeatureText.of("What happens?"), [FeatureText.of("demand falls")]
    assert not denies(asked, wanted, FeatureText.of("When prices rise, demand decreases"))
    assert denies(asked, wanted, FeatureText.of("Demand rises"))
