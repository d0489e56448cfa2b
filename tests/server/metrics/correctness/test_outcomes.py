"""Which side of an outcome a reference has."""

import pytest

from gradewire_server.metrics.correctness.outcomes import outcome_reversed
from gradewire_server.metrics.correctness.words import FeatureText

REVERSED = [
    ("Who won the match?", "Federer", "Nadal beat Federer in four sets."),
    ("Who won?", "Real Madrid", "Real Madrid lost to Liverpool in the final."),
    ("Which team lost?", "Liverpool", "Liverpool beat Real Madrid."),
    ("Who won the cup?", "Spain", "Spain was beaten by Italy."),
    ("Who bought the house?", "Bob", "Bob sold it to Ann."),
    ("(Scores: Inter 2, Roma 1) Who won?", "Inter", "Inter lost to Roma."),
    ("The shop was run by Lee before Kim took it. Who sold it?", "Lee", "Kim sold it to Lee."),
    ("Who received the prize?", "Ada", "Ada gave the prize to Tom."),
    ('In "The Hare and the Tortoise", who wins the race?', "the tortoise", "The hare beats the tortoise."),
]
KEPT = [
    ("Who won?", "Liverpool", "Real Madrid lost to Liverpool."),
    ("Who won?", "Spain", "Italy was beaten by Spain."),
    ("Who won?", "Spain", "Spain beat Italy."),
    ("Who bought it?", "Ann", "Bob sold it to Ann."),
    ("Who did the Cubs beat in 2016?", "the Indians", "The Cubs beat the Indians."),
    ("Which Spaniard won the Tour?", "Indurain", "The Spaniard who won the Tour is Indurain."),
    ("Who received the prize?", "Ada", "Ada was given the prize."),
    ("Which picture was sold?", "the Monet", "The Monet was sold."),
    ("(Scores: Inter 2, Roma 1) Who won?", "Inter", "Roma lost to Inter."),
    ("Who taught whom?", "Plato taught Aristotle", "Aristotle was taught by Plato."),
    ("Where is it?", "Paris", "Nadal beat Paris."),
]


def reversed_(question: str, reference: str, answer: str) -> float:
    return outcome_reversed(FeatureText.of(question), [FeatureText.of(reference)], FeatureText.of(answer))


@pytest.mark.parametrize(("question", "reference", "answer"), REVERSED)
def test_the_other_side_is_found(question: str, reference: str, answer: str) -> None:
    assert reversed_(question, reference, answer) == 1.0


@pytest.mark.parametrize(("question", "reference", "answer"), KEPT)
def test_the_side_that_was_asked_for_is_left_alone(question: str, reference: str, answer: str) -> None:
    assert reversed_(question, reference, answer) == 0.0
