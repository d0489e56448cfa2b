"""Watch a run's judges: stop a run that only a judge can score, and report a judge's failure once in other runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from gradewire.results import Status
from gradewire_cli.problems import UnreachableError
from gradewire_cli.rows.formats import printable
from gradewire_proto.parts import AutoParts, JudgeParts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gradewire.metrics.choice import MetricChoice
    from gradewire.results import MetricScore

_DOWN = frozenset({Status.MODEL_UNAVAILABLE, Status.UNAVAILABLE})
# Statuses of items that no judge was asked about, or whose judge had too little time to show anything.
_NOT_ASKED = frozenset({Status.EMPTY_PREDICTION, Status.INVALID_INPUT, Status.TIMEOUT})


def judge_status(score: MetricScore) -> Status | None:
    """Return the status of a judge's answer about one item, or None if no judge was asked."""
    if isinstance(score.parts, AutoParts):
        return Status(score.parts.judge_status) if score.parts.judge_status else None
    if isinstance(score.parts, JudgeParts) and score.parts.decided_by == "rule":
        return None
    return None if score.status in _NOT_ASKED else score.status


def _asked(label: str, rows: Iterable[Mapping[str, MetricScore]]) -> Iterator[tuple[Status, MetricScore]]:
    """Yield the judge's status and the result of each row that a judge was asked about."""
    for row in rows:
        # Rows of an earlier run have no results here.
        if label in row and (status := judge_status(row[label])) is not None:
            yield status, row[label]


@dataclass(slots=True)
class JudgeWatch:
    """The state of each metric's judge, from the results so far.

    A judge is down after MODEL_UNAVAILABLE, which only an operator can change. UNAVAILABLE usually passes, so it counts
    only before the judge's first answer.

    Attributes:
        judged: Labels of the metrics that ask a judge.
        needs_judge: True if every metric of the run asks a judge.
        answered: Labels whose judge has answered.
        down: Failures of judges that are down, by label.
        reported: Failures that were printed.
    """

    judged: frozenset[str]
    needs_judge: bool
    answered: set[str] = field(default_factory=set)
    down: dict[str, str] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, chosen: MetricChoice) -> JudgeWatch:
        """Return a watch over the judges of these metrics."""
        judged = frozenset(label for label, metric in chosen.named.items() if metric.asks_judge())
        return cls(judged, needs_judge=len(judged) == len(chosen.named))

    @property
    def holds_rows(self) -> bool:
        """True while rows that no judge graded must wait, because the run may stop before its first row."""
        return self.needs_judge and not (self.answered or self.down)

    @property
    def is_hopeless(self) -> bool:
        """True if a judge is down that has never answered, so that retries are a waste of time."""
        return bool(self.down.keys() - self.answered)

    def has_answered(self, label: str, rows: Iterable[Mapping[str, MetricScore]]) -> bool:
        """Return True if a metric's judge has answered, before or in these results."""
        return label in self.answered or any(status not in _DOWN for status, _ in _asked(label, rows))

    def is_judged(self, row: Mapping[str, MetricScore]) -> bool:
        """Return True if no judge that is down was asked about a row."""
        return not any(status in _DOWN for label in self.down for status, _ in _asked(label, [row]))

    def check(self, rows: Iterable[Mapping[str, MetricScore]]) -> None:
        """Take the results of a batch, by label.

        Raises:
            UnreachableError: All judges are down, and no other metric is left to score.
        """
        rows = list(rows)
        for label in self.judged:
            asked = list(_asked(label, rows))
            downs = {status: score.message for status, score in reversed(asked) if status in _DOWN}
            if any(status not in _DOWN for status, _ in asked):
                self.answered.add(label)
                self.down.pop(label, None)
            if Status.MODEL_UNAVAILABLE in downs or (downs and label not in self.answered):
                status = Status.MODEL_UNAVAILABLE if Status.MODEL_UNAVAILABLE in downs else Status.UNAVAILABLE
                self.down[label] = downs[status] or f"the judge is {status}"
        if self.needs_judge and self.down.keys() == self.judged:
            failures = self._by_message(self.down)
            raise UnreachableError(". ".join(f"{labels}: {message}" for message, labels in failures.items()))
        new = {label: message for label, message in self.down.items() if message not in self.reported}
        for message, labels in self._by_message(new).items():
            self.reported.add(message)
            click.echo(
                f"{labels}: {message}. Rows that need this judge get no score; other metrics are scored", err=True
            )

    @staticmethod
    def _by_message(failures: Mapping[str, str]) -> dict[str, str]:
        labels: dict[str, list[str]] = {}
        for label, message in sorted(failures.items()):
            labels.setdefault(message, []).append(label)
        return {message: printable(", ".join(named)) for message, named in labels.items()}
