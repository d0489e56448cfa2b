"""Means from a random judged share: equal to an independent computation, without bias, with intervals that cover."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gradewire_stats.estimated_mean import EstimatedMean, _quantile, estimated_mean


def population(rows: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cheap scores and what a judge says, which follows them and is higher."""
    random = np.random.default_rng(seed)
    cheap = random.beta(2, 1, rows)
    return cheap, np.clip(0.3 + 0.6 * cheap + random.normal(0, 0.1, rows), 0, 1)


def test_it_is_ppi_with_weights_tuned_on_other_rows() -> None:
    """By the formulas of PPI++ in each tenth of the sample, beside what the other tenths say of themselves."""
    cheap, judge = population()
    sampled = np.random.default_rng(1).random(400) < 0.2
    found = estimated_mean(cheap, judge, sampled)
    drawn = np.flatnonzero(sampled)
    means, residuals, weights = [], [], []
    for part in np.array_split(np.random.default_rng(0).permutation(len(drawn)), 10):
        own, others = drawn[part], np.setdiff1d(drawn, drawn[part])
        ratio = 1 + len(drawn) / (400 - len(drawn))
        weight = np.cov(judge[others], cheap[others], bias=True)[0, 1] / (ratio * cheap.var())
        slope = weight * ratio
        unseen = np.setdiff1d(np.arange(400), others)
        of_unseen = slope * cheap[unseen].mean() + (judge[own] - slope * cheap[own]).mean()
        means += [(judge[others].sum() + len(unseen) * of_unseen) / 400] * len(own)
        residuals += list(judge[own] - slope * cheap[own])
        weights += [weight] * len(own)
    assert found.value == pytest.approx(np.mean(means))
    assert found.weight == pytest.approx(np.mean(weights))
    variance = (1 - len(drawn) / 400) * np.var(residuals, ddof=1) / len(drawn)
    half = stats.t.ppf(0.975, len(drawn) - 1) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=1e-5)
    assert (found.rows, found.sampled, found.known) == (400, len(drawn), 0)
    # Tuned on the very sample, the classical estimate lies close by.
    slope = np.cov(judge[drawn], cheap[drawn], bias=True)[0, 1] / cheap.var()
    classical = judge[drawn].mean() + slope * (cheap.mean() - cheap[drawn].mean())
    assert found.value == pytest.approx(classical, abs=0.01)


def test_a_fixed_list_by_hand() -> None:
    cheap = [0.0, 0.0, 1.0, 1.0] * 6
    judge = [0.0, 0.0, 1.0, 1.0] * 6
    sampled = [True, False, True, False] * 6
    found = estimated_mean(cheap, judge, sampled)
    # Where both say the same, covariance is about the variance, and the weight about 1 / (1 + 12 / 12).
    assert found.weight == pytest.approx(0.5, abs=0.02)
    assert found.value == pytest.approx(0.5, abs=1e-3)
    # None of 12 sampled rows says anything else than the cheap scores: half of the width of 12 + z² rows is left.
    z = stats.norm.ppf(0.975)
    half = stats.t.ppf(0.975, 11) * math.sqrt((1 - 12 / 24) * (z**2 / 4) / 11 / 12)
    assert found.high - found.value == pytest.approx(half, abs=0.003)
    assert found.population_high - found.value > found.high - found.value


@pytest.mark.parametrize(("share", "right"), [(0.03, 0.95), (0.05, 0.95), (0.1, 0.98), (0.2, 0.9)])
def test_intervals_of_verdicts_cover_where_the_rare_kind_may_be_missing(share: float, right: float) -> None:
    """18 rows of which none is wrong do not say that nothing is."""
    random = np.random.default_rng(11)
    judge = (random.random(600) < right).astype(np.float64)
    cheap = np.where(random.random(600) < 0.9, judge, 1 - judge)
    covered, draws = 0, 0
    for _ in range(400):
        sampled = random.random(600) < share
        if sampled.sum() < 10:
            continue
        found = estimated_mean(cheap, judge, sampled)
        draws += 1
        covered += found.low <= judge.mean() <= found.high
        assert found.population_high - found.population_low >= found.high - found.low > 0
    assert covered / draws >= 0.93, covered / draws


@pytest.mark.parametrize("known_share", [0.0, 0.3])
def test_it_has_no_bias_and_its_interval_covers(known_share: float) -> None:
    cheap, judge = population(seed=3)
    known = cheap < np.quantile(cheap, known_share) if known_share else None
    random = np.random.default_rng(4)
    values, covered = [], 0
    for _ in range(600):
        found = estimated_mean(cheap, judge, random.random(400) < 0.15, known=known)
        values.append(found.value)
        covered += found.low <= judge.mean() <= found.high
    error = np.mean(values) - judge.mean()
    assert abs(error) < 4 * np.std(values) / math.sqrt(600) + 1e-4
    assert 0.925 <= covered / 600 <= 0.975


