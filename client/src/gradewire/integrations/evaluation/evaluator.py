"""Grades answers for evaluation frameworks: what all their scorers are made over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradewire.call_options import ScoreOptions
from gradewire.errors import TransportError
from gradewire.integrations.evaluation.connection import SharedClient, shared_client
from gradewire.integrations.evaluation.evaluation import Evaluation
from gradewire.items import Item, ItemLike
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire.score_report import ScoreReport

METRIC = "correctness"
"""The probability that an answer is right, with a verdict and a remark where that is uncertain."""


@dataclass(frozen=True, slots=True)
class AnswerEvaluator:
    """Grades answers by one metric; a plain value that can be copied and pickled, without a connection of its own.

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
        """Grades one answer.

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
        """Grades many answers in one call, in order; raises as `evaluate`.

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
