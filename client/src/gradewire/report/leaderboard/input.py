"""What the page of a leaderboard is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradewire.agreement.papers.pairwise import PairwiseReport
from gradewire.ratings import Bias, Effect, RatingTable, SystemRanks


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasLine:
    """A property that wins beside the answer, "shown first" say; `effect` is its own in a fit that holds it fixed."""

    name: str
    bias: Bias
    effect: Effect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionablePair:
    """A pair on which the judge is not to be trusted.

    Attributes:
        why: In words.
        question: Text of the instruction.
        models: Names, A first.
        answers: Their texts; "" where they are not known.
        orders: What was said in each order, in words.
        probability_a: That A is better; NaN where nobody says.
    """

    why: str
    question: str
    models: tuple[str, str]
    answers: tuple[str, str]
    orders: Sequence[str]
    probability_a: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardInput:
    """A leaderboard with what stands beside it.

    Attributes:
        source: The files, as the headline says them.
        created: Date for the headline; the page reads no clock.
        by: What judged; "" where that is not known.
        pairs: How many were judged.
        ratings: Of all pairs.
        families: Of the pairs of each family.
        reference: The model that win rates are against; "" for none.
        controls: What is held fixed.
        biases: Those that were measured.
        people: Agreement with people and of the ratings; None without people.
        questionable: Pairs to look at, the most questionable first.
        notes: Further sentences.
    """

    source: str
    created: str
    by: str
    pairs: int
    ratings: RatingTable
    families: Mapping[str, RatingTable] = field(default_factory=dict)
    reference: str = ""
    controls: Sequence[str] = ()
    biases: Sequence[BiasLine] = ()
    people: tuple[PairwiseReport, SystemRanks] | None = None
    questionable: Sequence[QuestionablePair] = ()
    notes: Sequence[str] = ()
