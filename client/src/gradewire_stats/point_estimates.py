"""Agreement of one set of scores with labels, computed by scipy."""

import math
import warnings
from collections.abc import Collection
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray


class MissingScipyError(ImportError):
    """scipy or threadpoolctl is not installed; the message says how to get it."""


def scipy_stats() -> ModuleType:
    """`scipy.stats`, imported when first needed because it takes a second.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    try:
        from scipy import stats  # noqa: PLC0415 - an optional, slow import
    except ImportError as error:
        raise MissingScipyError("agreement needs scipy: pip install 'gradewire[agree]'") from error
    return stats


def one_blas_thread() -> AbstractContextManager[object]:
    """Keeps matrix products on one thread inside, and the trees of scikit-learn where that is imported already.

    Small ones lose more by waiting for busy cores than they gain: beside other programs trees of 500 rows took fifty
    times as long on two threads, nearly all of it waiting.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingScipyError("agreement needs threadpoolctl: pip install 'gradewire[agree]'") from error
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits


VerdictStatistic = Literal["accuracy", "f1", "macro_f1", "precision", "recall", "positive_rate", "deviation"]
Statistic = Literal["pearson", "spearman", "kendall", "auc", "pairwise", "human_rate"] | VerdictStatistic
VERDICT_STATISTICS: tuple[Statistic, ...] = get_args(VerdictStatistic)
ALL_STATISTICS: tuple[Statistic, ...] = ("pearson", "spearman", "kendall", "auc", "pairwise", *VERDICT_STATISTICS)
RIGHT_FROM = 0.5


def right(labels: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Labels as right or wrong.

    Args:
        labels: float64[rows], human labels without NaN.

    Returns:
        True from 0.5 upward; None where a label lies outside [0, 1], because then nobody said what counts as right.
    """
    if labels.size and (labels.min() < 0.0 or labels.max() > 1.0):
        return None
    return labels >= RIGHT_FROM


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Area under the ROC curve: the share of (right, wrong) pairs that the scores order rightly, ties counted half.

    Args:
        scores: float64[rows] without NaN.
        positive: bool[rows].

    Returns:
        0 to 1; NaN where one of the two classes is missing.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return math.nan
    rank_sum = float(scipy_stats().rankdata(scores)[positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def correlations(
    scores: NDArray[np.float64], labels: NDArray[np.float64], statistics: Collection[Statistic]
) -> dict[Statistic, float]:
    """Pearson, Spearman and Kendall's tau-b, those of them that `statistics` names.

    Args:
        scores: float64[rows] without NaN.
        labels: float64[rows] without NaN.
        statistics: Which are wanted; others are passed over.

    Returns:
        NaN where a side is constant or there are fewer than two rows.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    stats = scipy_stats()
    functions: dict[Statistic, Any] = {
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
    }
    varied = len(scores) > 1 and scores.min() < scores.max() and labels.min() < labels.max()
    values: dict[Statistic, float] = {}
    with warnings.catch_warnings():
        # Nearly constant input only warns; the value is then as good as float64 allows.
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            if name in statistics:
                values[name] = float(function(scores, labels).statistic) if varied else math.nan
    return values
