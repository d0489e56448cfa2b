"""The evaluator behind the scorers of all evaluation frameworks, and its result."""

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
"""Address of an engine in this process, without a server."""
_USUAL_ADDRESS: Final = "127.0.0.1:50051"

_lock = threading.Lock()

Label: TypeAlias = Literal["right", "wrong", "uncertain", "none"]

# Characters of a text in an explanation; the metadata has all of it.
_SHOWN_CHARACTERS = 200

METRIC = "correctness"
"""Default metric: the probability that an answer is right, with a verdict and a warning if that is uncertain."""


class SharedClient(Client):
    """A client with calls that any asyncio event loop can await, and any thread can make."""

    async def score_soon(
        self, items: list[ItemLike], metrics: MetricsLike, **options: Unpack[ScoreOptions]
    ) -> ScoreReport:
        """Score items from a coroutine; a cancelled wait cancels the call."""
        call = CallOptions.of("Client.score", metrics, options)
        running = self._background.running()
        return await asyncio.wrap_future(running.loop.start(running.calls.score(items, call, None)))


_clients: dict[tuple[str, str | None], SharedClient] = {}


def shared_client(address: str | None, token: str | None) -> SharedClient:
    """Return this process's client for a server, made at the first call.

    Args:
        address: HOST:PORT of a server; "embedded": an engine in this process; None: the environment variable
            GRADEWIRE_SERVER, else 127.0.0.1:50051.
        token: Bearer token; None: GRADEWIRE_TOKEN, if set.

    Raises:
        InvalidRequest: The address or token is malformed.
        MissingExtra: The address is "embedded", and the server's part is not installed.
    """
    address = address or os.environ.get(ADDRESS_VARIABLE) or _USUAL_ADDRESS
    where = (address, token or os.environ.get(TOKEN_VARIABLE) or None)
    # Avoid the lock for an existing client: if another thread forks meanwhile, the child would hold it forever.
    if (client := _clients.get(where)) is not None:
        return client
    with _lock:
        if where not in _clients:
            _clients[where] = _open(*where)
        return _clients[where]


def close_connections() -> None:
    """Close all connections of scorers, as the end of the program does. The next call opens a new one."""
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
    """The score of one answer, or the reason for a missing one.

    Attributes:
        metric: The metric, as requested.
        value: The score, on the metric's own scale; None unless `status` is OK. Never 0 for a failure.
        label: "right" or "wrong" for a reliable verdict, "uncertain" for an unreliable one, "none" without a verdict or
            a score.
        correct: The verdict, even if uncertain; None without one.
        explanation: A sentence for users.
        status: OK, or the reason for a missing score.
        error_type: Empty for a score; else the status, or the class of the error if the call itself failed.
        metric_line: The metric identifier that reproduces the score; empty if no server returned it.
        digest: 64 hex digits of the model behind the score; empty for metrics without one.
        metadata: Other details, ready for JSON: model, parts, warnings, the matched reference.
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
        """Make an evaluation from a server's score."""
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
        """Make an evaluation for a call without an answer."""
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
        """Return everything except value and explanation as a flat dict for JSON, to store with a score.

        Keys: metric, label, correct, status, error_type, metric_line, digest, then those of `metadata`, without empty
        ones.
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
    """A grader of answers by one metric. It is a plain value to copy and pickle, without its own connection.

    Temporary failures (no server, no answer in time, too much load) become evaluations without a value. Errors that
    only the caller can fix are raised, because they would be the same for every answer.

    Attributes:
        metric: One metric, as in `Client.score`: `"correctness"`, `"smile:fast"`, a metric identifier.
        address: HOST:PORT of a server; "embedded": an engine in this process; None: the environment variable
            GRADEWIRE_SERVER, else 127.0.0.1:50051.
        token: Bearer token; None: GRADEWIRE_TOKEN, if set.
        deadline_s: Deadline of a call, in seconds; None: the client's (30 s, or an hour with a judge).

    Raises:
        InvalidRequest: The metric is malformed, or there are several.
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
            answer: The answer to grade; blank is EMPTY_PREDICTION.
            question: The question; some metrics need it.

        Raises:
            RequestError: The server does not know the metric or model, or refuses the token.
            TransportError: The address must be wrong (`may_pass` is False).
            MissingExtra: The address is "embedded", and the server's part is not installed.
        """
        return self.evaluate_all([_item(references, answer, question)])[0]

    async def evaluate_async(self, *, references: str | Sequence[str], answer: str, question: str = "") -> Evaluation:
        """Grade one answer, as `evaluate`, on any asyncio event loop."""
        return (await self.evaluate_all_async([_item(references, answer, question)]))[0]

    def evaluate_all(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """Grade many answers in one call, in order; raises as `evaluate`.

        Args:
            items: As in `Client.score`. An item that cannot be sent becomes an evaluation without a value.
        """
        try:
            report = self._client.score(list(items), self._named, **self._options)
        except TransportError as error:
            return self._unanswered(items, error)
        return self._read(report)

    async def evaluate_all_async(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """Grade many answers, as `evaluate_all`, on any asyncio event loop."""
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
