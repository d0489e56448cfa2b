"""Totals of shards add up to those of all items."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.integrations.training.shard_totals import COLUMNS, counts, means, shard_totals, unanswered_totals
from gradewire.results import ItemScores, MetricScore, ScoreReport, Status
from gradewire_proto.parts import JudgeParts

_SCORED = st.builds(
    MetricScore, score=st.floats(0, 1), status=st.just(Status.OK), correct=st.sampled_from([True, False, None])
)
_FAILED = st.builds(
    MetricScore, score=st.none(), status=st.sampled_from([Status.TIMEOUT, Status.EMPTY_PREDICTION, Status.UNKNOWN])
)
_RESULTS = st.lists(_SCORED | _FAILED, max_size=12)


def report_of(results: list[MetricScore]) -> ScoreReport:
    return ScoreReport(tuple(ItemScores(place, "", {"a": one}) for place, one in enumerate(results)), ("a",), {})


@given(st.lists(_RESULTS, min_size=1, max_size=4))
def test_shards_add_up(shards: list[list[MetricScore]]) -> None:
    rows = [shard_totals(report_of(shard))[0] for shard in shards]
    added = [sum(column) for column in zip(*rows, strict=True)]
    everything = [result for shard in shards for result in shard]
    summary = report_of(everything).summary()["a"]
    found = means("a", added)
    if summary.mean is None:
        assert math.isnan(found["a"])
    else:
        assert found["a"] == pytest.approx(summary.mean)
    assert found.get("a_share_right") == (None if summary.share_right is None else pytest.approx(summary.share_right))
    share = 1 - summary.scored / len(everything) if everything else 0.0
    assert found["a_not_scored"] == pytest.approx(share)
    assert counts(added) == {str(status): count for status, count in summary.counts.items()}


def test_what_had_no_answer_counts_as_unavailable() -> None:
    first, second = unanswered_totals(3, 2)
    assert first == second
    assert len(first) == len(COLUMNS)
    assert counts(first) == {"UNAVAILABLE": 3}
    assert means("a", first)["a_not_scored"] == 1.0


def test_a_shard_whose_judge_was_away_enters_no_mean() -> None:
    ruled = MetricScore(1.0, Status.OK, parts=JudgeParts(decided_by="rule"), correct=True)
    away = shard_totals(report_of([ruled, MetricScore(None, Status.UNAVAILABLE)]))[0]
    assert means("a", away)["a_not_scored"] == 1.0
    judged = shard_totals(report_of([MetricScore(0.5, Status.OK, parts=JudgeParts(decided_by="judge"))]))[0]
    found = means("a", [sum(two) for two in zip(away, judged, strict=True)])
    assert found == {"a": 0.5, "a_mean_empty_as_wrong": 0.5, "a_not_scored": pytest.approx(2 / 3)}


def test_an_empty_answer_counts_as_zero_in_a_mean_of_its_own() -> None:
    half = shard_totals(report_of([MetricScore(0.8, Status.OK), MetricScore(None, Status.EMPTY_PREDICTION)]))[0]
    assert means("a", half) == {"a": 0.8, "a_mean_empty_as_wrong": 0.4, "a_not_scored": 0.5}
    none = shard_totals(report_of([MetricScore(None, Status.EMPTY_PREDICTION)] * 2))[0]
    assert means("a", none)["a_mean_empty_as_wrong"] == 0.0
    failed = shard_totals(report_of([MetricScore(None, Status.INVALID_INPUT)]))[0]
    assert math.isnan(means("a", failed)["a_mean_empty_as_wrong"])