def test_the_interval_of_the_population_covers_its_mean_with_dependent_rows() -> None:
    """Four rows of a question are alike; the interval by rows alone would be half as wide."""
    random = np.random.default_rng(7)
    covered, alone = 0, 0
    for _ in range(400):
        question = np.repeat(random.random(80), 4)
        judge = np.clip(question + random.normal(0, 0.05, 320), -1, 2)
        cheap = judge + random.normal(0, 0.2, 320)
        groups = [str(row // 4) for row in range(320)]
        sampled = random.random(320) < 0.3
        found = estimated_mean(cheap, judge, sampled, groups=groups)
        covered += found.population_low <= 0.5 <= found.population_high
        single = estimated_mean(cheap, judge, sampled)
        alone += single.population_low <= 0.5 <= single.population_high
    assert 0.91 <= covered / 400 <= 0.98
    assert alone / 400 < 0.8


@pytest.mark.parametrize("copies", [3, 6])
def test_rows_of_one_content_are_one_draw(copies: int) -> None:
    """`auto` samples by content: copies come together, and by rows alone the interval would be far too narrow."""
    random = np.random.default_rng(13)
    judge = np.repeat(random.beta(2, 1, 600 // copies), copies)
    cheap = judge + np.repeat(random.normal(0, 0.2, 600 // copies), copies)
    contents = [str(row // copies) for row in range(600)]
    covered, alone, values = 0, 0, []
    for _ in range(400):
        sampled = np.repeat(random.random(600 // copies) < 0.25, copies)
        found = estimated_mean(cheap, judge, sampled, contents=contents)
        values.append(found.value)
        covered += found.low <= judge.mean() <= found.high
        single = estimated_mean(cheap, judge, sampled)
        alone += single.low <= judge.mean() <= single.high
        assert found.population_high - found.population_low > single.population_high - single.population_low
    assert abs(np.mean(values) - judge.mean()) < 4 * np.std(values) / 20 + 1e-4
    assert covered / 400 >= 0.92, covered
    assert alone / 400 < 0.8


def test_contents_that_differ_change_nothing() -> None:
    cheap, judge = population()
    sampled = np.random.default_rng(1).random(400) < 0.2
    named = estimated_mean(cheap, judge, sampled, contents=[f"row {row}" for row in range(400)])
    assert named == estimated_mean(cheap, judge, sampled)
    with pytest.raises(ValueError, match="2 rows are sampled, but at least 10 are needed"):
        estimated_mean(cheap, judge, np.arange(400) < 100, contents=[str(row // 50) for row in range(400)])


def test_good_cheap_scores_narrow_the_interval_and_useless_ones_cost_nothing() -> None:
    cheap, judge = population(2000, seed=2)
    sampled = np.random.default_rng(1).random(2000) < 0.1
    width = {
        name: (found.high - found.low)
        for name, found in {
            "good": estimated_mean(cheap, judge, sampled),
            "none": estimated_mean(np.zeros(2000), judge, sampled),
            "useless": estimated_mean(np.random.default_rng(5).random(2000), judge, sampled),
        }.items()
    }
    assert width["good"] < 0.7 * width["none"]
    assert width["useless"] < 1.02 * width["none"]


def test_where_all_is_judged_there_is_nothing_to_estimate() -> None:
    cheap, judge = population(50)
    every = np.ones(50, np.bool_)
    for found in (estimated_mean(cheap, judge, every), estimated_mean(cheap, judge, ~every, known=every)):
        assert found.value == pytest.approx(judge.mean())
        assert found.low == found.high == found.value


def test_known_rows_count_as_they_are() -> None:
    cheap, judge = population(100)
    known = np.arange(100) < 40
    sampled = np.arange(100) % 3 == 0
    found = estimated_mean(cheap, judge, sampled, known=known)
    rest = estimated_mean(cheap[40:], judge[40:], sampled[40:])
    assert found.value == pytest.approx(0.4 * judge[:40].mean() + 0.6 * rest.value)
    assert found.high - found.low == pytest.approx(0.6 * (rest.high - rest.low))
    assert (found.known, found.sampled) == (40, rest.sampled)


@given(st.integers(0, 1000), st.floats(0.2, 1.0))
def test_values_lie_in_their_intervals(seed: int, share: float) -> None:
    cheap, judge = population(120, seed)
    sampled = np.random.default_rng(seed).random(120) < share
    sampled[:10] = True
    found = estimated_mean(cheap, judge, sampled)
    assert isinstance(found, EstimatedMean)
    assert found.population_low <= found.low <= found.value <= found.high <= found.population_high or share == 1
    assert 0 <= found.weight <= 1


@pytest.mark.parametrize("degrees", [8, 20, 100])
def test_the_quantile_is_students(degrees: int) -> None:
    assert _quantile(0.95, degrees + 1) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sampled": [True] * 5 + [False] * 15}, "5 rows are sampled, but at least 10 are needed"),
        ({"sampled": [True] * 19}, "the same rows"),
        ({"judged": [math.nan] * 20}, "not a finite number"),
        ({"scores": [math.inf] * 20}, "not a finite number"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"scores": [], "judged": [], "sampled": []}, "no row"),
    ],
)
def test_what_cannot_be_estimated_is_told(change: dict[str, object], told: str) -> None:
    given_: dict[str, object] = {"scores": [0.5] * 20, "judged": [0.5] * 20, "sampled": [True] * 12 + [False] * 8}
    with pytest.raises(ValueError, match=told):
        estimated_mean(**(given_ | change))  # type: ignore[arg-type] # on purpose
