import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from gradewire_stats.agreement.report import agreement
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.agreement.statistics import ALL_STATISTICS
from gradewire_stats.bootstrap import draws, interval, question_clusters

RANDOM = np.random.default_rng(7)


def judged(rows: int = 240, *, failed: tuple[int, ...] = ()) -> JudgedRows:
    labels = (np.arange(rows) % 3 == 0).astype(float)
    good = labels * 0.5 + RANDOM.normal(size=rows) * 0.2
    bad = labels * 0.1 + RANDOM.normal(size=rows) * 0.2
    good[list(failed)] = np.nan
    return JudgedRows(
        scores={"good": good, "bad": bad},
        verdicts={"good": np.where(np.isnan(good), np.nan, good > 0.25), "bad": np.full(rows, np.nan)},
        labels=labels,
        datasets=["nq" if row % 4 < 2 else "tq" for row in range(rows)],
        models=["a" if row % 2 else "b" for row in range(rows)],
        questions=[f"question {row // 2}" for row in range(rows)],
    )


def test_table_has_every_cell_level_and_the_headline_is_the_mean_of_the_cells() -> None:
    rows = judged()
    report = agreement(rows, resamples=200)
    lines = report.metrics[0].cells
    assert [(line.level, line.dataset, line.model) for line in lines] == [
        ("cell", "nq", "a"),
        ("cell", "nq", "b"),
        ("cell", "tq", "a"),
        ("cell", "tq", "b"),
        ("dataset", "nq", ""),
        ("dataset", "tq", ""),
        ("model", "", "a"),
        ("model", "", "b"),
        ("all", "", ""),
    ]
    expected = []
    for dataset in ("nq", "tq"):
        for model in ("a", "b"):
            mask = (np.array(rows.datasets) == dataset) & (np.array(rows.models) == model)
            expected.append(stats.pearsonr(rows.scores["good"][mask], rows.labels[mask]).statistic)
    assert [line.estimates["pearson"].value for line in lines[:4]] == pytest.approx(expected)
    headline = report.metrics[0].headline["pearson"]
    assert headline.value == pytest.approx(np.mean(expected))
    assert headline.low < headline.value < headline.high


def test_failures_are_counted_and_enter_no_statistic() -> None:
    failed = (0, 5, 9)
    rows = judged(60, failed=failed)
    line = agreement(rows, resamples=50).metrics[0].cells[-1]
    kept = np.setdiff1d(np.arange(60), failed)
    assert (line.rows, line.failed) == (57, 3)
    assert line.estimates["pearson"].value == pytest.approx(
        stats.pearsonr(rows.scores["good"][kept], rows.labels[kept]).statistic
    )


def test_comparison_uses_the_rows_that_both_scored() -> None:
    rows = judged(60, failed=(0, 5, 9))
    comparison = agreement(
        rows, compare=[("good", "bad"), ("good", "good")], compare_statistics=["pearson"], resamples=100
    ).comparisons
    kept = np.setdiff1d(np.arange(60), (0, 5, 9))
    expected = [stats.pearsonr(rows.scores[name][kept], rows.labels[kept]).statistic for name in ("good", "bad")]
    assert comparison[0].rows == 57
    assert comparison[0].all_rows.value == pytest.approx(expected[0] - expected[1])
    assert comparison[0].all_rows.low > 0, "good is far better than bad"
    # Drawn together, a metric never differs from itself; drawn apart it would.
    assert comparison[1].all_rows.low == comparison[1].all_rows.high == 0


def test_metric_without_verdict_has_no_accuracy() -> None:
    bad = agreement(judged(), resamples=50).metrics[1]
    assert math.isnan(bad.headline["accuracy"].value)
    assert bad.headline["accuracy"].resamples == 0


def test_one_data_set_and_one_model_give_one_line() -> None:
    rows = JudgedRows(
        {"m": np.array([0.1, 0.4, 0.9])},
        {"m": np.array([0.0, 0.0, 1.0])},
        np.array([0.0, 0, 1]),
        [""] * 3,
        [""] * 3,
        ["a", "b", ""],
    )
    report = agreement(rows, compare=[("m", "m")], resamples=50)
    assert [line.level for line in report.metrics[0].cells] == ["cell"]
    assert report.comparisons[0].all_rows.value == 0


def test_metric_that_failed_everywhere_is_undefined_not_zero() -> None:
    rows = judged(20)
    rows = JudgedRows(
        {"m": np.full(20, np.nan)}, {"m": np.full(20, np.nan)}, rows.labels, rows.datasets, rows.models, rows.questions
    )
    line = agreement(rows, resamples=20).metrics[0].cells[-1]
    assert (line.rows, line.failed) == (0, 20)
    assert all(math.isnan(estimate.value) for estimate in line.estimates.values())


