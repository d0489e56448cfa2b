"""Choose the better answer in a pair, by a metric's scores or by a judge that sees both orders."""

from __future__ import annotations

import math
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

import click
import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics import COMPARISON_TYPES, Compare
from gradewire.options import CompareOptions, check_comparison, lists_answers
from gradewire.pairs import Comparison, OrderVerdict, Pair
from gradewire.results import Status
from gradewire_cli.options.help import option
from gradewire_cli.options.metrics import GivenPrompt, with_prompts
from gradewire_cli.rows.row import Row, item_with_pictures
from gradewire_cli.scoring.pair_engine import Answer, AnswerPair, Choice, Chosen, Result, Winner, results_of
from gradewire_proto.wire_rules import LINE
from gradewire_stats.comparison.paired_rows import TIE_MARGIN, TieMargin, preferences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gradewire.async_api import AsyncClient
    from gradewire_cli.scoring.row_scorer import RowScorer, ScoredRow


_BY_VERDICT = "verdict"
_BATCH_PAIRS = 1024
# Maximum number of answers that are scored before their pairs are yielded, and that an interruption can lose.
_ANSWERS_AT_A_TIME = 512
_WINNERS: Mapping[float, Winner] = {1.0: "model_b", -1.0: "model_a", 0.0: "tie"}
_MODELS: Final[Mapping[str, Winner]] = {"a": "model_a", "b": "model_b", "tie": "tie"}
_SAME: Final = Pair("Which one?", "the same", "the same")


def is_comparison(by: str) -> bool:
    """Return True if --by names a judge's comparison."""
    found = LINE.fullmatch(by.strip())
    return found is not None and found["name"] in COMPARISON_TYPES


def pair_comparison_of(by: str, judge: str | None, prompts: Sequence[GivenPrompt]) -> Compare:
    """Return `comparison_of`, for a command whose questions have two answers.

    Raises:
        click.UsageError: --by is invalid, or puts lists of answers in order.
        InputError: The same as for `comparison_of`.
    """
    found = comparison_of(by, judge, prompts)
    if lists_answers(found):
        raise click.UsageError(f"--by {by} puts lists of answers in order: use gradewire rank, or --by compare")
    return found


def comparison_of(by: str, judge: str | None, prompts: Sequence[GivenPrompt]) -> Compare:
    """Return the comparison that --by names, with the values of --judge and --prompt.

    Raises:
        click.UsageError: --by is invalid.
        InputError: Two prompt files match the comparison, or a prompt file is for another metric.
    """
    try:
        (filled,) = with_prompts([check_comparison(by, judge)], prompts)
    except InvalidRequest as error:
        raise click.UsageError(f"--by {by}: {error}") from error
    return check_comparison(filled, judge)


def _tie_margin(_: click.Context, __: click.Parameter, value: str) -> TieMargin:
    if value == _BY_VERDICT:
        return "verdict"
    try:
        margin = float(value)
    except ValueError:
        margin = math.nan
    if not (math.isfinite(margin) and margin >= 0):
        raise click.BadParameter(f"{value!r} is not a margin. Give a number of at least 0, or {_BY_VERDICT}")
    return margin


tie_margin_option = option("--tie-margin", default=str(TIE_MARGIN), callback=_tie_margin)

DrawsOver = Literal["instructions", "texts"]
"""The units of bootstrap draws: instructions, or all instructions with the same text, about whatever image."""
draws_over_option = option("--draws-over", type=click.Choice(get_args(DrawsOver)))


def draws_over_of(options: Mapping[str, Any]) -> DrawsOver:
    """Return the units of --draws-over. The default is texts for a data set's files, otherwise instructions."""
    named: DrawsOver | None = options["draws_over"]
    return named or ("texts" if options["official"] else "instructions")


def text_of_question(row: Row) -> str:
    """Return the text of a row's question without blanks around it, or "" if the row has none."""
    return str(row.values.get("question") or "").strip()


@dataclass(frozen=True, slots=True)
class MetricChooser:
    """A `Chooser` that compares the answers' scores.

    Attributes:
        line: The metric identifier that reproduces the choices, or "" if unknown.
        scorer: A scorer for answers without results, or None if all answers have results.
    """

    name: str
    line: str
    tie_margin: TieMargin
    scorer: RowScorer | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The metric identifier and the tie margin."""
        return {"by": self.line or self.name, "tie_margin": self.tie_margin}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """Implement `Chooser.choose`. With a `scorer`, the yielded pairs contain the answers' results."""
        scored: dict[int, Mapping[str, Result]] = {}
        remaining = iter(pairs)
        while True:
            batch, new = self._next_batch(remaining, scored)
            if not batch:
                return
            scored |= await self._scored(new)
            if self.scorer is not None:
                batch = [replace(pair, a=_with(pair.a, scored), b=_with(pair.b, scored)) for pair in batch]
            results = [[answer.results[self.name] for answer in (pair.a, pair.b)] for pair in batch]
            scores = _numbers([[result.score for result in two] for two in results])
            verdicts = _numbers([[result.correct for result in two] for two in results])
            preferred = preferences(scores, verdicts, self.tie_margin).tolist()
            yield [(pair, self._choice(pair, side)) for pair, side in zip(batch, preferred, strict=True)]

    def _next_batch(
        self, remaining: Iterator[AnswerPair], scored: Container[int]
    ) -> tuple[list[AnswerPair], dict[int, Row]]:
        batch: list[AnswerPair] = []
        new: dict[int, Row] = {}
        for pair in remaining:
            batch.append(pair)
            if self.scorer is not None:
                new |= {answer.row.index: answer.row for answer in (pair.a, pair.b) if answer.row.index not in scored}
            if len(new) >= _ANSWERS_AT_A_TIME or (not new and len(batch) >= _BATCH_PAIRS):
                break
        return batch, new

    async def _scored(self, rows: Mapping[int, Row]) -> dict[int, Mapping[str, Result]]:
        found: dict[int, Mapping[str, Result]] = {}

        def take(batch: Sequence[ScoredRow]) -> None:
            found.update((scored.row.index, results_of(scored.output)) for scored in batch)

        if self.scorer is not None and rows:
            await self.scorer.score(rows.values(), take)
        return found

    def _choice(self, pair: AnswerPair, preferred: float) -> Choice:
        if not math.isnan(preferred):
            return Choice(winner=_WINNERS[preferred])
        for model, answer in ((pair.model_a, pair.a), (pair.model_b, pair.b)):
            result = answer.results[self.name]
            if result.score is None:
                return Choice(winner=None, status=result.status, message=f"{model} has no score for {self.name}")
        return Choice(winner=None, status="NO_VERDICT", message=f"{self.name} gives no verdict")


