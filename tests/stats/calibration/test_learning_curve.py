"""Learning curves: what a fit may see, how many labels it gets, and what comes of a fit that needs more."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradewire_stats.calibration.learning_curve import CurveRows, learning_curve

Mask = NDArray[np.bool_]


def rows(right: list[bool], keys: list[str], added: list[bool] | None = None) -> CurveRows:
    given = [True] * len(keys) if added is None else added
    return CurveRows(right=np.array(right), keys=keys, added=np.array(given))


def accuracy(values: NDArray[np.float64], right: Mask) -> float:
    return float(np.mean((values >= 0.5) == right))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.booleans()), min_size=2, max_size=80),
    st.integers(0, 5),
)
def test_a_fit_sees_no_question_that_it_reads_and_every_added_row_is_read_once(
    given: list[tuple[bool, int, bool]], seed: int
) -> None:
    found = rows([each[0] for each in given], [f"q{each[1]}" for each in given], [each[2] for each in given])
    keys = np.array(found.keys)
    seen: list[tuple[Mask, Mask]] = []

    def predict(fitted_on: Mask, read: Mask) -> NDArray[np.float64]:
        seen.append((fitted_on.copy(), read.copy()))
        return np.full(int(read.sum()), 0.5)

    if len(set(keys[found.added])) < 2:
        with pytest.raises(ValueError, match="two questions"):
            learning_curve(predict, found, {"accuracy": accuracy}, seed=seed)
        return
    curve = learning_curve(predict, found, {"accuracy": accuracy}, draws=2, seed=seed)
    count = int(found.added.sum())
    assert [point.labels for point in curve] == [
        *([0] if not found.added.all() else []),
        *([50] if count > 50 else []),
        count,
    ]
    for fitted_on, read in seen:
        assert not set(keys[fitted_on]) & set(keys[read])
        assert not (read & ~found.added).any()
        others = ~found.added & ~np.isin(keys, keys[read])
        assert (fitted_on & ~found.added).tolist() == others.tolist()
    assert sum(int(read.sum()) for _, read in seen) == count * sum(point.draws for point in curve)


def test_more_labels_bring_a_better_mean_and_the_same_seed_the_same_curve() -> None:
    generator = np.random.default_rng(0)
    scores = generator.random(300)
    found = rows((scores >= 0.4).tolist(), [f"q{place}" for place in range(300)])

    def predict(fitted_on: Mask, read: Mask) -> NDArray[np.float64]:
        cut = scores[fitted_on & found.right].min()
        return (scores[read] >= cut).astype(np.float64)

    curve = learning_curve(predict, found, {"accuracy": accuracy}, seed=3)
    means = [point.values["accuracy"].mean for point in curve]
    assert [point.labels for point in curve] == [50, 100, 200, 300]
    assert means == sorted(means)
    assert means[-1] > means[0]
    assert all(point.values["accuracy"].low <= point.values["accuracy"].mean for point in curve)
    assert curve == learning_curve(predict, found, {"accuracy": accuracy}, seed=3)
    assert curve != learning_curve(predict, found, {"accuracy": accuracy}, seed=4)


def test_draws_that_allow_no_fit_do_not_count() -> None:
    found = rows([place % 2 == 0 for place in range(120)], [f"q{place}" for place in range(120)])

    def predict(fitted_on: Mask, read: Mask) -> NDArray[np.float64]:
        if fitted_on.sum() < 80:
            raise ValueError("too few")
        return np.full(int(read.sum()), 1.0)

    curve = learning_curve(predict, found, {"accuracy": accuracy}, draws=4)
    assert [(point.labels, point.draws) for point in curve] == [(50, 0), (100, 4), (120, 4)]
    values: Any = curve[0].values["accuracy"]
    assert np.isnan([values.mean, values.low, values.high]).all()
    assert curve[1].values["accuracy"].mean == 0.5
