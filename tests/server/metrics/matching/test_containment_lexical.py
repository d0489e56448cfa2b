"""Lexical match: a reference occurs in the prediction."""

from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_server.domain.items import Item, MetricResult, ReferenceEntry, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.common import AnswerParameters
from gradewire_server.metrics.matching.containment import LexicalMatch


def grade(prediction: str, *references: str) -> Any:
    return Table().run(LexicalMatch().score(Item("1", "", references, prediction), AnswerParameters(), NO_MODEL))


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("It is the Eiffel Tower, in Paris.", "eiffel tower", 1),
        ("Eiffel's famous tower", "eiffel tower", 0),  # not one after another
        ("a party", "art", 0),  # whole words only
        ("It was bought in the U.S.", "US", 1),
        ("About 1,000 people", "1000", 1),
        ("two cats", "cat", 0),  # no lemmas: easy_match finds this one
        ("an owl on the roof", "owl on roof", 1),  # articles are left out of both
        ("They call it “猫”.", "猫", 1),
        ("这是一只猫。", "猫", 1),  # scripts without spaces between words
        ("Это Москва!", "москва", 1),
        ("the", "a", 0),
        ("A.", "a", 1),
        ("no", "?!", 0),
    ],
)
def test_one_where_the_reference_occurs(prediction: str, reference: str, score: int) -> None:
    assert grade(prediction, reference).score == score


def test_the_first_reference_that_occurs_is_named() -> None:
    assert grade("a black cat", "dog", "the cat", "black") == MetricResult(1.0, matched_reference=1, correct=True)
    assert grade("a black cat", "dog") == MetricResult(0.0, correct=False)


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog").status is Status.EMPTY_PREDICTION
    failure = Table().run(LexicalMatch().prepare(ReferenceEntry("", ("",)), AnswerParameters()))
    assert failure.status is Status.INVALID_INPUT
