"""SQuAD's exact match."""

from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_server.domain.items import Item, MetricResult, ReferenceEntry, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.common import AnswerParameters
from gradewire_server.metrics.matching.exact_match import ExactMatch


def grade(prediction: str, *references: str) -> Any:
    return Table().run(ExactMatch().score(Item("1", "", references, prediction), AnswerParameters(), NO_MODEL))


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("The Eiffel Tower!", "eiffel   tower", 1),
        ("an apple", "the apple.", 1),
        ("1,000", "1000", 1),
        ("theatre", "atre", 0),  # articles go as whole words only
        ("don't", "dont", 1),
        ("a cat sat", "cat", 0),
        ("“cat”", "cat", 0),  # ASCII punctuation only, as in SQuAD
        ("A.", "a", 1),
        ("a", "the", 0),  # SQuAD's rule alone would leave nothing of both and call them equal
        ("?", "!", 0),
    ],
)
def test_one_where_equal_but_for_case_punctuation_articles_and_space(
    prediction: str, reference: str, score: int
) -> None:
    assert grade(prediction, reference).score == score


def test_the_first_reference_that_matches_is_named() -> None:
    assert grade("Cat", "dog", "the cat", "cat") == MetricResult(score=1.0, matched_reference=1, correct=True)
    assert grade("Cat", "dog") == MetricResult(score=0.0, correct=False)


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", "dog", "\t").message.startswith("references[1]")
    assert grade(" \n", "dog").status is Status.EMPTY_PREDICTION
    assert grade(" ", " ").status is Status.INVALID_INPUT


def test_prepare_needs_nothing_but_references() -> None:
    table = Table()
    assert table.run(ExactMatch().prepare(ReferenceEntry("", ("x",)), AnswerParameters())) is None
    failure = table.run(ExactMatch().prepare(ReferenceEntry("", ("x", "")), AnswerParameters()))
    assert failure.status is Status.INVALID_INPUT
    assert table.rounds == []
