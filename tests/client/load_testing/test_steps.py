import math

import pytest
from tests.client.load_testing.samples import OBJECTIVE, counts_of, step_of, usage

from gradewire.load_testing.counts import HANGING, StepCounts
from gradewire.load_testing.steps import Outcome, overload_checks


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        (counts_of(0.2), Outcome.HOLDS),
        (counts_of(0.2, refused=1), Outcome.HOLDS),
        (counts_of(0.2, refused=2), Outcome.MISSES),
        (counts_of(0.2, failed=2), Outcome.MISSES),
        (counts_of(0.26), Outcome.MISSES),
        (counts_of(11.0), Outcome.MISSES),
        (counts_of(0.2, scored=1, failed=999), Outcome.MISSES),
        (counts_of(0.2, scored=0, failed=999), Outcome.LOST),
        (StepCounts(), Outcome.MISSES),
    ],
)
def test_a_rate_is_kept_up_with_where_every_condition_holds(counts: StepCounts, outcome: Outcome) -> None:
    assert step_of(counts).outcome is outcome


def test_a_late_client_makes_a_step_void_and_an_interrupted_one_is_none() -> None:
    counts = counts_of(0.2)
    for _ in range(20):
        counts.lag_s.append(2 * OBJECTIVE.max_lag_s)
    assert step_of(counts).outcome is Outcome.VOID
    assert step_of(counts, stopped=True).outcome is Outcome.STOPPED


def test_what_the_server_spent_is_divided_by_what_it_scored() -> None:
    step = step_of(counts_of(0.1), before=usage(), after=usage(cpu_s=12.5))
    assert step.server_cpu_s_per_item == pytest.approx(2.5 / 1000)
    assert math.isnan(step_of(counts_of(0.1)).server_cpu_s_per_item)
    assert step.document()["latency_s"]["p99"] == pytest.approx(0.1, rel=1e-3)


def test_a_server_that_keeps_its_promises_passes_every_check() -> None:
    knee = step_of(counts_of(0.2))
    over = step_of(counts_of(0.39, refused=900, hinted=900), before=usage(), after=usage())
    checks = list(overload_checks(knee, over))
    assert [check.holds for check in checks] == [True] * 5
    assert str(checks[0]).startswith("pass: p99 of admitted calls: 390 ms, 1.95 x that of the knee")


def test_each_broken_promise_fails_its_own_check() -> None:
    knee = step_of(counts_of(0.1))
    counts = counts_of(0.21, refused=10, hinted=9, failed=1)
    counts.codes[HANGING] += 1
    counts.due += 1
    grown = usage(resident_bytes=430 * 2**20)
    over = step_of(counts, before=usage(), after=grown)
    checks = list(overload_checks(knee, over))
    assert [check.holds for check in checks] == [False] * 5
    assert "UNAVAILABLE" in checks[1].measured
    assert "+7.5%" in checks[4].measured


def test_what_could_not_be_measured_is_neither_kept_nor_broken() -> None:
    assert list(overload_checks(step_of(counts_of(0.1)), step_of(counts_of(0.1))))[-1].holds is None
    silent = usage(resident_bytes=0)
    *_, memory = overload_checks(step_of(counts_of(0.1)), step_of(counts_of(0.1), before=silent, after=silent))
    assert memory.holds is None
    late = counts_of(0.1)
    late.lag_s.append(1.0)
    for _ in range(50):
        late.lag_s.append(1.0)
    (only,) = overload_checks(step_of(counts_of(0.1)), step_of(late))
    assert only.holds is None
