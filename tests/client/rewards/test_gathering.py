"""The lowest of several metrics' scores."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gradewire.results import MetricScore, Provenance, ScoreWarning, Status
from gradewire.rewards.gathering import lowest_score

SCORED: Final = st.builds(
    lambda score, warnings: MetricScore(score, Status.OK, warnings=warnings),
    st.floats(0, 1),
    st.sampled_from([(), (ScoreWarning.UNCERTAIN,)]),
)
OTHERS: Final = st.lists(st.one_of(SCORED, st.just(MetricScore(None, Status.INVALID_INPUT, "no values"))))


@given(SCORED, OTHERS)
def test_the_lowest_score_counts_and_metrics_that_cannot_compare_do_not(
    first: MetricScore, others: list[MetricScore]
) -> None:
    result = lowest_score([first, *others])
    counted = [first, *(score for score in others if score.status is Status.OK)]
    assert result.score == min(score.score for score in counted if score.score is not None)
    assert result.warnings in [score.warnings for score in counted if score.score == result.score]


@given(SCORED, OTHERS, st.sampled_from([Status.TIMEOUT, Status.UNAVAILABLE, Status.INTERNAL]))
def test_a_failure_of_any_metric_is_a_failure(first: MetricScore, others: list[MetricScore], status: Status) -> None:
    failed = MetricScore(None, status, "why")
    assert lowest_score([first, *others, failed]) == failed
    assert lowest_score([failed, first, *others]) == failed


def test_the_first_metric_has_to_compare_every_sample() -> None:
    invalid = MetricScore(None, Status.INVALID_INPUT, "no reference")
    assert lowest_score([invalid, MetricScore(1.0, Status.OK)]) == invalid


def test_the_identifier_names_all_metrics() -> None:
    first, second = (
        MetricScore(score, Status.OK, provenance=Provenance(name, 1, "", "", f"{name}/1"))
        for name, score in (("correctness", 0.9), ("value_match", 0.0))
    )
    result = lowest_score([first, second])
    assert result.provenance is not None
    assert (result.score, result.provenance.line) == (0.0, "correctness/1,value_match/1")
