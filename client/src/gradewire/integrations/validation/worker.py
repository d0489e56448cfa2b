"""Scores one waiting step after the other, and comes back to those that were not scored."""

import logging
import threading
from collections import Counter
from dataclasses import dataclass, replace
from time import time
from typing import Any, Final

from gradewire.call_options import ScoreOptions
from gradewire.client import Client
from gradewire.errors import TransportError
from gradewire.integrations.validation.delivery import Deliveries
from gradewire.integrations.validation.spool import WaitingStep
from gradewire.integrations.validation.step_file import StepHeader
from gradewire.integrations.validation.step_queue import StepQueue
from gradewire.integrations.validation.step_scores import StepScores, StepState, step_metrics
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire.score_report import ScoreReport

_MOST_PARTLY: Final = 5
"""How often a step is scored again because some of its items had no answer; then it counts as it is."""
DEADLINE_S: Final = 600.0
JUDGE_DEADLINE_S: Final = 3600.0
_JOIN_S: Final = 5.0

_log = logging.getLogger("gradewire.validation")


@dataclass(frozen=True, slots=True)
class StepCall:
    """How a step is scored.

    Attributes:
        client: Scores it.
        options: Of the scorer; what a step says itself in its header goes first.
    """

    client: Client
    options: ScoreOptions

    def score(self, header: StepHeader, rows: list[Any]) -> ScoreReport:
        """The report, or whatever `Client.score` raises."""
        options: ScoreOptions = {"priority": "bulk", **self.options}
        asks_judge = False
        if header.metrics is not None:
            # The lines say of each metric what the call said of it when it was submitted.
            options |= {"preset": None, "synthetic": None, "model": None, "judge": None}
            options["reference_set"] = header.reference_set or None
            asks_judge = choose_metrics(header.metrics, MetricDefaults()).asks_judge
        if options.get("deadline_s") is None:
            options["deadline_s"] = JUDGE_DEADLINE_S if asks_judge else DEADLINE_S
        return self.client.score(rows, header.metrics, **options)


class Worker:
    """A thread that ends when the queue is closed."""

    def __init__(self, call: StepCall, steps: StepQueue, deliveries: Deliveries) -> None:
        self._call = call
        self._steps = steps
        self._deliveries = deliveries
        self._partly: Counter[int] = Counter()
        self._thread = threading.Thread(target=self._run, name="gradewire-validation", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits some seconds for its end."""
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (step := self._steps.take()) is not None:
            try:
                self._score(step)
            except Exception as error:  # noqa: BLE001 - of the disk, of a client of the caller's: the next is scored
                self._failed(step, error)

    def _score(self, step: WaitingStep) -> None:
        rows = self._steps.read(step)
        if rows is None:
            return
        if isinstance(rows, StepScores):
            _log.warning("step %d of %s: %s", rows.step, rows.name, rows.problem)
            self._deliveries.add(rows)
            return
        report = self._call.score(step.header, rows)
        if (problem := _missing(report)) and self._partly[step.sequence] < _MOST_PARTLY:
            self._partly[step.sequence] += 1
            self._failed(step, TransportError(problem), problem)
            return
        del self._partly[step.sequence]
        if self._steps.scored(step):
            scores = replace(step.ended(StepState.SCORED, "", time()), metrics=step_metrics(report))
            self._deliveries.add(scores, lambda: self._steps.delivered(step, scores))

    def _failed(self, step: WaitingStep, error: Exception, problem: str = "") -> None:
        wait_s = self._steps.failed(step, error, problem)
        if wait_s:
            _log.warning(
                "step %d of %s is not scored, tried again in %.1f s: %s",
                step.header.step,
                step.header.name,
                wait_s,
                problem or error,
            )


def _missing(report: ScoreReport) -> str:
    """Says so where items had no answer that may have one later."""
    missing = [result for item in report for result in item.scores.values() if result.status.may_pass]
    if not missing:
        return ""
    results = sum(len(item.scores) for item in report)
    return f"{len(missing)} of {results} scores had no answer ({missing[0].status}: {missing[0].message})"
