"""The features of `correctness`: cheap numbers about an item."""

from dataclasses import dataclass
from typing import Final

_WIDTH: Final = 0.02
RULED_OUT: Final = 0.4
"""The highest probability of an answer that a rule calls wrong."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature, and what a fit has to keep to in reading it.

    Attributes:
        name: In results and fits.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at splits (`SoftTrees`), at least; narrower ones would let the last bits of vectors move a
            probability. 0 for values that no rounding of vectors moves.
        rules_out: Whether from 1 on it calls an answer wrong, whatever the trees say: answers that people labelled
            hardly ever refuse, hedge or deny in front of the right words, so that no fit can learn it.
    """

    name: str
    monotone: int
    width: float = 0.0
    rules_out: bool = False


FEATURES: Final = (
    Feature("sentence", 1, _WIDTH),  # SMILE's sentence term
    Feature("keyword", 1, _WIDTH),  # SMILE's keyword term
    Feature("exact", 1),  # SMILE's exact term
    Feature("contained", 1),  # a reference stands in the prediction word for word, asides in brackets left out
    Feature("recall", 1),  # weighed share of a reference's words that the prediction has, of the best such reference
    Feature("last_word", 1),  # the prediction has the last word of a reference, a surname often
    Feature("new_recall", 1),  # share of the best reference's new words in the prediction
    Feature("head_recall", 1),  # the prediction has the head of the best reference's phrase, where that is new
    Feature("modifier_recall", 1),  # share of its other new words
    Feature("name_recall", 1),  # share of its new words that no dictionary has, names mostly
    Feature("member_recall", 1),  # share of its parts between commas and "and" that are there as a whole
    Feature("parts_least", 1),  # recall of these parts, the lowest
    Feature("echo", 0),  # share of the best reference's words that the question has already
    # Similarity of the best reference's farthest word to its closest word in the prediction, by edits.
    Feature("spelling_least", 1),
    # Mean similarity of a reference's words to their closest words, by Jaro-Winkler, which forgives endings.
    Feature("spelling_begin", 1),
    Feature("spelling_within", 1),  # similarity of a reference to the stretch of the prediction closest by edits
    # Dates, quantities, ordinals and the like, of the reference whose values fit best.
    Feature("value_recall", 1),  # share of them that the prediction has
    Feature("value_conflict", -1),  # share of them in whose place it has another one of their kind and unit
    Feature("values_beside", 0),  # how many of their kinds it has besides
    Feature("reference_names", 0),  # share of references with a capital
    Feature("swapped", -1),  # share of the best reference that stands around another word in the place of a new one
    Feature("opposite", -1),  # the prediction has an antonym, negates, or compares the other way round
    Feature("verdict", 1),  # yes and no: 1 where both say the same, 0 where not
    Feature("refusals", -1),  # phrases of refusal or not knowing
    Feature("verdict_conflict", -1, rules_out=True),  # begins with yes where the reference begins with no, or so
    Feature("refused", -1, rules_out=True),  # says that the answer is not known before it has a word of it
    Feature("denied", -1, rules_out=True),  # has "not" shortly before what it has of the best reference
    Feature("alternatives", -1, rules_out=True),  # other candidates that it names without choosing
)

GRADER: Final = Feature("grader", 1, 0.25)
"""Logit of a grader, the highest over the references that it is asked about; only where a grader is named."""


def features_of(grader: str) -> tuple[Feature, ...]:
    """The features with a grader's among them at the end, where one is named."""
    return (*FEATURES, GRADER) if grader else FEATURES
