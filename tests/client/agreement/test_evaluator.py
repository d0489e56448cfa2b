"""Agreement with an evaluator: scores with its scores, verdicts with its verdicts."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from gradewire.agreement import JudgedRows
from gradewire.agreement.evaluator import OF_SCORES, agreement_with_evaluator
from gradewire.agreement.point_estimates import ALL_STATISTICS


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
    report = agreement_with_evaluator(
        rows, verdicts, compare=[("one", "other")], compare_statistics=("auc", "pearson", "accuracy"), resamples=100
    )
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
    report = agreement_with_evaluator(rows, np.full_like(verdicts, np.nan), resamples=100)
    every = report.metrics[0].cells[-1].estimates
    for statistic in ALL_STATISTICS:
        assert math.isnan(every[statistic].value) == (statistic not in OF_SCORES), statistic
