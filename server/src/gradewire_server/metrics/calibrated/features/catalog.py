"""The features of `calibrated`: cheap numbers about an item."""

from dataclasses import dataclass
from typing import Final

_WIDTH: Final = 0.02


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature, and what a fit has to keep to in reading it.

    Attributes:
        name: In results and fits.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at splits (`SoftTrees`), at least; narrower ones would let the last bits of vectors move a
            probability. 0 for values that no rounding of vectors moves.
    """

    name: str
    monotone: int
    width: float = 0.0


FEATURES: Final = (
    Feature("sentence", 1, _WIDTH),  # SMILE's sentence term
    Feature("keyword", 1, _WIDTH),  # SMILE's keyword term
    Feature("exact", 1),  # SMILE's exact term
    Feature("contained", 1),  # a reference stands in the prediction word for word, asides in brackets left out
    Feature("recall", 1),  # weighed share of a reference's words that the prediction has, of the best such reference
    Feature("last_word", 1),  # the prediction has the last word of a reference, a surname often
    Feature("new_recall", 1),  # share of the best reference's new words in the prediction
    Feature("echo", 0),  # share of the best reference's words that the question has already
    Feature("parts_least", 1),  # recall of the best reference's parts between commas and "and", the lowest
    # Similarity of the best reference's farthest word to its closest word in the prediction, by edits.
    Feature("spelling_least", 1),
    # Mean similarity of a reference's words to their closest words, by Jaro-Winkler, which forgives endings.
    Feature("spelling_begin", 1),
    Feature("spelling_within", 1),  # similarity of a reference to the stretch of the prediction closest by edits
    Feature("number_recall", 1),  # share of a reference's numbers that the prediction has, as values
    Feature("year_recall", 1),  # the same, years alone
    Feature("century_recall", 1),  # the same, centuries alone, those of years among them
    Feature("number_near", 1),  # how close the closest number comes that is no year
    # Kinds of date (year, month, day, century) in which the prediction contradicts every reference.
    Feature("date_conflict", -1),
    Feature("numbers_beside", 0),  # how many numbers that neither question nor references have
    Feature("years_beside", 0),  # how many years among them
    Feature("reference_names", 0),  # share of references with a capital
    Feature("refusals", -1),  # phrases of refusal or not knowing
)

GRADER: Final = Feature("grader", 1, 0.25)
"""Logit of a grader, the highest over the references that it is asked about; only where a grader is named."""


def features_of(grader: str) -> tuple[Feature, ...]:
    """The features with a grader's among them at the end, where one is named."""
    return (*FEATURES, GRADER) if grader else FEATURES
