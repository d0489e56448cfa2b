"""Totals over one rank's items. The sums of all ranks' totals give the means over all items."""

from collections.abc import Sequence
from typing import Final

from gradewire.results import ScoreReport, Status

_BEFORE_STATUSES: Final = ("sum", "scored", "correct", "judged", "uncertain")
_EMPTY: Final = list(Status).index(Status.EMPTY_PREDICTION)
COLUMNS: Final = (*_BEFORE_STATUSES, *map(str, Status))
"""Columns of a metric's row: the sum of the scores, and the numbers of scores, right answers, verdicts, UNCERTAIN
verdicts, and items by status."""


def shard_totals(report: ScoreReport) -> list[list[float]]:
    """Return a row of `COLUMNS` for each metric, in the order of the report's labels."""
    rows = []
    for label, summary in report.summary().items():
        results = [item.scores[label] for item in report]
        verdicts = [result.correct for result in results if result.status is Status.OK and result.correct is not None]
        # Without its judge, a metric has scores of some items but no mean, so these items count as not scored.
        verdicts = verdicts if summary.mean is not None else []
        rows.append(
            [
                (summary.mean or 0.0) * summary.scored,
                summary.scored if summary.mean is not None else 0,
                sum(verdicts),
                len(verdicts),
                summary.uncertain if verdicts else 0,
                *(summary.counts.get(status, 0) for status in Status),
            ]
        )
    return rows


def unanswered_totals(items: int, labels: int) -> list[list[float]]:
    """Return the rows for items without any result; they count as UNAVAILABLE."""
    row = [0.0] * len(_BEFORE_STATUSES) + [float(items * (status is Status.UNAVAILABLE)) for status in Status]
    return [row] * labels


def means(label: str, totals: Sequence[float]) -> dict[str, float]:
    """Return a metric's means from its totals.

    Returns:
        `LABEL`: the mean over scored items (NaN if no item was scored). `LABEL_mean_empty_as_wrong`: the mean if each
        empty prediction counts as 0. `LABEL_not_scored`: the share of items without a score. If there are verdicts,
        `LABEL_share_right`: the share of right answers, and `LABEL_uncertain`: the number of unreliable verdicts
        (UNCERTAIN).
    """
    total, scored, correct, judged, uncertain, *by_status = totals
    items = sum(by_status)
    with_empty = scored + by_status[_EMPTY]
    found = {
        label: total / scored if scored else float("nan"),
        f"{label}_mean_empty_as_wrong": total / with_empty if scored or with_empty == items > 0 else float("nan"),
        f"{label}_not_scored": 1 - scored / items if items else 0.0,
    }
    if judged:
        found[f"{label}_share_right"] = correct / judged
        found[f"{label}_uncertain"] = uncertain
    return found


def counts(totals: Sequence[float]) -> dict[str, int]:
    """Return the number of items by status, without statuses that do not occur."""
    by_status = zip(Status, totals[-len(Status) :], strict=True)
    return {str(status): int(count) for status, count in by_status if count}
