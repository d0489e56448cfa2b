"""What became of the matched reference's values, shown beside SMILE's terms: words alone do not tell 1912 from 1913."""

from functools import lru_cache
from typing import Final

from gradewire_server.domain.item import Item
from gradewire_server.metrics.text.values.kinds import Outcome
from gradewire_server.metrics.text.values.matching import match_values

_MAX_KNOWN: Final = 8_192
"""Items whose outcome is kept, those met last."""
_MAX_KNOWN_CHARACTERS: Final = 1_024
"""Of question, reference and prediction together; longer items cost SMILE itself much more."""


def value_outcome(item: Item, matched_reference: int) -> str | None:
    """What became of that reference's values in the prediction; None where it has none."""
    texts = item.question, item.references[matched_reference], item.prediction
    short = sum(map(len, texts)) <= _MAX_KNOWN_CHARACTERS
    outcome = _known_outcome(*texts) if short else match_values(*texts).outcome
    return None if outcome is None else outcome.value


@lru_cache(maxsize=_MAX_KNOWN)
def _known_outcome(question: str, reference: str, prediction: str) -> Outcome | None:
    """What does not change is not read again: an item whose vectors are cached costs little else."""
    return match_values(question, reference, prediction).outcome
