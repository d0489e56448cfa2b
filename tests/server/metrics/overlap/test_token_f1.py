"""SQuAD's F1."""

import time
from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_proto.parts import RougeLParts
from gradewire_server.domain.items import Item, MetricResult, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.matching.exact_match import SquadParameters
from gradewire_server.metrics.overlap.token_f1 import TokenF1


def grade(prediction: str, *references: str) -> Any:
    return Table().run(TokenF1().score(Item("1", "", references, prediction), SquadParameters(), NO_MODEL))


@pytest.mark.parametrize(
    ("prediction", "reference", "precision", "recall", "f1"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1, 1, 1),
        ("in the city of Paris", "Paris", 1 / 4, 1, 0.4),
        ("tower Eiffel", "Eiffel tower", 1, 1, 1),  # the order does not count
        ("cat cat dog", "cat dog dog", 2 / 3, 2 / 3, 2 / 3),
        ("Lyon", "Paris", 0, 0, 0),
        ("a", "the", 0, 0, 0),
    ],
)
def test_words_in_common(prediction: str, reference: str, precision: float, recall: float, f1: float) -> None:
    result = grade(prediction, reference)
    assert result.parts == RougeLParts(pytest.approx(precision), pytest.approx(recall), pytest.approx(f1))
    assert result.score == pytest.approx(f1)
    assert result.correct is None


def test_the_first_of_the_best_references_counts() -> None:
    result = grade("red cat", "dog", "the cat", "cat red", "red cat")
    assert result == MetricResult(1.0, matched_reference=2, parts=RougeLParts(1.0, 1.0, 1.0))


def test_a_blank_prediction_has_no_score() -> None:
    assert grade(" ", "cat").status is Status.EMPTY_PREDICTION


def test_time_is_linear_in_prediction_and_references_together() -> None:
    prediction = " ".join(map(str, range(50_000)))
    began = time.process_time()
    assert grade(prediction, *map(str, range(49_000, 50_000))).score == pytest.approx(2 / 50_001)
    assert time.process_time() - began < 2
