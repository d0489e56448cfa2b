import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire.load_testing.latencies import Latencies


def latencies(values_s: list[float]) -> Latencies:
    found = Latencies()
    for value in values_s:
        found.record(value)
    return found


@given(st.lists(st.floats(1e-6, 3000), min_size=1, max_size=200), st.sampled_from([0.0, 50, 90, 95, 99, 99.9, 100]))
@settings(max_examples=example_count(30))
def test_percentiles_are_those_of_the_sorted_values_within_a_thousandth(
    values_s: list[float], percentile: float
) -> None:
    found = latencies(values_s).percentile_s(percentile)
    # So many lie at or below it, not about so many.
    rank = max(1, math.ceil(percentile / 100 * len(values_s) - 1e-9))
    wanted = sorted(round(value * 1e6) for value in values_s)[rank - 1] / 1e6
    assert found == pytest.approx(wanted, rel=1e-3, abs=1e-6)


@given(st.lists(st.lists(st.floats(0, 100), max_size=30), min_size=1, max_size=4))
@settings(max_examples=example_count(10))
def test_those_of_several_processes_are_those_of_one(parts: list[list[float]]) -> None:
    merged = Latencies()
    for part in parts:
        merged.add(pickle.loads(pickle.dumps(latencies(part))))  # noqa: S301 - our own
    whole = latencies([value for part in parts for value in part])
    assert len(merged) == len(whole)
    assert merged.curve() == whole.curve()


def test_percentiles_of_a_large_sample_are_those_of_the_sorted_values() -> None:
    values = np.sort(np.random.default_rng(7).lognormal(-4, 1, 20_000))
    found = latencies(values.tolist())
    for percentile in (50, 90, 95, 99, 99.9):
        wanted = float(values[round(percentile / 100 * len(values)) - 1])
        assert found.percentile_s(percentile) == pytest.approx(wanted, rel=1.5e-3)
    assert found.max_s == pytest.approx(values.max(), rel=1e-3)
    places, curve = zip(*found.curve(), strict=True)
    assert places[:3] == (0.0, 50.0, 75.0)
    assert places[-1] == 100.0
    assert list(curve) == sorted(curve)


def test_an_empty_one_has_no_percentiles_and_a_pickled_one_counts_on() -> None:
    empty = Latencies()
    assert np.isnan(empty.percentile_s(99))
    assert empty.curve() == []
    again = pickle.loads(pickle.dumps(latencies([0.001])))  # noqa: S301 - our own
    again.record(5000.0)  # more than an hour counts as an hour
    assert len(again) == 2
    assert again.max_s == pytest.approx(3600, rel=1e-3)
