"""What a judge says of two answers."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_ORDERS: Final = 2


class Winner(IntEnum):
    """The better one of two answers; numbers equal gradewire.v1.Winner (a test compares them)."""

    A = 1
    B = 2
    TIE = 3


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """What a judge said of a pair in one of its two orders.

    Attributes:
        first: Answer that it was shown first, A or B.
        winner: None where no verdict could be read, as `probabilities`.
        probabilities: Of A, B and a tie, sum 1.
        label_mass: See `Choice.mass`.
        reason: Written before the verdict; may be empty.
        extracted: The verdict was taken from the reason alone.
    """

    first: Winner
    winner: Winner | None
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    reason: str = ""
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """What there is to say of a pair beside its status.

    Attributes:
        winner: Present exactly when the status is OK.
        orders: A first, then B first; empty where no judge was asked, or it did not answer.
        decided_by: "judge" or "rule"; empty where there is no winner.
        prompt_tokens: Over both orders; None where the judge's server does not say.
        generated_tokens: Over both orders; None where the judge's server does not say.
    """

    winner: Winner | None = None
    orders: tuple[OrderVerdict, ...] = ()
    decided_by: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

    @property
    def probabilities(self) -> tuple[float, float, float] | None:
        """Means over both orders; None where they were not both read."""
        read = [order.probabilities for order in self.orders if order.probabilities is not None]
        if len(read) < _ORDERS:
            return None
        a, b, tie = (sum(each) / len(read) for each in zip(*read, strict=True))
        return a, b, tie
