"""A pair of answers with what was said of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from gradewire.cli.choosing.pairs import Winner

_OTHER: dict[Winner, Winner] = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
NAME_CHARACTERS = 200
"""Of a model's name, at most."""
OK = "OK"
INCONSISTENT = "INCONSISTENT"
"""Status of a pair whose two orders got different winners."""
EMPTY = "EMPTY_PREDICTION"
"""Status of a pair of which an answer is blank: no judge is asked, and no metric has a score for it."""


@dataclass(frozen=True, slots=True)
class JudgedOrder:
    """What was said of a pair with one of its answers first; `winner` is None where that could not be read."""

    first: Literal["model_a", "model_b"]
    winner: Winner | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """Two answers to one instruction.

    Attributes:
        place: Where it stands, for people.
        instruction: Alike in pairs about the same instruction.
        models: Names of the two, A first.
        winner: None where there is no verdict.
        status: OK, or why there is none.
        orders: Verdicts by order, where they are known.
        family: Of the instruction; "" without.
        question: Text of the instruction; "" where it is not known.
        answers: Texts; "" where they are not known.
        words: Of each answer; NaN where they are not known.
        probability_a: That A is better, as the judge says; NaN where it does not.
        votes: Of people, where the row has them.
        by_votes: Whether the winner is what most of these say, for the row has no other.
        by: What said it; "" where that is not known.
        round: Number of the batch in which it was chosen to be judged; None for pairs of other origin.
        digest: Over both answers, where the row has it.
        turn: Of the conversation that was judged, from 1; 0 where that is not told.
    """

    place: str
    instruction: str
    models: tuple[str, str]
    winner: Winner | None
    status: str = OK
    orders: tuple[JudgedOrder, ...] = ()
    family: str = ""
    question: str = ""
    answers: tuple[str, str] = ("", "")
    words: tuple[float, float] = (math.nan, math.nan)
    probability_a: float = math.nan
    votes: tuple[Winner, ...] = ()
    by_votes: bool = False
    by: str = ""
    round: int | None = None
    digest: str = ""
    turn: int = 0

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """Alike in pairs that compare the same models on the same instruction, whatever side they are on."""
        return self.instruction, frozenset(self.models)

    @property
    def counted(self) -> Winner | None:
        """The winner that ratings count: a blank answer loses to one that is none, though nobody was asked."""
        blank = [not any(map(str.isalnum, answer)) for answer in self.answers]
        if self.winner is None and self.status == EMPTY and blank[0] != blank[1]:
            return "model_b" if blank[0] else "model_a"
        return self.winner

    def turned(self) -> Self:
        """The same pair with A and B in each other's place."""
        return replace(
            self,
            models=self.models[::-1],
            winner=self.winner and _OTHER[self.winner],
            orders=tuple(
                JudgedOrder("model_b" if order.first == "model_a" else "model_a", order.winner and _OTHER[order.winner])
                for order in self.orders
            ),
            answers=self.answers[::-1],
            words=self.words[::-1],
            probability_a=1 - self.probability_a,
            votes=tuple(_OTHER[vote] for vote in self.votes),
        )
