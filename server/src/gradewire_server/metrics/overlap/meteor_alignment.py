"""Which words of a prediction stand for which words of a reference, as METEOR aligns them.

Source: Banerjee and Lavie 2005, section 2. What that leaves open is done as in NLTK (`nltk.translate.meteor_score`):
words are taken from the end, each with the last free partner, and synonyms are looked up for stems.

Everything about the prediction is indexed once, so that a reference costs its own length and not the prediction's.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import TypeAlias

from gradewire_server.domain.needs import Synonyms
from gradewire_server.metrics.text.stems import stem

Pair: TypeAlias = tuple[int, int]
"""Position in the prediction, position in the reference."""
Places: TypeAlias = Mapping[str, Sequence[int]]
"""Positions, ascending, by word or by stem."""


@dataclass(frozen=True, slots=True)
class IndexedWords:
    """A prediction's words and where they stand."""

    stems: Sequence[str]
    by_word: Places
    by_stem: Places

    @classmethod
    def of(cls, words: Sequence[str]) -> "IndexedWords":
        """Indexes lower-case words."""
        stems = [stem(word) for word in words]
        return cls(stems, _places(enumerate(words)), _places(enumerate(stems)))


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is paired of one prediction and one reference.

    Attributes:
        pairs: In no order.
        free: Positions of the reference's words that are not paired, by stem.
    """

    pairs: tuple[Pair, ...]
    free: Places

    @property
    def taken(self) -> frozenset[int]:
        """Positions of the prediction that are paired."""
        return frozenset(position for position, _ in self.pairs)


def align_words(prediction: IndexedWords, reference: Sequence[str]) -> Alignment:
    """Pairs equal words, then words of equal stem."""
    pairs = _equal(prediction.by_word, _places(enumerate(reference)), taken=frozenset())
    same = Alignment(tuple(pairs), _free_stems(reference, pairs))
    if not same.free:
        return same
    pairs += _equal(prediction.by_stem, same.free, taken=same.taken)
    return Alignment(tuple(pairs), _free_stems(reference, pairs))


def free_stems(prediction: IndexedWords, alignments: Iterable[Alignment]) -> dict[str, None]:
    """The prediction's stems that are not paired in some alignment whose reference has free words left."""
    taken = [alignment.taken for alignment in alignments if alignment.free]
    if not taken:
        return {}
    always = frozenset.intersection(*taken)
    return dict.fromkeys(word for position, word in enumerate(prediction.stems) if position not in always)


def align_synonyms(prediction: IndexedWords, alignments: Sequence[Alignment], synonyms: Synonyms) -> list[Alignment]:
    """Pairs what is free in each alignment with free words of the reference that are among its synonyms, by stem."""
    wanted = frozenset(chain.from_iterable(alignment.free for alignment in alignments))
    reached: defaultdict[str, list[str]] = defaultdict(list)
    for word, found in synonyms.items():
        for partner in found & wanted:
            reached[partner].append(word)
    return [_with_synonyms(prediction, alignment, synonyms, reached) for alignment in alignments]


def _with_synonyms(
    prediction: IndexedWords, alignment: Alignment, synonyms: Synonyms, reached: Mapping[str, Sequence[str]]
) -> Alignment:
    words = {word for partner in alignment.free for word in reached.get(partner, ())}
    if not words:
        return alignment
    taken = alignment.taken
    free = {word: list(positions) for word, positions in alignment.free.items()}
    positions = (position for word in words for position in prediction.by_stem.get(word, ()) if position not in taken)
    pairs = list(alignment.pairs)
    for position in sorted(positions, reverse=True):
        partners = [free[synonym] for synonym in synonyms[prediction.stems[position]] if free.get(synonym)]
        if partners:
            pairs.append((position, max(partners, key=itemgetter(-1)).pop()))
    return Alignment(tuple(pairs), free)


def _equal(prediction: Places, reference: Places, *, taken: frozenset[int]) -> list[Pair]:
    pairs: list[Pair] = []
    for word, positions in reference.items():
        if word in prediction:
            ours = [position for position in prediction[word] if position not in taken]
            pairs += zip(reversed(ours), reversed(positions), strict=False)
    return pairs


def _free_stems(reference: Sequence[str], pairs: Sequence[Pair]) -> Places:
    paired = {position for _, position in pairs}
    return _places((position, stem(word)) for position, word in enumerate(reference) if position not in paired)


def _places(words: Iterable[tuple[int, str]]) -> Places:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for position, word in words:
        places[word].append(position)
    return dict(places)


def count_chunks(pairs: Sequence[Pair]) -> int:
    """Runs of pairs that stand next to each other in both texts, 0 where nothing is paired."""
    ordered = sorted(pairs)
    follows = sum(1 for (a, b), (c, d) in pairwise(ordered) if (c, d) == (a + 1, b + 1))
    return len(ordered) - follows
