"""The evaluator that all framework scorers use, and its result."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, TypeAlias, Unpack

from gradewire.api import EMBEDDED_DEADLINE_S, Client, embedded_transport
from gradewire.errors import DeadlineExceeded, TransportError
from gradewire.items import Item, ItemLike
from gradewire.metrics.choice import MetricDefaults, MetricsLike, choose_metrics
from gradewire.options import CallOptions, ScoreOptions
from gradewire.results import MetricScore, Provenance, ScoreReport, ScoreWarning, Status
from gradewire.rewards.answer import Extraction, check_extraction, extract_answer

ADDRESS_VARIABLE: Final = "GRADEWIRE_SERVER"
TOKEN_VARIABLE: Final = "GRADEWIRE_TOKEN"  # noqa: S105 - a variable's name, not a token
EMBEDDED: Final = "embedded"
"""The address that selects an engine in this process instead of a server."""
_USUAL_ADDRESS: Final = "127.0.0.1:50051"

_lock = threading.Lock()

Label: TypeAlias = Literal["right", "wrong", "uncertain", "none"]

# Maximum length of a quotation in an explanation, in characters; the metadata contains the full text.
_SHOWN_CHARACTERS = 200

METRIC = "correctness"
"""The default metric. It returns the probability that an answer is right, and a verdict that may be uncertain."""


class SharedClient(Client):
    """A client whose calls can be awaited on any asyncio event loop, and made from any thread."""

    async def score_soon(
        self, items: list[ItemLike], metrics: MetricsLike, **options: Unpack[ScoreOptions]
    ) -> ScoreReport:
        """Score items from a coroutine; cancelling the coroutine cancels the call."""
        call = CallOptions.of("Client.score", metrics, options)
        running = self._background.running()
        return await asyncio.wrap_future(running.loop.start(running.calls.score(items, call, None)))


_clients: dict[tuple[str, str | None], SharedClient] = {}


def shared_client(address: str | None, token: str | None) -> SharedClient:
    """Return this process's client for a server; the first call creates the client.

    Args:
        address: See `AnswerEvaluator`.
        token: See `AnswerEvaluator`.

    Raises:
        InvalidRequest: The address or token is malformed.
        MissingExtra: The address is "embedded", and the server package is not installed.
    """
    address = address or os.environ.get(ADDRESS_VARIABLE) or _USUAL_ADDRESS
    where = (address, token or os.environ.get(TOKEN_VARIABLE) or None)
    # Take no lock if the client exists, because a lock that is held during a fork stays locked in the child.
    if (client := _clients.get(where)) is not None:
        return client
    with _lock:
        if where not in _clients:
            _clients[where] = _open(*where)
        return _clients[where]


def close_connections() -> None:
    """Close all scorers' connections, which otherwise stay open until the program ends.

    The next call opens a new connection.
    """
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
    """An answer's score, or the reason why there is no score.

    Attributes:
        metric: The requested metric.
        value: The score, on the metric's scale; None unless `status` is OK. Failures never count as 0.
        label: "right" or "wrong" for a reliable verdict, "uncertain" for an unreliable verdict, "none" if there is no
            verdict.
        correct: The verdict, even if uncertain; None without a verdict.
        explanation: A sentence for users.
        status: OK, or the reason for a missing score.
        error_type: The status, or the error's class if the call itself failed; "" if there is a score.
        metric_line: The metric identifier that reproduces the score; "" if the server did not return it.
        digest: The digest of the model behind the score, 64 hex digits; "" for metrics without a model.
        metadata: More details in JSON types: model, parts of the score, warnings, the matched reference.
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
        """Return the evaluation for a server's score."""
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
        """Return the evaluation for a failed call."""
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
        """Return a flat dictionary for JSON with everything except the value and the explanation.

        The keys are metric, label, correct, status, error_type, metric_line, digest and `metadata`'s keys. Empty values
        are left out.
        """
        names = ("metric", "label", "correct", "status", "error_type", "metric_line", "digest")
        details = {name: getattr(self, name) for name in names} | {"status": str(self.status), **self.metadata}
        return {name: value for name, value in details.items() if value is not None and value != ""}


def _label(score: MetricScore) -> Label:
    if score.score is None or score.correct is None:
        return "none"
    if ScoreWarning.UNCERTAIN in score.warnings:
        return "uncertain"
    return "right" if score.correct else "wrong"


