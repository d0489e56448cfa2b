"""Which words of a prediction stand for which words of a reference, as METEOR aligns them.

Source: Banerjee and Lavie 2005, section 2. What that leaves open is done as in NLTK (`nltk.translate.meteor_score`):
words are taken from the end, each with the last free partner, and synonyms are looked up for stems.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from gradewire_server.domain.needs import Synonyms

Pair: TypeAlias = tuple[int, int]
"""Position in the prediction, position in the reference."""
Placed: TypeAlias = tuple[int, str]
"""Position, and the word there or its stem."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Words of a prediction and a reference that are paired, and those that are still free, in order of position."""

    pairs: tuple[Pair, ...]
    prediction: tuple[Placed, ...]
    reference: tuple[Placed, ...]


def align_words(prediction: Sequence[str], reference: Sequence[str], stems: Mapping[str, str]) -> Alignment:
    """Pairs equal words, then words of equal stem; free words are given as stems, which `stems` has for every word."""
    same = _paired(Alignment((), tuple(enumerate(prediction)), tuple(enumerate(reference))), {})
    if not same.prediction or not same.reference:
        return same
    stemmed = Alignment(
        same.pairs,
        tuple((position, stems[word]) for position, word in same.prediction),
        tuple((position, stems[word]) for position, word in same.reference),
    )
    return _paired(stemmed, {})


def align_synonyms(alignment: Alignment, synonyms: Synonyms) -> Alignment:
    """Pairs free words of the prediction with free words of the reference that are among their synonyms."""
    if not alignment.prediction or not alignment.reference:
        return alignment
    return _paired(alignment, synonyms)


def _paired(alignment: Alignment, synonyms: Synonyms) -> Alignment:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for position, word in alignment.reference:
        places[word].append(position)
    pairs: list[Pair] = []
    free: list[Placed] = []
    for position, word in reversed(alignment.prediction):
        partners = places.keys() & synonyms.get(word, frozenset()) | places.keys() & {word}
        if partners:
            partner = max(partners, key=lambda candidate: places[candidate][-1])
            pairs.append((position, places[partner].pop()))
            if not places[partner]:
                del places[partner]
        else:
            free.append((position, word))
    used = {position for _, position in pairs}
    return Alignment(
        alignment.pairs + tuple(pairs),
        tuple(reversed(free)),
        tuple(placed for placed in alignment.reference if placed[0] not in used),
    )


def count_chunks(pairs: Sequence[Pair]) -> int:
    """Runs of pairs that stand next to each other in both texts, 0 where nothing is paired."""
    ordered = sorted(pairs)
    follows = sum(1 for (a, b), (c, d) in pairwise(ordered) if (c, d) == (a + 1, b + 1))
    return len(ordered) - follows
