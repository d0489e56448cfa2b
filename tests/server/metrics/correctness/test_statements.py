"""Yes and no in sentences that state or deny what the question asks."""

import math

import pytest

from gradewire_server.metrics.correctness.denials import verdict_features
from gradewire_server.metrics.correctness.statements import begins_with_verdict, is_qualified, stated_verdict
from gradewire_server.metrics.correctness.words import FeatureText


def verdicts_of(question: str, prediction: str, reference: str) -> dict[str, float]:
    """Return the features of one answer."""
    return verdict_features(FeatureText.of(question), [FeatureText.of(reference)], FeatureText.of(prediction))


@pytest.mark.parametrize(
    ("question", "text", "verdict"),
    [
        ("Did the tenant pay?", "She paid.", True),
        ("Did the tenant pay?", "She moved out without paying.", False),
        ("Did the tenant pay?", "The tenant refused to pay.", False),
        ("Is the lamp on the desk?", "It is on the desk.", True),
        ("Is the lamp on the desk?", "The lamp is not on the desk.", False),
        ("Is there a cat in the picture?", "No cat can be seen.", False),
        ("Was the novel written by Woolf?", "Woolf wrote it.", True),
        ("Is the glass full?", "The glass is empty.", False),
        ("Does the cake contain milk?", "It is milk-free.", False),
        ("Do horses have six legs?", "They have four.", None),
        ("Is Turin the capital of Italy?", "Rome is the capital of Italy.", None),
        ("Isn't it cold?", "It is cold.", None),
        ("Is it red or blue?", "It is red.", None),
        ("Who won?", "Ann won.", None),
    ],
)
def test_a_sentence_states_what_the_question_asks(question: str, text: str, verdict: object) -> None:
    assert stated_verdict(question, text) is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Right, it's a lake.", True),
        ("Sure, at any time.", True),
        ("Certainly not.", False),
        ("They do, behind the barn.", True),
        ("He can't.", False),
        ("There isn't.", False),
        ("Right angles have 90 degrees.", None),
        ("It is a lake.", None),
    ],
)
def test_words_at_the_beginning_that_mean_yes_or_no(text: str, verdict: object) -> None:
    assert begins_with_verdict(text) is verdict


@pytest.mark.parametrize(
    ("question", "prediction", "reference"),
    [
        ("Is there a cat in the picture?", "Yes, no cat can be seen on the sofa.", "yes"),
        ("Can penguins fly?", "Yes, they can't.", "yes"),
        ("Is the lamp on the desk?", "It is on the desk.", "no"),
        ("Did the tenant pay?", "She moved out without paying.", "yes"),
        ("Can sound cross a vacuum?", "Yes.", "Sound cannot cross a vacuum."),
    ],
)
def test_an_answer_that_contradicts_itself_or_the_reference(question: str, prediction: str, reference: str) -> None:
    found = verdicts_of(question, prediction, reference)
    assert 1.0 in {found["verdict_doubt"], 1.0 - found["verdict"]}


@pytest.mark.parametrize(
    ("question", "prediction", "reference"),
    [
        ("Is the lamp on the desk?", "It is on the desk.", "yes"),
        ("Did the tenant pay?", "She moved out without paying.", "no"),
        ("Is there a cat in the picture?", "No, no cat can be seen.", "no"),
        ("Can sound cross a vacuum?", "No.", "Sound cannot cross a vacuum."),
        ("Can penguins fly?", "Correct, they can.", "yes"),
    ],
)
def test_an_answer_that_states_the_reference_s_verdict(question: str, prediction: str, reference: str) -> None:
    found = verdicts_of(question, prediction, reference)
    assert found["verdict"] == 1.0
    assert found["verdict_doubt"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "doubt"),
    [
        ("Yes, but only if salt is added.", 1.0),
        ("Yes, most of them do.", 1.0),
        ("Yes, unless the wind is strong.", 1.0),
        ("Yes, it floats, even if the sea is rough.", 0.0),
        ("Yes, only a fool would doubt it.", 0.0),
    ],
)
def test_a_yes_under_a_condition_is_in_doubt(prediction: str, doubt: float) -> None:
    assert verdicts_of("Does the raft float?", prediction, "yes")["verdict_doubt"] == doubt
    assert not is_qualified("Does it float if salt is added?", "yes", "Yes, if salt is added.")


def test_a_questioned_verdict_is_not_the_answer() -> None:
    assert verdicts_of("Is it safe?", "Yes? No, it isn't.", "yes")["verdict_conflict"] == 1.0


def test_other_questions_have_no_verdict() -> None:
    found = verdicts_of("Who won?", "Ann won.", "Ann")
    assert math.isnan(found["verdict"])
    assert found["verdict_doubt"] == 0.0
