"""Ratings of models from verdicts on pairs of their answers: arrays in, numbers out; no files, no terminal.

Everything here is numpy. An instruction, not a match, is what the bootstrap draws: verdicts on answers to one
instruction are not independent.
"""

from gradewire.errors import MissingExtra

try:
    from gradewire.ratings.biases import Bias, length_bias, position_bias
    from gradewire.ratings.controlled import CONTROLS, Control, ControlledFit, NotIdentifiedError, controlled_fit
    from gradewire.ratings.counts import PairCounts, pair_counts
    from gradewire.ratings.elo import elo_draws, elo_ratings
    from gradewire.ratings.matches import Matches
    from gradewire.ratings.maximum_likelihood import NotConvergedError, Strengths, bradley_terry
    from gradewire.ratings.sampling import ChosenPair, PairPool, next_pairs
    from gradewire.ratings.systems import SystemRanks, system_ranks
    from gradewire.ratings.table import Effect, ModelRating, RatingTable, rate
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtra("ratings need numpy: pip install 'gradewire[agree]'") from error

__all__ = [
    "CONTROLS",
    "Bias",
    "ChosenPair",
    "Control",
    "ControlledFit",
    "Effect",
    "Matches",
    "ModelRating",
    "NotConvergedError",
    "NotIdentifiedError",
    "PairCounts",
    "PairPool",
    "RatingTable",
    "Strengths",
    "SystemRanks",
    "bradley_terry",
    "controlled_fit",
    "elo_draws",
    "elo_ratings",
    "length_bias",
    "next_pairs",
    "pair_counts",
    "position_bias",
    "rate",
    "system_ranks",
]
