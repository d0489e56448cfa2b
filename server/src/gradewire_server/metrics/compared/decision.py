"""From what a judge said in both orders to a winner."""

from collections.abc import Sequence
from enum import StrEnum

from gradewire_server.domain.comparison import Winner


class CompareDecision(StrEnum):
    """What both orders must say for an answer to win."""

    BOTH = "both"
    MAJORITY = "majority"


def winner_of(probabilities: tuple[float, float, float]) -> Winner:
    """The most probable one of answer A, answer B and a tie; where an answer is no more probable than another, a tie.

    So answers that change places change the winner, and nothing else.
    """
    a, b, tie = probabilities
    if a > b and a > tie:
        return Winner.A
    return Winner.B if b > a and b > tie else Winner.TIE


def decide(said: Sequence[Winner], decision: CompareDecision) -> Winner | None:
    """The winner of a pair; None where the orders contradict each other.

    Args:
        said: Winner in each order.
        decision: BOTH: what both say. MAJORITY: a win beside a tie is a win too.
    """
    found = set(said)
    if len(found) == 1:
        return found.pop()
    found.discard(Winner.TIE)
    return found.pop() if decision is CompareDecision.MAJORITY and len(found) == 1 else None
