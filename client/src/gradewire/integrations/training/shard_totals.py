"""Sums over a shard of the items, which add up to those over all of them: one reduction gives the means."""

from collections.abc import Sequence
from typing import Final

from gradewire.results import ScoreReport, Status

COLUMNS: Final = ("sum", "scored", "correct", "judged", *map(str, Status))
"""Columns of one metric: the sum of its scores, their number, right answers, verdicts, and items by status."""


def shard_totals(report: ScoreReport) -> list[list[float]]:
    """Return a row of `COLUMNS` for each metric, in the order of the report's labels."""
    rows = []
    for label, summary in report.summary().items():
        results = [item.scores[label] for item in report]
        verdicts = [result.correct for result in results if result.status is Status.OK and result.correct is not None]
        rows.append(
            [
                (summary.mean or 0.0) * summary.scored,
                summary.scored,
                sum(verdicts),
                len(verdicts),
                *(summary.counts.get(status, 0) for status in Status),
            ]
        )
    return rows


def unanswered_totals(items: int, labels: int) -> list[list[float]]:
    """Return the rows of items that had no answer at all."""
    row = [0.0] * 4 + [float(items * (status is Status.UNAVAILABLE)) for status in Status]
    return [row] * labels


def means(label: str, totals: Sequence[float]) -> dict[str, float]:
    """Return what the totals of one metric say.

    Returns:
        `LABEL`, the mean over scored items (NaN without any), `LABEL_not_scored`, the share of items without a score,
        and `LABEL_share_right` where the metric gives verdicts.
    """
    total, scored, correct, judged, *by_status = totals
    items = sum(by_status)
    found = {
        label: total / scored if scored else float("nan"),
        f"{label}_not_scored": 1 - scored / items if items else 0.0,
    }
    if judged:
        found[f"{label}_share_right"] = correct / judged
    return found


def counts(totals: Sequence[float]) -> dict[str, int]:
    """Return the number of items by status, of those that occur."""
    by_status = zip(Status, totals[-len(Status) :], strict=True)
    return {str(status): int(count) for status, count in by_status if count}
