"""What comes back for a pair."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gradewire.results import CacheHits, Provenance, ScoreWarning, Status, Timing

Winner: TypeAlias = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """What the judge said of a pair in one of its two orders.

    Attributes:
        first: The answer that it was shown first.
        winner: The most probable one, a tie where two are equally probable; None where no verdict could be read.
        probability_a: That answer A is the better one, 0 to 1; None as `winner`.
        probability_b: Likewise of answer B.
        probability_tie: Likewise of neither.
        reason: What it wrote before its verdict, with mode=reason.
        extracted: The verdict could not be read behind the reason, and was taken from the reason alone.
        label_mass: Probability of all three verdicts together before the judge was held to them, where that is known.
    """

    first: Literal["a", "b"]
    winner: Winner | None
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    reason: str = ""
    extracted: bool = False
    label_mass: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which of two answers is the better one, or why that is not known.

    Attributes:
        winner: Present exactly when `status` is OK.
        status: OK; INCONSISTENT where the two orders contradict each other; UNPARSABLE; or why nothing was compared.
        probability_a: Mean over both orders that answer A is the better one, 0 to 1; None where one of them could not
            be read, and where no judge was asked.
        probability_b: Likewise of answer B.
        probability_tie: Likewise of neither.
        orders: What the judge said, A first, then B first; also where it is INCONSISTENT or UNPARSABLE. Empty where no
            judge was asked, or it did not answer.
        index: Position of the pair in the call, from 0.
        id: As the caller gave it.
        group: Likewise.
        message: What went wrong and what to do; empty when OK.
        warnings: Remarks beside the verdict.
        decided_by: judge, or rule for answers that look the same; empty where there is no winner.
        prompt_tokens: Read by the judge, over both orders; 0 where its server does not tell.
        generated_tokens: Written by it, likewise.
        cache_hits: Where the verdicts came from.
        timing: Where the time went.
        provenance: What reproduces the verdict; None for a pair that never reached a server.
        retry_after_s: Seconds after which sending the pair again may help, where the server can tell (UNAVAILABLE).
    """

    winner: Winner | None
    status: Status
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    orders: tuple[OrderVerdict, ...] = ()
    index: int = 0
    id: str = ""
    group: str = ""
    message: str = ""
    warnings: tuple[ScoreWarning, ...] = ()
    decided_by: str = ""
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)
    provenance: Provenance | None = None
    retry_after_s: float | None = None

    @property
    def line(self) -> str:
        """The line that reproduces the verdict; empty without provenance."""
        return "" if self.provenance is None else self.provenance.line

    def to_dict(self) -> dict[str, Any]:
        """For JSON: id, winner, status, then what there is of group, probabilities, orders, message, warnings, line."""
        row: dict[str, Any] = {"id": self.id, "winner": self.winner, "status": str(self.status)}
        if self.group:
            row["group"] = self.group
        row |= _probabilities(self)
        if self.orders:
            row["orders"] = [_order(order) for order in self.orders]
        for name in ("message", "decided_by"):
            if value := getattr(self, name):
                row[name] = value
        if self.warnings:
            row["warnings"] = [str(warning) for warning in self.warnings]
        if self.line:
            row["line"] = self.line
        return row


def _order(order: OrderVerdict) -> dict[str, Any]:
    row: dict[str, Any] = {"first": order.first, "winner": order.winner, **_probabilities(order)}
    if order.reason:
        row["reason"] = order.reason
    if order.extracted:
        row["extracted"] = True
    return row


def _probabilities(told: Comparison | OrderVerdict) -> dict[str, float]:
    names = ("probability_a", "probability_b", "probability_tie")
    return {name: value for name in names if (value := getattr(told, name)) is not None}