def _explain(metric: str, score: MetricScore, label: Label) -> str:
    verdict = "" if label == "none" else f", {label}"
    said = [f"{metric}: {score.score:.4g}{verdict}"]
    if score.matched_reference is not None:
        said.append(f"matched reference {score.matched_reference + 1}")
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
    details = score.to_dict()
    for name in ("score", "status", "correct", "line"):
        details.pop(name, None)
    if provenance := score.provenance:
        for name in ("model", "judge_model", "judge_digest", "grader_model", "grader_digest", "prompt", "calibration"):
            if value := getattr(provenance, name):
                details[name] = value
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in details.items()}


@dataclass(frozen=True, slots=True)
class AnswerEvaluator:
    """A grader that applies one metric to answers.

    You can copy and pickle an evaluator, because it contains no connection. After a temporary failure (no server, a
    timeout, an overloaded server), you get an evaluation without a value. The evaluator raises only errors that would
    occur for every answer until you fix their cause.

    Attributes:
        metric: One metric, such as `"correctness"`, `"smile:fast"` or a metric identifier; see `Client.score`.
        address: HOST:PORT of a server, or "embedded" for an engine in this process. None means the environment variable
            GRADEWIRE_SERVER, or 127.0.0.1:50051 if it is not set.
        token: The bearer token. None means the environment variable GRADEWIRE_TOKEN, or no token if it is not set.
        deadline_s: Deadline of a call, in seconds; None means the client's default (30 s, or an hour with a judge).
        extraction: None grades answers as they are; "auto" grades the final answers that `extract_answer` finds in
            them, as for rewards. An answer without a final answer is graded as a blank one.

    Raises:
        InvalidRequest: The metric or extraction is malformed, or several metrics are given.
    """

    metric: str = METRIC
    address: str | None = None
    token: str | None = field(default=None, repr=False)
    deadline_s: float | None = None
    extraction: Extraction | None = None

    def __post_init__(self) -> None:
        if self.extraction is not None:
            check_extraction(self.extraction)
        choose_metrics({self.metric: self.metric}, MetricDefaults())

    def evaluate(self, *, references: str | Sequence[str], answer: str, question: str = "") -> Evaluation:
        """Grade one answer.

        Args:
            references: The right answer, or a list of right answers.
            answer: The answer to grade; a blank answer gets the status EMPTY_PREDICTION.
            question: The question; some metrics need it.

        Raises:
            RequestError: The server does not know the metric or model, or refuses the token.
            TransportError: The call failed and retrying will not help, usually because the address is wrong.
            MissingExtra: The address is "embedded", and the server package is not installed.
        """
        return self.evaluate_all([_item(references, answer, question)])[0]

    async def evaluate_async(self, *, references: str | Sequence[str], answer: str, question: str = "") -> Evaluation:
        """Grade one answer like `evaluate`, but asynchronously, on any asyncio event loop."""
        return (await self.evaluate_all_async([_item(references, answer, question)]))[0]

    def evaluate_all(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """Grade many answers in one call, and return evaluations in the same order; raise the errors of `evaluate`.

        Args:
            items: See `Client.score`. An item that cannot be sent gets an evaluation without a value.
        """
        try:
            report = self._client.score(self._graded(items), self._named, **self._options)
        except TransportError as error:
            return self._unanswered(items, error)
        return self._read(report)

    async def evaluate_all_async(self, items: Sequence[ItemLike]) -> list[Evaluation]:
        """Grade many answers like `evaluate_all`, but asynchronously, on any asyncio event loop."""
        try:
            report = await self._client.score_soon(self._graded(items), self._named, **self._options)
        except TransportError as error:
            return self._unanswered(items, error)
        return self._read(report)

    def _graded(self, items: Sequence[ItemLike]) -> list[ItemLike]:
        """Return the items with the answers to grade."""
        if self.extraction is None:
            return list(items)
        return [_with_final_answer(item, self.extraction) for item in items]

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


def _with_final_answer(item: ItemLike, extraction: Extraction) -> ItemLike:
    if isinstance(item, Item):
        return replace(item, prediction=extract_answer(item.prediction, extraction).text)
    answer = item.get("prediction")
    return {**item, "prediction": extract_answer(answer, extraction).text} if isinstance(answer, str) else item
