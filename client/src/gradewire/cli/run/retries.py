"""When rows are sent again after results that say UNAVAILABLE; requests that fail are the client's own matter."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import click

from gradewire.errors import TransportError
from gradewire.results import MetricScore, Status

Scores: TypeAlias = "Mapping[str, MetricScore]"

# Whatever the server says: a restarted judge is there sooner, and a queue that takes longer is asked again.
_LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class RowRetries:
    """Sends rows again that came back UNAVAILABLE with a time after which trying again may help, and counts.

    Attributes:
        most: How often a row is sent again.
        rows: Rows that were sent again.
        scored: Those of them that no result says UNAVAILABLE of any more.
    """

    most: int
    rows: int = 0
    scored: int = 0

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
        waiting = _asked_to_wait(answers)
        self.rows += len(waiting)
        first = len(waiting)
        for _ in range(self.most if waiting else 0):
            results = (result for index in waiting for result in answers[index].values() if _may_come(result))
            pause_s = min(max(result.retry_after_s or 0.0 for result in results), _LONGEST_PAUSE_S)
            click.echo(
                f"{_example(answers[waiting[0]])}: {len(waiting)} rows are sent again in {pause_s:g} s", err=True
            )
            await asyncio.sleep(pause_s)
            try:
                again = await score([items[index] for index in waiting])
            except TransportError:
                break  # what is there stands; --resume goes on with the rest
            for index, scores in zip(waiting, again, strict=True):
                answers[index] = {
                    label: scores[label] if _may_come(result) else result for label, result in answers[index].items()
                }
            waiting = _asked_to_wait(answers)
            if not waiting:
                break
        self.scored += first - len(waiting)
        return answers


def _may_come(result: MetricScore) -> bool:
    return result.status is Status.UNAVAILABLE and result.retry_after_s is not None


def _asked_to_wait(answers: Sequence[Scores]) -> list[int]:
    return [index for index, scores in enumerate(answers) if any(map(_may_come, scores.values()))]


def _example(scores: Scores) -> str:
    label, result = next((label, result) for label, result in scores.items() if _may_come(result))
    return f"{label} is {result.status}" + (f" ({result.message})" if result.message else "")
