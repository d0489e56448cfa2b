"""AVE's three properties against their formulas, written out with numpy and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from gradewire_stats.ave import AveOptions, AveRows, ave_differences, ave_properties, merged_descriptions

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


def test_the_same_scores_merge_to_the_same_in_any_order() -> None:
    # .1 + .2 + .3 is not .3 + .2 + .1 in binary: a tie of Spearman would be none.
    scores = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.3, 0.1]])
    assert len(set(merged_descriptions(scores).tolist())) == 1


def test_relative_consistency_is_that_of_scores_divided_by_their_spread() -> None:
    table = rows(failed=0.1)
    found = ave_properties(table, resamples=10)
    complete = table.scores[~np.isnan(table.scores).any(axis=1)]
    standard = (complete - complete.mean()) / complete.std()
    assert found.relative_consistency.value == pytest.approx(math.log2(1 / np.mean(standard.var(axis=1))))
    # Another scale of the scores moves the paper's figure alone, and far from 0 no digits are lost.
    for scale, shift in ((0.01, 0.98), (100.0, 0.0), (1.0, 1e4)):
        other = AveRows(scale * table.scores + shift, table.labels, table.datasets)
        moved = ave_properties(other, resamples=10)
        assert moved.relative_consistency.value == pytest.approx(found.relative_consistency.value, abs=1e-4)
        assert moved.consistency.value == pytest.approx(found.consistency.value - 2 * math.log2(scale), abs=1e-4)
    constant = AveRows(np.full((12, 3), 0.5), np.arange(12.0), ["one"] * 12)
    assert math.isnan(ave_properties(constant, resamples=10).relative_consistency.value)


def test_the_bootstrap_draws_whole_questions() -> None:
    single = rows(60)
    copies = AveRows(
        np.repeat(single.scores, 5, axis=0),
        np.repeat(single.labels, 5),
        list(np.repeat(np.array(single.datasets), 5)),
        [f"question {row // 5}" for row in range(300)],
    )
    one, five = (ave_properties(table, resamples=300, seed=1) for table in (single, copies))
    blind = ave_properties(AveRows(copies.scores, copies.labels, copies.datasets), resamples=300, seed=1)
    assert five.alignment.questions == one.alignment.questions == 57
    # Five answers to a question that are one answer say no more than it does.
    widths = [found.alignment.high - found.alignment.low for found in (one, five, blind)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[2] < 0.7 * widths[0]


def test_differences_are_those_of_the_properties_and_paired() -> None:
    base = rows()
    random = np.random.default_rng(4)
    closer = AveRows(
        (base.scores + base.labels[:, None] / 10) / 2 + random.normal(size=(240, 3)) * 0.01, base.labels, base.datasets
    )
    gain = ave_differences(closer, base, resamples=200)
    found, before = (ave_properties(table, resamples=200) for table in (closer, base))
    assert gain.alignment.value == pytest.approx(found.alignment.value - before.alignment.value)
    assert gain.consistency.value == pytest.approx(found.consistency.value - before.consistency.value)
    assert [each.value for each in gain.parts] == pytest.approx(
        [after.value - earlier.value for after, earlier in zip(found.parts, before.parts, strict=True)]
    )
    assert gain.alignment.low > 0
    assert gain.alignment.at_floor
    # Scores that go along with each other differ by less than either moves.
    assert gain.alignment.high - gain.alignment.low < before.alignment.high - before.alignment.low
    same = ave_differences(base, base, resamples=50)
    assert (same.alignment.value, same.alignment.low, same.alignment.high) == (0, 0, 0)


def test_differences_are_on_what_both_scored() -> None:
    base, other = rows(failed=0.2), rows()
    gain = ave_differences(other, base, resamples=10)
    kept = ~np.isnan(base.scores[:, 0])
    expected = [stats.spearmanr(table.scores[kept, 0], table.labels[kept]).statistic for table in (other, base)]
    assert gain.parts[0].value == pytest.approx(expected[0] - expected[1])
    with pytest.raises(ValueError, match="Use the same samples"):
        ave_differences(other, rows(8))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="2 samples, 1 labels"):
        ave_properties(AveRows(np.zeros((2, 3)), np.zeros(1), ["a", "b"]))
    with pytest.raises(ValueError, match="not a finite number"):
        ave_properties(AveRows(np.zeros((1, 3)), np.array([np.nan]), ["a"]))
    with pytest.raises(ValueError, match="2 labels and 1 questions"):
        ave_properties(AveRows(np.zeros((2, 3)), np.zeros(2), ["a", "b"], ["q"]))
    with pytest.raises(ValueError, match="Use a base above 1"):
        ave_properties(rows(8), AveOptions(log_base=1.0))
