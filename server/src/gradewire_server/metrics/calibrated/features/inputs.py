"""What the features of `calibrated` are made of: an item, and what SMILE found in it."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Need
from gradewire_server.domain.result import Failure, SmileParts
from gradewire_server.metrics.smile.formula import grade
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import smile_texts

_WEIGHT: Final = 0.3
"""SMILE's own: the terms have to be of the reference that the fit saw, whatever weight was fitted for `smile`."""


@dataclass(frozen=True, slots=True)
class CalibratedInputs:
    """One item, looked at by SMILE (preset one_pass, references as they are).

    Attributes:
        item: Its question may be empty or blank.
        truncated: Whether the encoder read a text only in part, or not all windows were looked at.
        best: Index of the reference that gave it.
        smile: SMILE's score, 0 to 1.
        terms: Its terms, of the best reference.
    """

    item: Item
    truncated: bool
    best: int
    smile: float
    terms: SmileParts


def gather_inputs(item: Item, model: str) -> Generator[tuple[Need, ...], Any, CalibratedInputs | Failure]:
    """Asks for what SMILE asks for of a checked item; a Failure where the encoder fails.

    Windows in context, for they judge as well here as windows embedded alone, and those are most of SMILE's cost.
    Vectors of the question were tried and left out: answers behind it cost half of SMILE again, since they are a second
    pass over the longest text, and the question alone costs a tenth (benchmarks/latency/calibrated_cost.py).
    """
    parameters = SmileParameters(model=model, preset=SmilePreset.ONE_PASS, sentence_weight=_WEIGHT)
    texts = smile_texts(item.prediction, item.references, item.references)
    similarities = yield from gather(texts, parameters)
    if isinstance(similarities, Failure):
        return similarities
    smile = grade(texts, similarities, parameters)
    if smile.score is None or smile.matched_reference is None or not isinstance(smile.parts, SmileParts):
        raise TypeError("SMILE has no score of its own similarities")
    return CalibratedInputs(
        item=item,
        truncated=similarities.truncated,
        best=smile.matched_reference,
        smile=smile.score,
        terms=smile.parts,
    )
