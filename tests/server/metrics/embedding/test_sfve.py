"""SFVE: both answers behind the question."""

from typing import Any

import pytest
from tests.support.engines.programs import Table, at

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - as domain
from gradewire_server.metrics.embedding.sfve import Sfve
from gradewire_server.metrics.parameters import EncoderParameters

Y, FAR, NEAR, NEAR_TOO = (f"Question: what? Answer: {answer}" for answer in ("y", "far", "near", "near too"))
PROBE = "Question: what? Answer: a"
VECTORS = {Y: at(0), NEAR: at(60), FAR: at(180), NEAR_TOO: at(-60), PROBE: at(0)}


def grade(*references: str, table: Table, question: str = "what?", prediction: str = "y") -> Any:
    return table.run(Sfve().score(Item("1", question, references, prediction), EncoderParameters("m"), NO_MODEL))


def test_the_closest_reference_behind_the_question() -> None:
    table = Table(VECTORS)
    result = grade("far", "near", "near too", table=table)
    assert result.score == pytest.approx(0.5, abs=1e-6)
    assert result.matched_reference == 1
    assert table.rounds == [(Embed("m", (Y,), Tier.PREDICTION), Embed("m", (FAR, NEAR, NEAR_TOO), Tier.REFERENCE))]


def test_a_blank_question_is_named() -> None:
    result = grade("near", table=Table(VECTORS), question=" \n")
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith("question")
    prepared = Table(VECTORS).run(Sfve().prepare(ReferenceEntry("", ("near",)), EncoderParameters()))
    assert prepared.status is Status.INVALID_INPUT


def test_a_cut_answer_is_a_warning_and_a_cut_question_no_score() -> None:
    assert grade("near", table=Table(VECTORS, truncated=frozenset({Y}))).warnings == (Warning.TRUNCATED,)
    none_read = grade("near", table=Table(VECTORS, truncated=frozenset({Y, NEAR, PROBE})))
    assert none_read.status is Status.INVALID_INPUT
    assert none_read.message.startswith("question")


def test_bad_items_and_failures_have_a_status_and_no_score() -> None:
    assert grade(table=Table()).status is Status.INVALID_INPUT
    assert grade("near", table=Table(), prediction=" ").status is Status.EMPTY_PREDICTION
    failure = Failure(Status.TIMEOUT, "late")
    assert grade("near", table=Table(VECTORS, failure=failure)) == MetricResult.failed(failure)
    assert Table(failure=failure).run(Sfve().prepare(ReferenceEntry("q", ("x",)), EncoderParameters())) == failure


def test_prepare_asks_for_the_references_behind_the_question() -> None:
    table = Table(VECTORS)
    assert table.run(Sfve().prepare(ReferenceEntry("what?", ("near", "far")), EncoderParameters())) is None
    assert table.embedded == [{NEAR, FAR}]
