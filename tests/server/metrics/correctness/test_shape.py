"""What kind of item an item is: numbers that say nothing of how well its answer matches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.item import Item
from gradewire_server.domain.parts import SmileParts
from gradewire_server.metrics.correctness.features.inputs import CorrectnessInputs
from gradewire_server.metrics.correctness.shape import SHAPE, shape

NOTHING = SmileParts(0.0, 0.0, 0.0, 0.0, "", 0, correct=False)


def told(question: str = "", prediction: str = "red", *references: str) -> dict[str, float]:
    item = Item("1", question, references or ("dog",), prediction)
    found = shape(CorrectnessInputs(item, truncated=False, best=0, smile=0.0, terms=NOTHING))
    return dict(zip(SHAPE, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who wrote Hamlet?", "asks_who"),
        ("the man who wrote it was born when", "asks_who"),
        ("In what year was it?", "asks_when"),
        ("when did it end", "asks_when"),
        ("Where is it?", "asks_where"),
        ("which city is it in", "asks_where"),
        ("How many moons?", "asks_amount"),
        ("Why is the sky blue?", "asks_why"),
        ("How does a pump work?", "asks_why"),
        ("What is it?", "asks_what"),
        ("Is it raining, and what then?", "asks_yes_no"),
        ("Name a river.", ""),
        ("The whole thing", ""),  # neither "who" nor "how" is a word of it
        ("", ""),
    ],
)
def test_a_question_is_of_one_kind_at_most(question: str, kind: str) -> None:
    found = told(question)
    assert [name for name in SHAPE if name.startswith("asks_") and found[name]] == [kind] * bool(kind)
    assert found["no_question"] == float(not question)


def test_lengths_are_logarithms_and_shares_are_of_the_best_reference() -> None:
    found = told("How many?", "one two three", "12 of the 40")
    assert found["question_words"] == pytest.approx(math.log(3))
    assert found["answer_words"] == pytest.approx(math.log(4))
    assert found["reference_words"] == pytest.approx(math.log(5))
    assert (found["reference_digits"], found["reference_plain"]) == (0.5, 0.5)
    assert told("", "red", "Yes, it is.")["reference_verdict"] == 1
    assert told("", "red", "yesterday")["reference_verdict"] == 0


@given(st.text(max_size=60), st.text(min_size=1, max_size=60).filter(lambda text: text.strip().isalnum()))
def test_they_are_finite_and_bounded_whatever_the_texts(question: str, prediction: str) -> None:
    found = np.array(list(told(question, prediction).values()))
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 10)).all()