def test_labels_of_many_levels_fall_back_to_fewer_draws_for_tau() -> None:
    rows = judged(60)
    fine = JudgedRows(
        {"m": rows.scores["bad"]},
        {"m": rows.verdicts["bad"]},
        RANDOM.random(60),
        rows.datasets,
        rows.models,
        rows.questions,
    )
    estimates = agreement(fine, resamples=300).metrics[0].cells[-1].estimates
    assert (estimates["pearson"].resamples, estimates["kendall"].resamples) == (300, 200)
    assert estimates["kendall"].low < estimates["kendall"].value < estimates["kendall"].high


def test_questions_are_drawn_whole_and_data_sets_keep_their_size() -> None:
    clusters = question_clusters(["nq", "nq", "tq", "tq", "tq"], ["q", "q", "q", "", " "])
    assert clusters.tolist() == [0, 0, 1, 2, 3]
    strata = np.array([0, 1, 1, 1])
    together = np.concatenate(list(draws(strata, resamples=450, seed=3)))
    assert together.shape == (450, 4)
    assert (together[:, 0] == 1).all()
    assert (together[:, 1:].sum(axis=1) == 3).all()
    assert together[:, 1].mean() == pytest.approx(1.0, abs=0.15)


def test_interval_needs_half_of_the_draws() -> None:
    assert interval(np.array([np.nan, np.nan, 1.0])) is None
    assert interval(np.array([])) is None
    assert interval(np.arange(101.0)) == pytest.approx((2.5, 97.5))


def test_unknown_metric_in_a_comparison_is_named() -> None:
    with pytest.raises(ValueError, match=r"nothing\. Scored metrics are good, bad"):
        agreement(judged(10), compare=[("good", "nothing")], resamples=5)


def rows_of(count: int = 200) -> tuple[JudgedRows, np.ndarray]:
    random = np.random.default_rng(5)
    graded = random.integers(0, 6, size=count) / 5
    one, other = graded + random.normal(0, 0.3, count), graded + random.normal(0, 0.6, count)
    rows = JudgedRows(
        scores={"one": one, "other": other},
        verdicts={"one": (one > 0.5).astype(np.float64), "other": (other > 0.5).astype(np.float64)},
        labels=graded,
        datasets=[""] * count,
        models=["a", "b"] * (count // 2),
        questions=[str(place // 2) for place in range(count)],
    )
    # Its own verdict: from 0.8, not from one half.
    return rows, (graded >= 0.8).astype(np.float64)


def test_ranks_go_by_scores_and_verdicts_by_verdicts() -> None:
    rows, verdicts = rows_of()
    beside = rows.beside_evaluator(verdicts)
    compared = ("auc", "pearson", "accuracy")
    report = agreement(beside, compare=[("one", "other")], compare_statistics=compared, resamples=100)
    assert [metric.metric for metric in report.metrics] == ["one", "other"]
    for metric in report.metrics:
        every = metric.cells[-1].estimates
        assert tuple(every) == ALL_STATISTICS
        scores, said = rows.scores[metric.metric], rows.verdicts[metric.metric]
        assert every["pearson"].value == pytest.approx(stats.pearsonr(scores, rows.labels).statistic)
        assert every["kendall"].value == pytest.approx(stats.kendalltau(scores, rows.labels).statistic)
        pairs = [(one, one + 1) for one in range(0, len(scores), 2) if rows.labels[one] != rows.labels[one + 1]]
        alike = [(scores[a] > scores[b]) == (rows.labels[a] > rows.labels[b]) for a, b in pairs]
        assert every["pairwise"].value == pytest.approx(np.mean(alike))
        assert every["auc"].value == pytest.approx(sklearn_metrics.roc_auc_score(verdicts, scores))
        assert every["accuracy"].value == pytest.approx(sklearn_metrics.accuracy_score(verdicts, said))
        assert every["deviation"].value == pytest.approx(said.mean() - verdicts.mean())
        assert set(metric.headline) == set(ALL_STATISTICS)
    assert [found.statistic for found in report.comparisons] == ["auc", "pearson", "accuracy"]


def test_an_evaluator_without_verdicts_gives_none_of_their_figures() -> None:
    rows, verdicts = rows_of()
    report = agreement(rows.beside_evaluator(np.full_like(verdicts, np.nan)), resamples=100)
    every = report.metrics[0].cells[-1].estimates
    for statistic in ALL_STATISTICS:
        of_scores = statistic in {"pearson", "spearman", "kendall", "pairwise"}
        assert math.isnan(every[statistic].value) != of_scores, statistic