def _with(answer: Answer, scored: Mapping[int, Mapping[str, Result]]) -> Answer:
    return replace(answer, results=scored[answer.row.index])


def _numbers(values: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.array([[math.nan if value is None else float(value) for value in two] for two in values])


@dataclass(slots=True)
class _Waiting:
    """Pairs in their order.

    Attributes:
        pairs: Each pair with its position among the sent pairs, or with the reason why it is not sent.
        sent: Number of sent pairs.
        done: Comparisons by the position of their pair.
    """

    pairs: deque[tuple[AnswerPair, int | str]] = field(default_factory=deque)
    sent: int = 0
    done: dict[int, Comparison] = field(default_factory=dict)

    def add(self, pair: AnswerPair, lack: str) -> None:
        self.pairs.append((pair, lack or self.sent))
        self.sent += not lack

    def ready(self) -> list[Chosen]:
        """Return the first pairs with their choices, and forget them."""
        found: list[Chosen] = []
        while self.pairs:
            pair, place = self.pairs[0]
            if isinstance(place, str):
                choice = Choice(winner=None, status=Status.INVALID_INPUT.value, message=place)
            elif place in self.done:
                choice = choice_of(self.done.pop(place))
            else:
                break
            self.pairs.popleft()
            found.append((pair, choice))
        return found


@dataclass(slots=True)
class JudgeChooser:
    """A `Chooser` that asks a judge with `AsyncClient.compare_stream`. Create it with `open`.

    Attributes:
        line: The metric identifier that reproduces the verdicts. It contains the judge's digest.
        pictures: The folder of the pictures that the judge sees, or None if the judge sees no pictures.
    """

    name: str
    line: str
    client: AsyncClient
    by: Compare
    options: CompareOptions
    pictures: Path | None = None

    @classmethod
    async def open(
        cls, client: AsyncClient, by: Compare, name: str, *, pictures: Path | None = None, **options: Any
    ) -> Self:
        """Get the comparison's identifier from the server, and open a chooser with it. The judge is not called.

        Raises:
            GradewireError: The server is down, or lacks the judge.
        """
        (comparison,) = await client.compare([_SAME], by, **options)
        return cls(name, comparison.line, client, by, options, pictures if by.image else None)  # type: ignore[arg-type] # the call above has checked them

    @property
    def identity(self) -> Mapping[str, Any]:
        """The metric identifier with its digests."""
        return {"by": self.line}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """Implement `Chooser.choose`. Verdicts arrive in any order and are yielded in the order of the pairs."""
        waiting = _Waiting()

        def sent() -> Iterator[Pair]:
            for pair in pairs:
                item, lack = item_with_pictures(pair.a.row, self.pictures)
                waiting.add(pair, lack)
                if not lack:
                    yield self._pair(pair, item)

        async with aclosing(self.client.compare_stream(sent(), self.by, **self.options)) as found:
            async for comparison in found:
                waiting.done[comparison.index] = comparison
                if chosen := waiting.ready():
                    yield chosen
        if chosen := waiting.ready():
            yield chosen

    def _pair(self, pair: AnswerPair, item: Mapping[str, Any]) -> Pair:
        images = item.get("images") if self.by.image else ()
        return Pair(
            pair.a.text("question"),
            pair.a.text("prediction"),
            pair.b.text("prediction"),
            references=pair.a.texts("references"),
            captions=(*pair.a.texts("caption"), *pair.a.texts("captions")),
            images=images if isinstance(images, list | tuple) else () if images is None else (images,),
            id=pair.id,
        )


def choice_of(comparison: Comparison) -> Choice:
    """Convert a judge's comparison to a choice."""
    return Choice(
        winner=None if comparison.winner is None else _MODELS[comparison.winner],
        status=str(comparison.status),
        message=comparison.message,
        probability_a=comparison.probability_a,
        probability_b=comparison.probability_b,
        probability_tie=comparison.probability_tie,
        orders=tuple(map(_order, comparison.orders)),
    )


def _order(order: OrderVerdict) -> dict[str, Any]:
    line: dict[str, Any] = {
        "first": _MODELS[order.first],
        "winner": None if order.winner is None else _MODELS[order.winner],
        "probability_a": order.probability_a,
        "probability_b": order.probability_b,
        "probability_tie": order.probability_tie,
    }
    if order.reason:
        line["reason"] = order.reason
    if order.extracted:
        line["extracted"] = True
    return line
