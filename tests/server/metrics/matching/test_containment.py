"""A reference as whole words in the prediction."""

from typing import Any

import pytest
from tests.support.engines.programs import Table

from gradewire_server.domain.items import Item, MetricResult, ReferenceEntry, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.common import AnswerParameters
from gradewire_server.metrics.matching.containment import EasyMatch, contained
from gradewire_server.metrics.text.normalise import normalise


def grade(prediction: str, *references: str) -> Any:
    return Table().run(EasyMatch().score(Item("1", "", references, prediction), AnswerParameters(), NO_MODEL))


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("They went to a party.", "art", 0),
        ("It is fine art!", "Art", 1),
        ("Two dogs, painted", "dog paint", 1),  # lemmas
        ("red big dog", "red dog", 0),  # not one after another
        ("dog red", "red dog", 0),
        ("so: ?!", "?!", 0),  # the prediction has words, so its punctuation is gone
        ("?!", "?!", 1),
    ],
)
def test_one_where_the_words_stand_in_the_prediction(prediction: str, reference: str, score: int) -> None:
    assert grade(prediction, reference).score == score


def test_the_first_reference_that_is_found_is_named() -> None:
    assert grade("a cat and a dog", "bird", "dogs", "cat") == MetricResult(score=1.0, matched_reference=1, correct=True)
    assert grade("a cat", "bird") == MetricResult(score=0.0, correct=False)


def test_a_prediction_is_joined_once_for_all_references() -> None:
    # Once for each of a thousand references, one of 64 KB took a fifth of a second.
    class Counted:
        read = 0

        @property
        def words(self) -> tuple[str, ...]:
            Counted.read += 1
            return ("a", "cat")

    assert list(contained(Counted(), [normalise("cat"), normalise("dog")] * 500)) == [True, False] * 500  # type: ignore[arg-type]
    assert Counted.read == 1


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade("cat").status is Status.INVALID_INPUT
    assert grade("cat", " ").status is Status.INVALID_INPUT
    assert grade("\u00a0", "dog").status is Status.EMPTY_PREDICTION


def test_prepare_needs_nothing_but_references() -> None:
    table = Table()
    assert table.run(EasyMatch().prepare(ReferenceEntry("", ("x",)), AnswerParameters())) is None
    assert table.run(EasyMatch().prepare(ReferenceEntry("", ()), AnswerParameters())).status is Status.INVALID_INPUT
    assert table.rounds == []
