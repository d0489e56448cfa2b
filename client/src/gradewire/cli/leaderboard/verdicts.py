"""All judged pairs of a leaderboard, with what was left out, as the matches that ratings are made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from gradewire.cli.input.left_out import LeftOut
from gradewire.cli.leaderboard.pairs import INCONSISTENT, OK, JudgedPair
from gradewire.cli.leaderboard.reading import judged_pair
from gradewire.ratings import Matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire.cli.choosing.pairs import Winner
    from gradewire.cli.input.record import Record

_SCORES: Mapping[Winner | None, float] = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, None: 0.5}


@dataclass(slots=True)
class Verdicts:
    """Judged pairs in the order of their files.

    Attributes:
        pairs: Those that count.
        left_out: Rows that are none.
    """

    pairs: list[JudgedPair] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(cls, records: Iterable[Record], names: Mapping[str, Sequence[str]]) -> Self:
        """Reads records; rows that are no pairs are counted by their reason."""
        found = cls()
        for record in records:
            try:
                found.pairs.append(judged_pair(record, names))
            except ValueError as error:
                found.left_out.add(str(error), record.place)
        return found

    @property
    def models(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted({model for pair in self.pairs for model in pair.models})

    @property
    def families(self) -> list[str]:
        """Names of the families, sorted, where there are several."""
        found = sorted({pair.family for pair in self.pairs} - {""})
        return found if len(found) > 1 else []

    @property
    def without_winner(self) -> Counter[str]:
        """Pairs without a winner, by status: they count as ties."""
        return Counter(pair.status for pair in self.pairs if pair.counted is None)

    @property
    def lost_blank(self) -> int:
        """Pairs that a blank answer lost to another one."""
        return sum(pair.counted != pair.winner for pair in self.pairs)

    def both_orders(self) -> tuple[int, int]:
        """Pairs whose two orders were both read, and those of them in which both have the same winner."""
        read = [
            {order.winner for order in pair.orders}
            for pair in self.pairs
            if len(pair.orders) == 2 and all(order.winner is not None for order in pair.orders)
        ]
        return len(read), sum(len(winners) == 1 for winners in read)

    def matches(self, models: Sequence[str] | None = None, numbers: Mapping[str, int] | None = None) -> Matches:
        """One match a pair; `models` and `numbers` of instructions, where others share them."""
        return _matches([(pair, pair.counted, 0, 1.0) for pair in self.pairs], models or self.models, numbers)

    def ordered(self) -> Matches:
        """One match for each order in which a pair was shown, as far as they are known, else one for the pair.

        Instructions have the numbers that they have in `matches`.
        """
        rows: list[tuple[JudgedPair, Winner | None, int, float]] = []
        for pair in self.pairs:
            read = [order for order in pair.orders if order.winner is not None]
            rows += [(pair, order.winner, 1 if order.first == "model_a" else -1, 1 / len(read)) for order in read] or [
                (pair, pair.counted, 0, 1.0)
            ]
        return _matches(rows, self.models, None)

    def of_family(self, family: str) -> Verdicts:
        """The pairs of one family."""
        return Verdicts([pair for pair in self.pairs if pair.family == family])


def instruction_numbers(*verdicts: Verdicts) -> dict[str, int]:
    """A number for each instruction that any of these are about."""
    found: dict[str, int] = {}
    for pair in (pair for each in verdicts for pair in each.pairs):
        found.setdefault(pair.instruction, len(found))
    return found


def questionable(pairs: Iterable[JudgedPair], *, most: int) -> list[JudgedPair]:
    """Pairs on which the judge disagrees with itself, then those it is least sure of: probability near one half."""

    def doubt(pair: JudgedPair) -> tuple[int, float]:
        apart = abs(pair.probability_a - 0.5)
        return (0 if pair.status == INCONSISTENT else 1 if pair.status != OK else 2), 1.0 if np.isnan(apart) else apart

    asked = [pair for pair in pairs if pair.status != OK or abs(pair.probability_a - 0.5) < 0.1]
    return sorted(asked, key=doubt)[:most]


def _matches(
    rows: Sequence[tuple[JudgedPair, Winner | None, int, float]],
    models: Sequence[str],
    numbers: Mapping[str, int] | None,
) -> Matches:
    number_of = {model: number for number, model in enumerate(models)}
    instructions = dict(numbers or {})
    for pair, *_ in rows:
        instructions.setdefault(pair.instruction, len(instructions))
    return Matches.of(
        models,
        [number_of[pair.models[0]] for pair, *_ in rows],
        [number_of[pair.models[1]] for pair, *_ in rows],
        [_SCORES[winner] for _, winner, *_ in rows],
        [instructions[pair.instruction] for pair, *_ in rows],
        shown_first=[first for _, _, first, _ in rows],
        words=[pair.words for pair, *_ in rows],
        weights=[weight for *_, weight in rows],
    )
