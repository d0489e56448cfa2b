"""A scorer that validates a model in the background, so that the training loop never waits."""

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
from typing import Any, Final, NoReturn, Self, Unpack
from urllib.parse import quote

from gradewire._calls.submit import READ_NAMES
from gradewire._common_failures import FailureNotices, common_failure, item_fields, outcomes_of
from gradewire.api import Client
from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.integrations.training.sinks import Sink
from gradewire.integrations.training.spool import Spool, SpoolLimits
from gradewire.integrations.training.steps import (
    StepHeader,
    StepScores,
    StepState,
    WaitingStep,
    encode_results,
    encode_row,
    new_run_name,
    step_metrics,
)
from gradewire.items import ItemsLike
from gradewire.metrics.choice import MetricDefaults, MetricsLike, choose_metrics, format_metric_line
from gradewire.options import CallOptions, ScoreOptions, rows_of
from gradewire.results import ScoreReport

_DELIVERY_JOIN_S = 5.0

_log = logging.getLogger("gradewire.validation")

_MANY: Final = 0.1
"""Share of unscored answers above which means of a step can mislead."""
_MOST_PARTLY: Final = 5
"""Maximum number of repetitions of a step with unanswered items. After the last one, the step counts as scored."""
DEADLINE_S: Final = 600.0
JUDGE_DEADLINE_S: Final = 3600.0
_WORKER_JOIN_S: Final = 5.0

_PROBE_S = 5.0

_open_scorers: "weakref.WeakSet[ValidationScorer]" = weakref.WeakSet()


