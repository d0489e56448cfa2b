"""Ratings of models from verdicts on pairs of answers.

The bootstrap draws instructions instead of matches, because verdicts on the same instruction depend on each other.
"""

from gradewire_stats.ratings.elo import USUAL_SCALE, RatingScale, elo_draws, elo_ratings
from gradewire_stats.ratings.matches import Matches, PairCounts, pair_counts
from gradewire_stats.ratings.published import DistantPair, PublishedRanks, published_ranks
from gradewire_stats.ratings.sampling import ChosenPair, PairPool, next_pairs
from gradewire_stats.ratings.strengths import (
    CONTROLS,
    Control,
    NotIdentifiedError,
    bradley_terry,
    controlled_fit,
)
from gradewire_stats.ratings.table import (
    Bias,
    Controls,
    ModelRating,
    RatingTable,
    SystemRanks,
    family_bias,
    length_bias,
    position_bias,
    rate,
    system_ranks,
)

__all__ = [
    "CONTROLS",
    "USUAL_SCALE",
    "Bias",
    "ChosenPair",
    "Control",
    "Controls",
    "DistantPair",
    "Matches",
    "ModelRating",
    "NotIdentifiedError",
    "PairCounts",
    "PairPool",
    "PublishedRanks",
    "RatingScale",
    "RatingTable",
    "SystemRanks",
    "bradley_terry",
    "controlled_fit",
    "elo_draws",
    "elo_ratings",
    "family_bias",
    "length_bias",
    "next_pairs",
    "pair_counts",
    "position_bias",
    "published_ranks",
    "rate",
    "system_ranks",
]
