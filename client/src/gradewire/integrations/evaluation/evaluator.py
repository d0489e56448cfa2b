"""The evaluator over which the scorers of all evaluation frameworks are made, and the evaluation of one answer."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, Unpack

from gradewire.api import EMBEDDED_DEADLINE_S, Client, embedded_transport
from gradewire.errors import DeadlineExceeded, TransportError
from gradewire.items import Item, ItemLike
from gradewire.metrics.choice import MetricDefaults, MetricsLike, choose_metrics
from gradewire.options import CallOptions, ScoreOptions
from gradewire.results import MetricScore, Provenance, ScoreReport, ScoreWarning, Status

ADDRESS_VARIABLE: Final = "GRADEWIRE_SERVER"
TOKEN_VARIABLE: Final = "GRADEWIRE_TOKEN"  # noqa: S105 - the name of a variable
EMBEDDED: Final = "embedded"
"""The address that scores in this process, without a server."""
_USUAL_ADDRESS: Final = "127.0.0.1:50051"

_lock = threading.Lock()

Label: TypeAlias = Literal["right", "wrong", "uncertain", "none"]

# What a sentence shows of a text; the metadata has all of it.
_SHOWN_CHARACTERS = 200

METRIC = "correctness"
"""The probability that an answer is right, with a verdict and a remark where that is uncertain."""


class SharedClient(Client):
    """A client whose calls can be awaited on any event loop of asyncio, and made from any thread."""

    async def score_soon(
        self, items: list[ItemLike], metrics: MetricsLike, **options: Unpack[ScoreOptions]
    ) -> ScoreReport:
        """As `score`, from a coroutine; a cancelled wait cancels the call."""
        call = CallOptions.of("Client.score", metrics, options)
        running = self._background.running()
        return await asyncio.wrap_future(running.loop.start(running.calls.score(items, call, None)))


_clients: dict[tuple[str, str | None], SharedClient] = {}


def shared_client(address: str | None, token: str | None) -> SharedClient:
    """Return the process's client for a server, made at the first call.

    Args:
        address: HOST:PORT of a server; "embedded": in this process; None: what the environment variable
            GRADEWIRE_SERVER says, else 127.0.0.1:50051.
        token: Bearer token; None: what GRADEWIRE_TOKEN says, else none.

    Raises:
        InvalidRequest: The address or token cannot be one.
        MissingExtra: "embedded" was asked for, and the server's part is not installed.
    """
    address = address or os.environ.get(ADDRESS_VARIABLE) or _USUAL_ADDRESS
    where = (address, token or os.environ.get(TOKEN_VARIABLE) or None)
    # Without the lock where it is there: a process that another thread forks meanwhile would keep the lock for good.
    if (client := _clients.get(where)) is not None:
        return client
    with _lock:
        if where not in _clients:
            _clients[where] = _open(*where)
        return _clients[where]


def close_connections() -> None:
    """Close all connections that scorers opened; the end of the program does so too. The next call opens one again."""
    with _lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()


def _open(address: str, token: str | None) -> SharedClient:
    if address == EMBEDDED:
        return SharedClient(deadline_s=EMBEDDED_DEADLINE_S, transport=embedded_transport())
    return SharedClient(address, token=token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One answer's score, or why it has none.

    Attributes:
        metric: The metric as it was asked for.
        value: The score, on the metric's own scale; None unless `status` is OK. Never 0 for a failure.
        label: "right" or "wrong" where the metric's verdict stands, "uncertain" where it is not to be trusted, "none"
            where there is none: of a metric without verdicts, or of an answer that was not scored.
        correct: The verdict itself, also of an uncertain one; None where there is none.
        explanation: A sentence for people.
        status: OK, or why there is no score.
        error_type: Empty for a score; else the status, or the class of the error where the call itself failed.
        metric_line: What reproduces the score, on one line; empty where no server said it.
        digest: Of the model that gave the score, 64 hex digits; empty for metrics without one.
        metadata: What else is known, ready for JSON: model, parts, warnings, the matched reference.
    """

    metric: str
    value: float | None
    label: Label
    correct: bool | None
    explanation: str
    status: Status
    error_type: str = ""
    metric_line: str = ""
    digest: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """True if there is a value."""
        return self.value is not None

    @classmethod
    def of_score(cls, metric: str, score: MetricScore) -> Self:
        """Return the evaluation of what a server answered."""
        provenance = score.provenance
        scored = score.score is not None
        label = _label(score)
        return cls(
            metric=metric,
            value=score.score,
            label=label,
            correct=score.correct if scored else None,
            explanation=_explain(metric, score, label) if scored else _explain_failure(score.status, score.message),
            status=score.status,
            error_type="" if scored else str(score.status),
            metric_line=provenance.line if provenance else "",
            digest=_digest(provenance),
            metadata=_metadata(score),
        )

    @classmethod
    def of_error(cls, metric: str, error: TransportError) -> Self:
        """Return the evaluation of an answer whose call was not answered."""
        status = Status.TIMEOUT if isinstance(error, DeadlineExceeded) else Status.UNAVAILABLE
        return cls(
            metric=metric,
            value=None,
            label="none",
            correct=None,
            explanation=_explain_failure(status, str(error)),
            status=status,
            error_type=type(error).__name__,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but value and explanation, flat and ready for JSON: what frameworks keep beside a score.

        Keys: metric, label, correct, status, error_type, metric_line, digest, then those of `metadata`; what is empty
        is left out.
        """
        names = ("metric", "label", "correct", "status", "error_type", "metric_line", "digest")
        told = {name: getattr(self, name) for name in names} | {"status": str(self.status), **self.metadata}
        return {name: value for name, value in told.items() if value is not None and value != ""}


def _label(score: MetricScore) -> Label:
    if score.score is None or score.correct is None:
        return "none"
    if ScoreWarning.UNCERTAIN in score.warnings:
        return "uncertain"
    return "right" if score.correct else "wrong"


def _explain(metric: str, score: MetricScore, label: Label) -> str:
    verdict = {"right": ", right", "wrong": ", wrong", "uncertain": ", which is uncertain", "none": ""}[label]
    said = [f"{metric} gives {score.score:.4g}{verdict}"]
    if score.matched_reference is not None:
        said.append(f"by reference {score.matched_reference + 1}")
    if window := getattr(score.parts, "best_window", ""):
        said.append(f'closest words "{_short(window)}"')
    if reason := getattr(score.parts, "reason", ""):
        said.append(f"reason: {_short(reason)}")
    return "; ".join(said) + ("" if said[-1].endswith(".") else ".")


def _explain_failure(status: Status, message: str) -> str:
    return f"Not scored ({status}): {message}" if message else f"Not scored ({status})."


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _digest(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    return provenance.model_digest or provenance.judge_digest or provenance.grader_digest


def _metadata(score: MetricScore) -> dict[str, Any]:
    told = score.to_dict()
    for name in ("score", "status", "correct", "line"):
        told.pop(name, None)
    if provenance := score.provenance:
        for name in ("model", "judge_model", "judge_digest", "grader_model", "grader_digest", "prompt", "calibration"):
            if value := getattr(provenance, name):
                told[name] = value
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in told.items()}


@dataclass(frozen=True, slots=True)
class AnswerEvaluator:
    """A grader of answers by one metric: a plain value that can be copied and pickled, without a connection of its own.

    Failures of the moment (no server, no answer in time, too much load) are evaluations without a value. What only the
    caller can mend is raised, for it would be the same for every answer.

    Attributes:
        metric: One metric, as `Client.score` takes it: `"correctness"`, `"smile:fast"`, a metric line.
        address: HOST:PORT of a server; "embedded": in this process; None: what the environment variable
            GRADEWIRE_SERVER says, else 127.0.0.1:50051.
        token: Bearer token; None: what GRADEWIRE_TOKEN says, else none.
        deadline_s: Of a call, seconds; None: the client's own (30 s, an hour where a judge is asked).

    Raises:
        InvalidRequest: The metric cannot be read, or several are named.
    """

    metric: str = METRIC
    address: str | None = None
    token: str | None = field(default=None, repr=False)
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        choose_metrics({self.metric: self.metric}, MetricDefaults())

    def evaluate(self, *, references: str | Sequence[str], answer: str, question: str = "") -> Evaluation:
        """Grade one answer.

        Args:
            references: The right answers, or the only one.
            answer: What is graded; blank is EMPTY_PREDICTION.
            question: What was asked; some metrics need it.

        Raises:
            RequestError: The server knows neither metric nor model, or refuses the token.
            TransportError: The address cannot be right (`may_pass` is False).
            MissingExtra: "embedded" was asked for, and the server's part is not installed.
        """
        return self.evaluate_all([_item(references, answer, question)])[0]

    async def evaluate_async(self, *, references: str | Sequence[str], answer: str, question: str = "") -> Evaluation:
        """As `evaluate`, on any event loop of asyncio."""
        return (await self.evaluate_all_async([_item(references, answer, question)]))[0]

    def evaluate_all(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """Grade many answers in one call, in order; raises as `evaluate`.

        Args:
            items: As `Client.score` takes them. One that cannot be sent is an evaluation without a value.
        """
        try:
            report = self._client.score(list(items), self._named, **self._options)
        except TransportError as error:
            return self._unanswered(items, error)
        return self._read(report)

    async def evaluate_all_async(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """As `evaluate_all`, on any event loop of asyncio."""
        try:
            report = await self._client.score_soon(list(items), self._named, **self._options)
        except TransportError as error:
            return self._unanswered(items, error)
        return self._read(report)

    @property
    def _client(self) -> SharedClient:
        return shared_client(self.address, self.token)

    @property
    def _named(self) -> Mapping[str, str]:
        return {self.metric: self.metric}

    @property
    def _options(self) -> ScoreOptions:
        return {"deadline_s": self.deadline_s}

    def _read(self, report: ScoreReport) -> list[Evaluation]:
        return [Evaluation.of_score(self.metric, item.scores[self.metric]) for item in report]

    def _unanswered(self, items: Sequence[ItemLike], error: TransportError) -> list[Evaluation]:
        if not error.may_pass:
            raise error
        return [Evaluation.of_error(self.metric, error) for _ in items]


def _item(references: str | Sequence[str], answer: str, question: str) -> Item:
    right = [references] if isinstance(references, str) else list(references)
    return Item(question=question, references=right, prediction=answer)
