"""A judge as chooser: it is shown each pair in both orders."""

from __future__ import annotations

from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from gradewire.cli.choosing.pairs import Choice, Winner
from gradewire.cli.input.pictures import item_with_picture
from gradewire.pairs.pair import Pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire.async_client import AsyncClient
    from gradewire.call_options import CompareOptions
    from gradewire.cli.choosing.choosers import Chosen
    from gradewire.cli.choosing.pairs import AnswerPair
    from gradewire.metric_types import Compare
    from gradewire.pairs.comparison import Comparison, OrderVerdict

_MODELS: Final[Mapping[str, Winner]] = {"a": "model_a", "b": "model_b", "tie": "tie"}
_SAME: Final = Pair("Which one?", "the same", "the same")


@dataclass(slots=True)
class JudgeChooser:
    """Implements Chooser by `AsyncClient.compare_stream`; made by `open`.

    Attributes:
        name: What the caller wrote.
        line: What reproduces its verdicts, with the judge's digest.
        client: Asks the judge.
        by: The comparison.
        options: Of each call.
        pictures: Folder of the pictures that rows name, which the judge is shown; None: it is shown none of them.
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
        """Asks the server what it would compare with, which no judge has to answer.

        Args:
            client: Of the server.
            by: The comparison.
            name: What tables call it.
            pictures: Folder of the pictures that rows name.
            **options: As `AsyncClient.compare` takes them.

        Raises:
            GradewireError: The server is away, or has no such judge.
        """
        (told,) = await client.compare([_SAME], by, **options)
        return cls(name, told.line, client, by, options, pictures if by.image else None)  # type: ignore[arg-type] # the call above has checked them

    @property
    def identity(self) -> Mapping[str, Any]:
        """The line alone: it names judge and prompt by their digests."""
        return {"by": self.line}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """As `Chooser.choose`; verdicts come as they are done, and are put in order here."""
        waiting: deque[AnswerPair] = deque()

        def sent() -> Iterator[Pair]:
            for pair in pairs:
                waiting.append(pair)
                yield self._pair(pair)

        done: dict[int, Comparison] = {}
        given = 0
        async with aclosing(self.client.compare_stream(sent(), self.by, **self.options)) as found:
            async for comparison in found:
                done[comparison.index] = comparison
                ready: list[Chosen] = []
                while (next_one := done.pop(given, None)) is not None:
                    ready.append((waiting.popleft(), choice_of(next_one)))
                    given += 1
                if ready:
                    yield ready

    def _pair(self, pair: AnswerPair) -> Pair:
        item, _ = item_with_picture(pair.a.row, self.pictures)
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
    """A comparison as a line of a pair has it."""
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
    told: dict[str, Any] = {
        "first": _MODELS[order.first],
        "winner": None if order.winner is None else _MODELS[order.winner],
        "probability_a": order.probability_a,
        "probability_b": order.probability_b,
        "probability_tie": order.probability_tie,
    }
    if order.reason:
        told["reason"] = order.reason
    if order.extracted:
        told["extracted"] = True
    return told
