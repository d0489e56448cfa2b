"""What the features of `correctness` are made of: an item, and what SMILE found in it."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Need
from gradewire_server.domain.parts import SmileParts
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.correctness.features.words import MAX_CHARACTERS, MAX_WORDS
from gradewire_server.metrics.smile.formula import grade
from gradewire_server.metrics.smile.parameters import PRESET_WEIGHT, SmileParameters, SmilePreset
from gradewire_server.metrics.smile.texts import whole_texts
from gradewire_server.metrics.smile.whole_answer import gather_to_the_end

_WEIGHT: Final = PRESET_WEIGHT[SmilePreset.ONE_PASS]
"""The preset's own: the terms have to be of the reference that the fit saw, whatever weight was fitted for `smile`."""


@dataclass(frozen=True, slots=True)
class CorrectnessInputs:
    """One item, looked at by SMILE (preset one_pass, references as they are).

    Attributes:
        item: Its question may be empty or blank.
        truncated: Whether something of the prediction or of a reference was not read.
        best: Index of the reference that gave it.
        smile: SMILE's score, 0 to 1.
        terms: Its terms, of the best reference.
    """

    item: Item
    truncated: bool
    best: int
    smile: float
    terms: SmileParts


def gather_inputs(item: Item, model: str) -> Generator[tuple[Need, ...], Any, CorrectnessInputs | Failure]:
    """Asks for what SMILE asks for of a checked item, and reads on where the encoder stopped; a Failure where it fails.

    Windows in context, for they judge as well here as windows embedded alone, and those are most of SMILE's cost.
    Vectors of the question were tried and left out: answers behind it cost half of SMILE again, since they are a second
    pass over the longest text, and the question alone costs a tenth (benchmarks/latency/correctness_cost.py).
    """
    parameters = SmileParameters(model=model, preset=SmilePreset.ONE_PASS, sentence_weight=_WEIGHT)
    end = len(item.prediction) - len(item.prediction.lstrip()) + MAX_CHARACTERS
    texts = whole_texts(item.prediction, item.references, end=end, most_words=MAX_WORDS)
    similarities = yield from gather_to_the_end(texts, parameters, end=end)
    if isinstance(similarities, Failure):
        return similarities
    smile = grade(texts, similarities, parameters)
    if smile.score is None or smile.matched_reference is None or not isinstance(smile.parts, SmileParts):
        raise TypeError("SMILE has no score of its own similarities")
    return CorrectnessInputs(
        item=item,
        truncated=similarities.truncated,
        best=smile.matched_reference,
        smile=smile.score,
        terms=smile.parts,
    )
