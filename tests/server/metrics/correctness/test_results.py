"""The result of a calculation, and numbers that are only its steps."""

import math

import pytest

from gradewire_server.metrics.correctness.results import result_conflict, result_of
from gradewire_server.metrics.values.matching import ValueMatcher


def conflict(question: str, answer: str, *references: str) -> float:
    return result_conflict(ValueMatcher(question, answer), question, answer, references)


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9, then 9 + 6 = 15 marbles are left."),
        ("What is the area of a 4 by 7 rectangle?", "28", "4 \u00b7 7 = 28, halved: 14. The area is 14."),
        ("What is the cost of 5 pens at 2 euros?", "10 euros", "5 \u00d7 2 = 10, plus 2 euros postage, so 12 euros."),
        (
            "What is the cost of 5 pens at 2 euros?",
            "10 euros",
            "5 \u00d7 2 = 10 euros, minus a discount of 1 = 9 euros",
        ),
        ("Calculate the current for 20 V and 5 ohms.", "4 A", "I = U/R = 20/5 = 4, times 5 makes 20 A"),
        ("What is x in x + 7 = 19?", "12", "x + 12 = 19, so x = 7"),
        ("How many students are in the bus?", "34", "There were 40 seats and 34 students, 40 - 34 = 6, therefore 6."),
        ("What is 30% of 50?", "15", "30% of 50 is 15; 50 - 15 = 35. The answer is 35."),
        ("Wie viele \u00c4pfel bleiben?", "8", "12 - 4 = 8, dann 8 - 4 = 4, also bleiben 4 \u00fcbrig."),
        ("How many sheep are there in total?", "24", "18 + 6 = 24 -> 24 + 6 = 30"),
        ("What is the mean?", "6", "(4 + 8)/2 = 6; 6/2 = 3; result: 3"),
        ("How long is the side?", "5 cm", "25 = 5 \u00b7 5, doubled that gives 10 cm"),
    ],
)
def test_another_result(question: str, reference: str, answer: str) -> None:
    assert conflict(question, answer, reference) == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "9 marbles, because 15 - 6 = 9"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "9. Check: 9 + 6 = 15"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9, since 9 + 6 = 15"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "The answer is 9: 15 - 5 = 10 and 10 - 1 = 9."),
        ("How long is the route?", "14 km", "8 + 6 = 14 km (see page 3)"),
        (
            "What is the cost of 5 pens at 2 euros?",
            "10 euros",
            "2 + 2 + 2 + 2 + 2 = 10, so she pays 10 euros for the 5 pens.",
        ),
        ("What is the cost of 5 pens at 2 euros?", "10 euros", "So 5 pens cost 10 euros"),
        ("What is x in x + 7 = 19?", "x = 12", "x = 19 - 7 = 12"),
        ("What is x in x + 7 = 19?", "12", "x = 12, as 12 + 7 = 19"),
        ("What is 1/4 of 2?", "0.5", "2/4 = 1/2"),
        ("What is 1/4 of 2?", "0.5", "2/4 = 1/2 = 50%"),
        ("What is the speed?", "20 m/s", "v = 10 \u00b7 2 = 20 m/s = 72 km/h"),
        ("How many sheep are there in total?", "24", "18 white ones and 6 black ones, 24 in all"),
        (
            "How many sheep are there in total?",
            "24",
            "There are 24 in all: 18 + 6 = 24 animals, 18 of which are white.",
        ),
        ("What is the mean?", "6", "Sum: 12. Number: 2. Mean = 12/2 = 6"),
        ("When did it open?", "1990", "It opened in 1990, so it was 10 years before the 2000 games."),
    ],
)
def test_the_references_result(question: str, reference: str, answer: str) -> None:
    assert conflict(question, answer, reference) != 1.0


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("20 - 8 = 12", "12"),
        ("60 + 45 = 105, 105 + 15 = 120, less the 15 counted twice, 105 km in all.", "105 km"),
        ("10/40 = 25%, so the remainder, 75%, is the answer", "75%"),
        ("12 apples, because 20 - 8 = 12", ""),
        ("8 + 6 = 14 km (see page 3)", "14 km"),
        ("2 + 2 = 4 -> 4 * 3 = 12 goals", "12 goals"),
        ("It opened in 1990.", ""),
    ],
)
def test_the_text_of_the_result(answer: str, result: str) -> None:
    assert result_of(answer) == result


def test_answers_without_a_calculation_and_references_without_one_number_have_no_result() -> None:
    assert math.isnan(conflict("How many?", "There are 12 apples and 8 pears.", "8"))
    assert math.isnan(conflict("Solve x^2 = 49.", "x = 7 or x = -7", "7 and -7", "x = 7, -7"))
    assert math.isnan(conflict("What is it?", "5 + 8 = 13, total \\boxed{83}", "83"))
    assert conflict("How many?", "20 - 8 = 12", "12") == 0.0
