"""Largest cosine of prediction and references."""

from typing import Any

import pytest
from tests.support.engines.programs import Table, at

from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, Tier
from gradewire_server.metrics.common import EncoderParameters
from gradewire_server.metrics.encoder.sbert import Sbert

VECTORS = {"y": at(0), "near": at(60), "far": at(180), "near too": at(-60)}


def grade(*references: str, table: Table, prediction: str = "y") -> Any:
    return table.run(Sbert().score(Item("1", "", references, prediction), EncoderParameters(model="m"), NO_MODEL))


def test_the_best_reference_counts_and_the_first_of_equals_is_named() -> None:
    table = Table(VECTORS)
    result = grade("far", "near", "near too", table=table)
    assert result.score == pytest.approx(0.5, abs=1e-6)
    assert result.matched_reference == 1
    assert result.warnings == ()
    (needs,) = table.rounds
    assert needs == (Embed("m", ("y",), Tier.PREDICTION), Embed("m", ("far", "near", "near too"), Tier.REFERENCE))


def test_raw_cosine_down_to_minus_one() -> None:
    assert grade("far", table=Table(VECTORS)).score == pytest.approx(-1, abs=1e-6)


def test_a_cut_text_is_a_warning() -> None:
    assert grade("near", table=Table(VECTORS, truncated=frozenset({"near"}))).warnings == (ResultWarning.TRUNCATED,)
    assert grade("near", table=Table(VECTORS, truncated=frozenset({"y"}))).warnings == (ResultWarning.TRUNCATED,)


def test_a_failure_of_the_engine_is_the_result() -> None:
    failure = Failure(Status.TIMEOUT, "late")
    assert grade("near", table=Table(VECTORS, failure=failure)) == MetricResult.failed(failure)
    assert Table(failure=failure).run(Sbert().prepare(ReferenceEntry("", ("x",)), EncoderParameters())) == failure


def test_bad_items_have_a_status_and_no_score() -> None:
    assert grade(table=Table()).status is Status.INVALID_INPUT
    assert grade("near", table=Table(), prediction=" ").status is Status.EMPTY_PREDICTION


def test_prepare_asks_for_the_references() -> None:
    table = Table(VECTORS)
    assert table.run(Sbert().prepare(ReferenceEntry("", ("near", "far")), EncoderParameters())) is None
    assert table.embedded == [{"near", "far"}]
    assert table.run(Sbert().prepare(ReferenceEntry("", ("",)), EncoderParameters())).status is Status.INVALID_INPUT
