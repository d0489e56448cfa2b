"""AVE's three properties against their formulas, written out with numpy and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from gradewire.agreement.ave import AveOptions, AveRows, ave_properties, merged_descriptions

NAMES = ("okvqa", "a-okvqa", "vqa v2", "gqa")


def rows(samples: int = 240, *, failed: float = 0.0) -> AveRows:
    random = np.random.default_rng(8)
    labels = random.integers(0, 11, size=samples).astype(float)
    scores = labels[:, None] / 10 + random.normal(size=(samples, 3)) * 0.3
    scores[random.random((samples, 3)) < failed] = np.nan
    return AveRows(scores, labels, [NAMES[row % 4] for row in range(samples)])


def aligned(table: AveRows, part: int, dataset: str | None = None) -> float:
    kept = ~np.isnan(table.scores[:, part])
    if dataset is not None:
        kept &= np.array(table.datasets) == dataset
    return float(stats.spearmanr(table.scores[kept, part], table.labels[kept]).statistic)


@pytest.mark.parametrize("failed", [0.0, 0.3])
def test_default_properties_are_the_papers_formulas_on_what_was_scored(failed: float) -> None:
    table = rows(failed=failed)
    found = ave_properties(table, resamples=100)
    parts = [aligned(table, part) for part in range(3)]
    assert [part.value for part in found.parts] == pytest.approx(parts)
    assert found.alignment.value == pytest.approx(np.mean(parts))
    complete = table.scores[~np.isnan(table.scores).any(axis=1)]
    assert found.consistency.value == pytest.approx(math.log2(1 / np.mean([np.var(each) for each in complete])))
    by_dataset = {name: np.mean([aligned(table, part, name) for part in range(3)]) for name in NAMES}
    assert found.datasets == pytest.approx(by_dataset)
    assert found.generalization.value == pytest.approx(math.log2(1 / np.var(list(by_dataset.values()))))
    assert found.samples == len(complete)
    assert found.failed == np.isnan(table.scores).sum(axis=0).tolist()
    assert (found.samples < 240) == (failed > 0)
    for each in (*found.parts, found.alignment, found.consistency):
        assert each.low < each.value < each.high
        assert each.resamples == 100


def test_options_change_base_variance_and_pooling() -> None:
    table = rows()
    found = ave_properties(
        table, AveOptions(log_base=math.e, variance="sample", dataset_alignment="pooled"), resamples=10
    )
    variances = np.var(table.scores, axis=1, ddof=1)
    assert found.consistency.value == pytest.approx(math.log(1 / variances.mean()))
    pooled = {}
    for name in NAMES:
        kept = np.array(table.datasets) == name
        pooled[name] = stats.spearmanr(table.scores[kept].T.ravel(), np.tile(table.labels[kept], 3)).statistic
    assert found.datasets == pytest.approx(pooled)
    assert found.generalization.value == pytest.approx(math.log(1 / np.var(list(pooled.values()), ddof=1)))


def test_undefined_is_not_a_number_and_no_variance_is_infinite_consistency() -> None:
    labels = np.arange(12.0)
    same = AveRows(np.tile(labels[:, None], 3), labels, ["one"] * 12)
    found = ave_properties(same, resamples=10)
    assert found.alignment.value == pytest.approx(1.0)
    assert found.consistency.value == math.inf
    assert math.isnan(found.generalization.value), "one data set has no variance"
    gone = ave_properties(AveRows(np.full((12, 3), np.nan), labels, ["one", "two"] * 6), resamples=10)
    assert all(math.isnan(each.value) for each in (gone.alignment, gone.consistency, gone.generalization))
    assert (gone.samples, list(gone.failed)) == (0, [12, 12, 12])
    nothing = ave_properties(AveRows(np.empty((0, 3)), np.empty(0), []), resamples=10)
    assert math.isnan(nothing.alignment.value)


def test_descriptions_merge_without_those_that_failed() -> None:
    scores = np.array([[0.2, 0.4, 0.9], [0.2, np.nan, 0.6], [np.nan] * 3])
    np.testing.assert_allclose(merged_descriptions(scores), [0.5, 0.4, np.nan])
    np.testing.assert_allclose(merged_descriptions(scores, how="median"), [0.4, 0.4, np.nan])
    np.testing.assert_allclose(merged_descriptions(scores, how="max"), [0.9, 0.6, np.nan])


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="there are 2 samples, 1 labels"):
        ave_properties(AveRows(np.zeros((2, 3)), np.zeros(1), ["a", "b"]))
    with pytest.raises(ValueError, match="not a number"):
        ave_properties(AveRows(np.zeros((1, 3)), np.array([np.nan]), ["a"]))
    with pytest.raises(ValueError, match="must be above 1"):
        ave_properties(rows(8), AveOptions(log_base=1.0))
