"""When rows are sent again after results that say UNAVAILABLE; requests that fail are the client's own matter."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import click

from gradewire.errors import TransportError
from gradewire.results import MetricScore, Status

Scores: TypeAlias = "Mapping[str, MetricScore]"


@dataclass(slots=True)
class RowRetries:
    """Sends rows again that came back UNAVAILABLE with a time after which trying again may help, and counts.

    Attributes:
        most: How often a row is sent again.
        longest_pause_s: Longest wait before that; what asks for more is not waited for.
        rows: Rows that were sent again.
        scored: Those of them that no result says UNAVAILABLE of any more.
    """

    most: int
    longest_pause_s: float
    rows: int = 0
    scored: int = 0
    _told: bool = field(default=False, init=False)

    async def finish(
        self,
        items: Sequence[Mapping[str, Any]],
        answers: list[Scores],
        score: Callable[[list[Mapping[str, Any]]], Awaitable[list[Scores]]],
    ) -> list[Scores]:
        """The answers, with results that were UNAVAILABLE replaced by those of a later try; other results are kept.

        Args:
            items: What was sent.
            answers: What came back, one per item; changed in place.
            score: Sends some items once more.
        """
        if not self.most:
            return answers
        waiting = self._waiting(answers)
        self.rows += len(waiting)
        first = len(waiting)
        for _ in range(self.most if waiting else 0):
            results = [
                (label, result)
                for index in waiting
                for label, result in answers[index].items()
                if self._may_come(result)
            ]
            pause_s = max(result.retry_after_s or 0.0 for _, result in results)
            click.echo(f"{_example(*results[0])}: {len(waiting)} rows are sent again in {pause_s:g} s", err=True)
            await asyncio.sleep(pause_s)
            try:
                again = await score([items[index] for index in waiting])
            except TransportError:
                break  # what is there stands; --resume goes on with the rest
            for index, scores in zip(waiting, again, strict=True):
                answers[index] = {
                    label: scores[label] if self._may_come(result) else result
                    for label, result in answers[index].items()
                }
            waiting = self._waiting(answers)
            if not waiting:
                break
        self.scored += first - len(waiting)
        return answers

    def _waiting(self, answers: Sequence[Scores]) -> list[int]:
        """Rows that are to be sent again; tells of those that would have to wait too long."""
        far = [item for scores in answers for item in scores.items() if self._is_far(item[1])]
        if far and not self._told:
            self._told = True
            label, result = far[0]
            click.echo(
                f"{_example(label, result)}: such rows are not asked for once more, for the wait that is asked for, "
                f"{result.retry_after_s:g} s, is longer than --deadline-s {self.longest_pause_s:g}; --resume goes on "
                "with them later",
                err=True,
            )
        return [index for index, scores in enumerate(answers) if any(map(self._may_come, scores.values()))]

    def _may_come(self, result: MetricScore) -> bool:
        return _asks_to_wait(result) and not self._is_far(result)

    def _is_far(self, result: MetricScore) -> bool:
        return _asks_to_wait(result) and (result.retry_after_s or 0.0) > self.longest_pause_s


def _asks_to_wait(result: MetricScore) -> bool:
    return result.status is Status.UNAVAILABLE and result.retry_after_s is not None


def _example(label: str, result: MetricScore) -> str:
    return f"{label} is {result.status}" + (f" ({result.message})" if result.message else "")
