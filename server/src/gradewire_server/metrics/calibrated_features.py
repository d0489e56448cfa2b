"""The features of `calibrated`: cheap numbers about an item, from its texts and what SMILE found in them."""

from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.calibrated_inputs import CalibratedInputs


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature.

    Attributes:
        name: In results and fits.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at splits, see `calibrated_trees`; 0 for values that no rounding of vectors moves.
        description: For people.
    """

    name: str
    monotone: int
    width: float
    description: str


FEATURES: Final = (
    Feature("sentence", 1, 0.02, "SMILE's sentence term"),
    Feature("keyword", 1, 0.02, "SMILE's keyword term"),
    Feature("exact", 1, 0.0, "SMILE's exact term"),
    Feature("question_cosine", 0, 0.02, "cosine of prediction and question"),
    Feature("reference_question_cosine", 0, 0.02, "cosine of best reference and question"),
    Feature("prediction_words", 0, 0.0, "words of the prediction"),
    Feature("reference_words", 0, 0.0, "words of the best reference"),
    Feature("references", 0, 0.0, "number of references"),
)


def features(inputs: CalibratedInputs) -> NDArray[np.float64]:
    """float64[len(FEATURES)]; NaN where a feature does not apply."""
    return np.array(
        (
            inputs.terms.sentence,
            inputs.terms.keyword,
            inputs.terms.exact,
            nan if inputs.question_cosine is None else inputs.question_cosine,
            nan if inputs.reference_question_cosine is None else inputs.reference_question_cosine,
            len(inputs.texts.words.words),
            len(inputs.texts.keywords[inputs.best].words),
            len(inputs.references),
        ),
        dtype=np.float64,
    )
