"""Validation that a training loop hands over and forgets."""

import logging
import operator
import os
import queue
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn, Self, Unpack

from gradewire._calls.submit import READ_NAMES
from gradewire.api import Client
from gradewire.errors import GradewireError, TransportError
from gradewire.integrations.training.sinks import Sink
from gradewire.integrations.training.spool import Spool, SpoolLimits
from gradewire.integrations.training.steps import (
    StepHeader,
    StepScores,
    StepState,
    WaitingStep,
    encode_row,
    step_metrics,
)
from gradewire.items import ItemsLike
from gradewire.metrics.choice import MetricDefaults, MetricsLike, choose_metrics, format_metric_line
from gradewire.options import CallOptions, ScoreOptions, rows_of
from gradewire.results import ScoreReport

_DELIVERY_JOIN_S = 5.0

_log = logging.getLogger("gradewire.validation")

_MOST_PARTLY: Final = 5
"""Times that a step is scored again because some of its items had no answer; then it counts as it is."""
DEADLINE_S: Final = 600.0
JUDGE_DEADLINE_S: Final = 3600.0
_WORKER_JOIN_S: Final = 5.0

_PROBE_S = 5.0

_open_scorers: "weakref.WeakSet[ValidationScorer]" = weakref.WeakSet()


class Deliveries:
    """A thread that hands SCORED steps to the sinks and all that have ended to the callback, and logs their errors."""

    def __init__(self, sinks: Sequence[Sink], callback: Callable[[StepScores], None] | None) -> None:
        self._sinks = sinks
        self._callback = callback
        self._queue: queue.SimpleQueue[tuple[StepScores, Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gradewire-validation-callbacks", daemon=True)
        self._thread.start()

    def add(self, scores: StepScores, delivered: Callable[[], None] = lambda: None) -> None:
        """Queue scores; `delivered` is called after everybody has them."""
        self._queue.put((scores, delivered))

    def close(self) -> None:
        """Wait some seconds for what is queued, then close the sinks."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_DELIVERY_JOIN_S)
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:  # noqa: BLE001 - of a library that we do not know; it is logged
                _log.exception("%s could not be closed", type(sink).__name__)

    def _run(self) -> None:
        while (queued := self._queue.get()) is not None:
            scores, delivered = queued
            for sink in self._sinks if scores.state is StepState.SCORED else ():
                self._call(sink.write, scores, type(sink).__name__)
            if self._callback is not None:
                self._call(self._callback, scores, "the callback")
            try:
                delivered()
            except OSError:
                _log.exception("scores of step %d cannot be written; that is tried again", scores.step)

    @staticmethod
    def _call(function: Callable[[StepScores], None], scores: StepScores, what: str) -> None:
        try:
            function(scores)
        except Exception:  # noqa: BLE001 - whatever the caller's function raises; it is logged
            _log.exception("%s failed over step %d of %s", what, scores.step, scores.name)


class Worker:
    """A thread that scores the steps of a spool until that is closed."""

    def __init__(self, client: Client, options: ScoreOptions, steps: Spool, deliveries: Deliveries) -> None:
        self._client = client
        self._options = options
        self._steps = steps
        self._deliveries = deliveries
        self._partly: Counter[int] = Counter()
        self._thread = threading.Thread(target=self._run, name="gradewire-validation", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait some seconds for its end."""
        self._thread.join(_WORKER_JOIN_S)

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
        report = self._client.score(rows, step.header.metrics, **self._options_of(step.header))
        if (problem := _missing(report)) and self._partly[step.sequence] < _MOST_PARTLY:
            self._partly[step.sequence] += 1
            self._failed(step, TransportError(problem), problem)
            return
        del self._partly[step.sequence]
        if self._steps.scored(step):
            scores = replace(step.finished(StepState.SCORED, "", time.time()), metrics=step_metrics(report))
            self._deliveries.add(scores, lambda: self._steps.delivered(step, scores))

    def _options_of(self, header: StepHeader) -> ScoreOptions:
        """Return the options of a call; those of the step itself go before the scorer's."""
        options: ScoreOptions = {"priority": "bulk", **self._options}
        asks_judge = False
        if header.metrics is not None:
            # The lines say of each metric what the call said of it when it was submitted.
            options |= {"preset": None, "synthetic": None, "model": None, "judge": None}
            options["reference_set"] = header.reference_set or None
            asks_judge = choose_metrics(header.metrics, MetricDefaults()).asks_judge
        if options.get("deadline_s") is None:
            options["deadline_s"] = JUDGE_DEADLINE_S if asks_judge else DEADLINE_S
        return options

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
    """Say so where items had no answer that may have one later."""
    missing = [result for item in report for result in item.scores.values() if result.status.may_pass]
    if not missing:
        return ""
    results = sum(len(item.scores) for item in report)
    return f"{len(missing)} of {results} scores had no answer ({missing[0].status}: {missing[0].message})"


class ValidationScorer:
    """A scorer for the predictions of training steps, which loses none while the server is down.

    `submit` writes the step into `directory` and returns; a thread scores what lies there, oldest first, and tries
    again for as long as the server does not answer. A loop that is killed leaves its steps there, and the next scorer
    over the same directory scores them, by the metrics that they were submitted with. Close it, or use `with`; the end
    of the program closes it too.

    Args:
        client: HOST:PORT of a server, or a client (with a token, TLS; `Scorer.embedded()`), which is left open.
        metrics: As `Client.score`.
        directory: Of the spool; made when missing. One scorer at a time may use it.
        limits: How much may wait there.
        sinks: Where scores are written to besides (`gradewire.integrations.training.sinks`), each under its own step.
        callback: Called with each step that has ended, on a thread for callbacks; its exceptions are logged.
        **options: As `Client.score`; `priority` is "bulk" unless said, `deadline_s` is for one try of one step, else
            ten minutes, an hour where a metric asks a judge.

    Attributes:
        labels: What the metrics' results are called; without `metrics`, of the usual ones.

    Raises:
        InvalidRequest: An argument is wrong, or another scorer uses the directory.
        OSError: The directory cannot be used.
    """

    def __init__(  # noqa: PLR0913 - named, and mostly optional
        self,
        client: str | Client,
        metrics: MetricsLike | None = None,
        *,
        directory: str | os.PathLike[str],
        limits: SpoolLimits | None = None,
        sinks: Sequence[Sink] = (),
        callback: Callable[[StepScores], None] | None = None,
        **options: Unpack[ScoreOptions],
    ) -> None:
        self._owns_client = isinstance(client, str)
        self._client = Client(client) if isinstance(client, str) else client
        call = CallOptions.of("ValidationScorer", metrics, options)
        choice = call.choose()
        self.labels = choice.labels
        self._reference_set = choice.reference_set
        self._lines = (
            None if metrics is None else {label: format_metric_line(metric) for label, metric in choice.named.items()}
        )
        self._read = READ_NAMES | {"images"} if choice.shows_images else READ_NAMES
        self._pid = os.getpid()
        self._closing = threading.Lock()
        self._steps = Spool(Path(directory), limits or SpoolLimits())
        self._deliveries = Deliveries(sinks, callback)
        for scores in self._steps.damaged:
            _log.warning("step %d: %s", scores.step, scores.problem)
            self._deliveries.add(scores)
        self._worker = Worker(self._client, options, self._steps, self._deliveries)
        _open_scorers.add(self)

    def submit(self, step: int, items: ItemsLike, name: str = "validation") -> StepState:
        """Write the predictions of a step to disk; it never raises and never waits for a server.

        The step outlives this process and a failing machine, however they end. A step that is submitted again is
        scored again; `results` has the latest.

        Args:
            step: Of the training, a whole number.
            items: As `Client.score`; an item that cannot be sent has the status INVALID_INPUT, its neighbours scores.
            name: Of the data set; scores are logged under it.

        Returns:
            NOT_SCORED, which it is for now; or DROPPED, when it cannot be kept: the log says why, and `results`.
        """
        if os.getpid() != self._pid:
            _log.error("a forked process cannot submit to its parent's ValidationScorer: make one there")
            return StepState.DROPPED
        try:
            header = StepHeader(operator.index(step), str(name), time.time(), self._lines, self._reference_set)
        except Exception:  # noqa: BLE001 - the promise of submit: nothing is raised into a training loop
            _log.exception("a step was dropped: step=%r is no whole number", step)
            return StepState.DROPPED
        try:
            return self._submit(header, items)
        except Exception as error:  # noqa: BLE001 - as above
            _log.exception("step %d of %s was dropped", header.step, header.name)
            return self._dropped(header, f"{type(error).__name__}: {error}")

    def results(self) -> list[StepScores]:
        """Return the latest submission of each name and step, by step: of this process, and of those before it.

        At most the 10 000 that ended last, and all that wait; `scores.jsonl` in the directory has the others.
        """
        return self._steps.results()

    def counts(self) -> Counter[StepState]:
        """Return the number of submissions by state, since the directory was new."""
        return self._steps.counts()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to score and all sinks and callbacks are done; False when time ran out before.

        Must not be called from a callback, which it would wait for.
        """
        return self._steps.wait_empty(timeout_s)

    def close(self, timeout_s: float = 60.0) -> bool:
        """Score what waits, for at most `timeout_s` and only if the server answers; what is left stays on disk.

        Returns:
            Whether nothing is left. Closing twice is fine.
        """
        if os.getpid() != self._pid:
            return False
        with self._closing:
            if self._steps.closed:
                return self._steps.wait_empty(0)
            done = self._steps.wait_empty(0) or (self._answers(timeout_s) and self._steps.wait_empty(timeout_s))
            if not done:
                _log.warning(
                    "%d steps wait for the next scorer over the directory", self.counts()[StepState.NOT_SCORED]
                )
            self._steps.close()
            self._deliveries.close()
            if self._owns_client:
                # Closing ends the worker's current call; a call of the caller's own client ends by its deadline.
                self._client.close()
                self._worker.join()
            _open_scorers.discard(self)
            return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ValidationScorer belongs to its process and its directory: make one where it is used")

    def _submit(self, header: StepHeader, items: ItemsLike) -> StepState:
        if self._steps.closed:
            _log.error("step %d of %s was dropped: this scorer was closed", header.step, header.name)
            return StepState.DROPPED
        rows = (encode_row(item, self._read) for item in rows_of("items", items))
        state, given_up = self._steps.add(header, rows)
        for scores in given_up:
            _log.warning("step %d of %s was dropped: %s", scores.step, scores.name, scores.problem)
            self._deliveries.add(scores)
        return state

    def _dropped(self, header: StepHeader, problem: str) -> StepState:
        try:
            self._deliveries.add(self._steps.refuse(header, problem))
        except Exception:  # noqa: BLE001 - as above; the disk is full, mostly
            _log.exception("that step %d of %s was dropped cannot be written down", header.step, header.name)
        return StepState.DROPPED

    def _answers(self, timeout_s: float) -> bool:
        try:
            self._client.models(deadline_s=max(0.1, min(timeout_s, _PROBE_S)))
        except GradewireError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """The settings of a callback's scorer, which is made on the first process alone, once the training begins.

    Attributes:
        client: HOST:PORT of a server, or a client.
        metrics: As `Client.score`.
        directory: As `ValidationScorer`.
        limits: As `ValidationScorer`.
        sinks: As `ValidationScorer`; None: the callback's usual ones.
        options: As `Client.score`; see `ValidationScorer`.
    """

    client: str | Client
    metrics: MetricsLike | None = None
    _: KW_ONLY
    directory: str | os.PathLike[str]
    limits: SpoolLimits | None = None
    sinks: Sequence[Sink] | None = None
    options: ScoreOptions = field(default_factory=ScoreOptions)

    def make_scorer(
        self, callback: Callable[[StepScores], None], usual_sinks: Callable[[], Sequence[Sink]] = tuple
    ) -> ValidationScorer:
        """Return the scorer; arguments and errors as `ValidationScorer`."""
        return ValidationScorer(
            self.client,
            self.metrics,
            directory=self.directory,
            limits=self.limits,
            sinks=usual_sinks() if self.sinks is None else self.sinks,
            callback=callback,
            **self.options,
        )


def _close_all() -> None:
    for scorer in list(_open_scorers):
        scorer.close()


# Register like clients, and run before them: hooks run last in, first out, and the import above registers theirs.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001 - atexit comes after the clients' end