class Deliveries:
    """A thread that passes scored steps to the sinks and finished steps to the callback, and logs all errors."""

    def __init__(self, sinks: Sequence[Sink], callback: Callable[[StepScores], None] | None) -> None:
        self._sinks = sinks
        self._callback = callback
        self._queue: queue.SimpleQueue[tuple[StepScores, Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gradewire-validation-callbacks", daemon=True)
        self._thread.start()

    def add(self, scores: StepScores, delivered: Callable[[], None] = lambda: None) -> None:
        """Queue scores; `delivered` is called after the sinks and the callback have received them."""
        self._queue.put((scores, delivered))

    def close(self) -> None:
        """Wait a few seconds for queued scores, then close the sinks."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_DELIVERY_JOIN_S)
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:  # noqa: BLE001 - a sink's library may raise anything
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
                _log.exception("cannot write the scores of step %d; trying again later", scores.step)

    @staticmethod
    def _call(function: Callable[[StepScores], None], scores: StepScores, what: str) -> None:
        try:
            function(scores)
        except Exception:  # noqa: BLE001 - the caller's function may raise anything
            _log.exception("%s failed on step %d of %s", what, scores.step, scores.name)


class Worker:
    """A thread that scores a spool's steps until the spool is closed."""

    def __init__(
        self, client: Client, options: ScoreOptions, steps: Spool, deliveries: Deliveries, rows_directory: Path | None
    ) -> None:
        self._client = client
        self._options = options
        self._steps = steps
        self._deliveries = deliveries
        self._rows_directory = rows_directory
        self._partly: Counter[int] = Counter()
        self._notices = FailureNotices(_log)
        self._has_warned_of_gaps = False
        self._thread = threading.Thread(target=self._run, name="gradewire-validation", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end, but only for a few seconds."""
        self._thread.join(_WORKER_JOIN_S)

    def _run(self) -> None:
        while (step := self._steps.take()) is not None:
            try:
                self._score(step)
            except Exception as error:  # noqa: BLE001 - one step must not stop others
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
            self._write_rows(step.header, rows, report)
            outcomes = outcomes_of([item.scores for item in report])
            failures = {label: common_failure(each) for label, each in outcomes.items()}
            common = [f"{label}: {failure[0]}: {failure[1]}" for label, failure in failures.items() if failure]
            problem = "; ".join(common) if len(common) == len(failures) else ""
            scores = replace(step.finished(StepState.SCORED, problem, time.time()), metrics=step_metrics(report))
            self._deliveries.add(scores, lambda: self._steps.delivered(step, scores))
            self._notices.take(f"answers of step {scores.step} ({scores.name})", outcomes, lambda: item_fields(rows))
            self._warn_of_gaps(scores)

    def _warn_of_gaps(self, scores: StepScores) -> None:
        gaps = [
            f"{label}: {metric.not_scored_share:.0%} ({metric.message})"
            for label, metric in scores.metrics.items()
            if _MANY < metric.not_scored_share < 1
        ]
        if gaps and not self._has_warned_of_gaps:
            self._has_warned_of_gaps = True
            _log.warning(
                "step %d of %s has many answers without a score, which means leave out: %s. Watch not_scored, and "
                "compare steps by mean_empty_as_wrong if the answers are empty. Later steps like this are not reported",
                scores.step,
                scores.name,
                "; ".join(gaps),
            )

    def _write_rows(self, header: StepHeader, rows: Sequence[Any], report: ScoreReport) -> None:
        if self._rows_directory is None:
            return
        path = step_path(self._rows_directory, header)
        partial = path.with_suffix(".partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(encode_results(rows, report))
            partial.replace(path)
        except OSError:
            _log.exception("step %d of %s is scored, but %s cannot be written", header.step, header.name, path)

    def _options_of(self, header: StepHeader) -> ScoreOptions:
        options: ScoreOptions = {"priority": "bulk", **self._options}
        asks_judge = False
        if header.metrics is not None:
            # The step's metric identifiers already contain the values that these options had at submission.
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
                "step %d of %s was not scored, trying again in %.1f s: %s",
                step.header.step,
                step.header.name,
                wait_s,
                problem or error,
            )


def step_path(directory: Path, header: StepHeader) -> Path:
    """Return the file of a step's row scores, DIRECTORY/RUN/NAME/step_STEP.jsonl.

    Characters of RUN and NAME that would be more than a folder's name are quoted. A step without a run has no RUN.
    """
    folders = [quote(each, safe=" ") for each in (header.run, header.name) if each]
    plain = [folder.replace(".", "%2E") if set(folder) == {"."} else folder for folder in folders]
    return directory.joinpath(*plain, f"step_{header.step}.jsonl")


def _missing(report: ScoreReport) -> str:
    """Return a message if items without a score may get a score later; otherwise, return ""."""
    missing = [result for item in report for result in item.scores.values() if result.status.may_pass]
    if not missing:
        return ""
    results = sum(len(item.scores) for item in report)
    return f"{len(missing)} of {results} scores are missing ({missing[0].status}: {missing[0].message})"


class ValidationScorer:
    """A scorer for the predictions of training steps. It loses no predictions while the server is down.

    `submit` writes a step to `directory` and returns. A thread scores the steps in the directory, oldest first, and
    tries again until the server answers. If the program is killed, its steps stay in the directory, and the next scorer
    for the directory scores them with their original metrics. Close the scorer, or use `with`; the end of the program
    also closes the scorer.

    Args:
        client: HOST:PORT of a server, or a client (for a token or TLS, or `Scorer.embedded()`). Closing the scorer does
            not close your client.
        metrics: See `Client.score`.
        directory: The spool's directory, which is created if it does not exist. Only one scorer at a time may use it.
        limits: Limits on the steps that wait in the directory; None means `SpoolLimits()`.
        rows_directory: A folder for each step's row scores, as `gradewire compare` reads them:
            ROWS_DIRECTORY/RUN/NAME/step_STEP.jsonl. None means that only means are kept.
        sinks: Receivers of the scores, such as `CsvSink`; see `gradewire.integrations.training.sinks`.
        callback: A function to call with each finished step, on a separate thread; its exceptions are logged.
        run: The name of the training run, which every score carries; None means a new name. Pass the same name to
            continue a run, for example from a checkpoint.
        **options: See `Client.score`. `priority` defaults to "bulk". `deadline_s` limits one attempt at one step; the
            default is ten minutes, or an hour if a metric asks a judge.

    Attributes:
        labels: The labels of the results; without `metrics`, the labels of the default metrics.
        run: The name of the training run.

    Raises:
        InvalidRequest: An argument is wrong, or another scorer uses the directory.
        OSError: The directory cannot be used.
    """

    def __init__(  # noqa: PLR0913 - most are optional and named
        self,
        client: str | Client,
        metrics: MetricsLike | None = None,
        *,
        directory: str | os.PathLike[str],
        limits: SpoolLimits | None = None,
        rows_directory: str | os.PathLike[str] | None = None,
        sinks: Sequence[Sink] = (),
        callback: Callable[[StepScores], None] | None = None,
        run: str | None = None,
        **options: Unpack[ScoreOptions],
    ) -> None:
        if run is not None and not run.strip():
            raise InvalidRequest(f"run={run!r}: give the run's name, or leave it out")
        self.run = new_run_name() if run is None else run
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
        rows = None if rows_directory is None else Path(rows_directory)
        self._worker = Worker(self._client, options, self._steps, self._deliveries, rows)
        _open_scorers.add(self)

    def submit(self, step: int, items: ItemsLike, name: str = "validation") -> StepState:
        """Write a step's predictions to disk. Never raise, and never wait for the server.

        The step survives a crash of this process or of the machine. If you submit a step again, it is scored again;
        `results` returns its latest submission.

        Args:
            step: The training step, a whole number.
            items: See `Client.score`. An item that cannot be sent gets the status INVALID_INPUT; other items are
                scored.
            name: The data set's name; scores are logged under it.

        Returns:
            NOT_SCORED, or DROPPED if the step cannot be kept. The log and `results` contain the reason.
        """
        if os.getpid() != self._pid:
            _log.error("a forked process cannot submit to its parent's ValidationScorer: create one in the child")
            return StepState.DROPPED
        try:
            header = StepHeader(
                operator.index(step), str(name), time.time(), self._lines, self._reference_set, self.run
            )
        except Exception:  # noqa: BLE001 - submit never raises
            _log.exception("a step was dropped: step=%r is not a whole number", step)
            return StepState.DROPPED
        try:
            return self._submit(header, items)
        except GradewireError as error:  # the items are wrong, and the message says how
            _log.error("step %d of %s was dropped: %s", header.step, header.name, error)
            return self._dropped(header, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - as above
            _log.exception("step %d of %s was dropped", header.step, header.name)
            return self._dropped(header, f"{type(error).__name__}: {error}")

    def results(self, run: str | None = None) -> list[StepScores]:
        """Return the result of a run's latest submission for each name and step, sorted by step.

        This includes submissions by earlier processes of the same run. Of the finished steps in the directory, only the
        latest 10 000 are known; `scores.jsonl` in the directory contains all steps.

        Args:
            run: The run's name; None means the run of the latest submission. Until this scorer submits a step, that is
                an earlier run.
        """
        return self._steps.results(run)

    def runs(self) -> list[str]:
        """Return the names of the runs in the directory, in the order of their first submission."""
        return self._steps.runs()

    def counts(self) -> Counter[StepState]:
        """Return the number of submissions by state, counted since the directory was created."""
        return self._steps.counts()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all steps are scored, and the sinks and the callback have received the scores.

        Return False if steps are left after `timeout_s` seconds. The callback must not call this method, which waits
        for the callback.
        """
        return self._steps.wait_empty(timeout_s)

    def wait_for(self, step: int, name: str = "validation", timeout_s: float | None = None) -> StepScores | None:
        """Wait until one step is scored, and return its scores; other steps may still wait.

        Return None if the step has no scores after `timeout_s` seconds, or was dropped. The callback must not call this
        method.
        """
        return self._steps.wait_for(step, name, timeout_s)

    def close(self, timeout_s: float = 60.0) -> bool:
        """Close the scorer. If the server answers, wait up to `timeout_s` for scores; unscored steps stay on disk.

        Steps that the server refused, for example because of the token, are not waited for.

        Returns:
            True if no unscored step is left. Closing twice is fine.
        """
        if os.getpid() != self._pid:
            return False
        with self._closing:
            if self._steps.closed:
                return self._steps.wait_empty(0)
            done = self._steps.wait_empty(0) or (self._answers(timeout_s) and self._steps.wait_unrefused(timeout_s))
            if not done:
                _log.warning("%d steps stay in the directory for the next scorer", self.counts()[StepState.NOT_SCORED])
            self._steps.close()
            self._deliveries.close()
            if self._owns_client:
                # Closing our client ends the worker's call. A call on the caller's client ends at the call's deadline.
                self._client.close()
                self._worker.join()
            _open_scorers.discard(self)
            return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ValidationScorer cannot be pickled: create one in the process that uses it")

    def _submit(self, header: StepHeader, items: ItemsLike) -> StepState:
        if self._steps.closed:
            _log.error("step %d of %s was dropped: the scorer is closed", header.step, header.name)
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
        except Exception:  # noqa: BLE001 - as above; usually the disk is full
            _log.exception("cannot record that step %d of %s was dropped", header.step, header.name)
        return StepState.DROPPED

    def _answers(self, timeout_s: float) -> bool:
        try:
            self._client.models(deadline_s=max(0.1, min(timeout_s, _PROBE_S)))
        except GradewireError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """The settings for a callback's `ValidationScorer`. Only the first process creates the scorer.

    Attributes:
        client, metrics, directory, limits, rows_directory, run, options: See `ValidationScorer`.
        sinks: See `ValidationScorer`; None means the callback's default sinks.
    """

    client: str | Client
    metrics: MetricsLike | None = None
    _: KW_ONLY
    directory: str | os.PathLike[str]
    limits: SpoolLimits | None = None
    rows_directory: str | os.PathLike[str] | None = None
    sinks: Sequence[Sink] | None = None
    run: str | None = None
    options: ScoreOptions = field(default_factory=ScoreOptions)

    def make_scorer(
        self, callback: Callable[[StepScores], None], usual_sinks: Callable[[], Sequence[Sink]] = tuple
    ) -> ValidationScorer:
        """Create the scorer; raise the same errors as `ValidationScorer`."""
        return ValidationScorer(
            self.client,
            self.metrics,
            directory=self.directory,
            limits=self.limits,
            rows_directory=self.rows_directory,
            sinks=usual_sinks() if self.sinks is None else self.sinks,
            callback=callback,
            run=self.run,
            **self.options,
        )


def _close_all() -> None:
    for scorer in list(_open_scorers):
        scorer.close()


# Close scorers before clients. Of two hooks, the later one runs first, and the import of gradewire.api registered the
# clients' hook before.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001 - atexit runs after clients close
