"""METEOR: align the words of a prediction and a reference, with a penalty for a different word order.

Source: Banerjee and Lavie 2005, section 2. Where the paper leaves details open, this follows NLTK
(`nltk.translate.meteor_score`): words are paired from the end, each with its last free partner, and synonyms are looked
up for stems.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from gradewire_proto.choices import MeteorSynonyms
from gradewire_proto.parts import MeteorParts
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError
from gradewire_server.domain.needs import FindSynonyms, Program, Synonyms, ask
from gradewire_server.metrics.common import (
    AnswerParameters,
    NothingToPrepare,
    cut_warning,
    expect,
    first_of_the_highest,
    scoring,
    take_choices,
    with_graded_answer,
)
from gradewire_server.metrics.text.stems import stem
from gradewire_server.metrics.text.words import first_words, words_of_references

Pair: TypeAlias = tuple[int, int]
"""A word's position in the prediction, and the position of its partner in the reference."""
WordPositions: TypeAlias = Mapping[str, Sequence[int]]
"""Ascending positions by word or by stem."""

_LARGEST_BETA: Final = 100.0


@dataclass(frozen=True, slots=True)
class IndexedWords:
    """A prediction's words and their positions."""

    stems: Sequence[str]
    by_word: WordPositions
    by_stem: WordPositions

    @classmethod
    def of(cls, words: Sequence[str]) -> "IndexedWords":
        """Index lower-case words."""
        stems = [stem(word) for word in words]
        return cls(stems, _positions(enumerate(words)), _positions(enumerate(stems)))


@dataclass(frozen=True, slots=True)
class Alignment:
    """The pairs of matching words in two texts, and the reference's free (unpaired) words by stem."""

    pairs: tuple[Pair, ...]
    free: WordPositions

    @property
    def taken(self) -> frozenset[int]:
        """The prediction's paired positions."""
        return frozenset(position for position, _ in self.pairs)


def align_words(prediction: IndexedWords, reference: Sequence[str]) -> Alignment:
    """Pair equal words, then words with equal stems."""
    pairs = _equal(prediction.by_word, _positions(enumerate(reference)), taken=frozenset())
    same = Alignment(tuple(pairs), _free_stems(reference, pairs))
    if not same.free:
        return same
    pairs += _equal(prediction.by_stem, same.free, taken=same.taken)
    return Alignment(tuple(pairs), _free_stems(reference, pairs))


def free_stems(prediction: IndexedWords, alignments: Iterable[Alignment]) -> dict[str, None]:
    """Return the stems of the prediction's words that at least one alignment leaves free.

    Only alignments that also leave words of the reference free count.
    """
    taken = [alignment.taken for alignment in alignments if alignment.free]
    if not taken:
        return {}
    always = frozenset.intersection(*taken)
    return dict.fromkeys(word for position, word in enumerate(prediction.stems) if position not in always)


def align_synonyms(prediction: IndexedWords, alignments: Sequence[Alignment], synonyms: Synonyms) -> list[Alignment]:
    """Pair, in each alignment, free words of the prediction and of the reference that are synonyms."""
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


def _equal(prediction: WordPositions, reference: WordPositions, *, taken: frozenset[int]) -> list[Pair]:
    pairs: list[Pair] = []
    for word, positions in reference.items():
        if word in prediction:
            ours = [position for position in prediction[word] if position not in taken]
            pairs += zip(reversed(ours), reversed(positions), strict=False)
    return pairs


def _free_stems(reference: Sequence[str], pairs: Sequence[Pair]) -> WordPositions:
    paired = {position for _, position in pairs}
    return _positions((position, stem(word)) for position, word in enumerate(reference) if position not in paired)


def _positions(words: Iterable[tuple[int, str]]) -> WordPositions:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for position, word in words:
        places[word].append(position)
    return dict(places)


def count_chunks(pairs: Sequence[Pair]) -> int:
    """Return the number of chunks, which are runs of pairs that are adjacent in both texts."""
    ordered = sorted(pairs)
    follows = sum(1 for (a, b), (c, d) in pairwise(ordered) if (c, d) == (a + 1, b + 1))
    return len(ordered) - follows


@dataclass(frozen=True, slots=True)
class MeteorParameters(AnswerParameters):
    """The parameters of `meteor` (see types.proto).

    Raises:
        ParameterError: A value is out of range, or a choice is unknown.
    """

    synonyms: MeteorSynonyms = MeteorSynonyms.WORDNET
    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        take_choices(self)
        for field, most in (("alpha", 1.0), ("beta", _LARGEST_BETA), ("gamma", 1.0)):
            value = getattr(self, field)
            if not 0 <= value <= most:
                raise ParameterError(field, f"must be a number from 0 to {most:g}, not {value}")


def meteor_parts(alignment: Alignment, prediction_words: int, reference_words: int, p: MeteorParameters) -> MeteorParts:
    """Return an alignment's precision, recall and penalty, which are 0 if there are no pairs."""
    matches = len(alignment.pairs)
    if not matches:
        return MeteorParts(0.0, 0.0, 0.0, 0, 0)
    chunks = count_chunks(alignment.pairs)
    penalty = p.gamma * (chunks / matches) ** p.beta
    return MeteorParts(matches / prediction_words, matches / reference_words, penalty, matches, chunks)


def meteor_score(parts: MeteorParts, alpha: float) -> float:
    """Return (1 - penalty) P R / (alpha P + (1 - alpha) R), or 0 if there are no pairs."""
    if not parts.matches:
        return 0.0
    mean = parts.precision * parts.recall / (alpha * parts.precision + (1 - alpha) * parts.recall)
    return (1 - parts.penalty) * mean


class Meteor(NothingToPrepare):
    """The highest METEOR score among the references. Synonyms are looked up only for predictions."""

    info = MetricInfo(
        name="meteor",
        version=1,
        description="METEOR: words matched exactly, by Porter stem or by WordNet synonym; reordering is penalised.",
        has_verdict=False,
        citation="Banerjee and Lavie 2005, METEOR, ACL workshop; Lavie and Agarwal 2007, WMT",
        needs_synonyms=True,
    )
    parameters_type = MeteorParameters

    @scoring
    def score(self, item: Item, parameters: MeteorParameters, metadata: ModelMetadata) -> Program:
        """Request synonyms and grade. Missing synonym files are noticed even if all words match."""
        del metadata
        item = with_graded_answer(item, parameters.answer)
        words, prediction_cut = first_words(item.prediction)
        references, references_cut = words_of_references(item.references, first_words)
        prediction = IndexedWords.of(words)
        alignments = [align_words(prediction, reference) for reference in references]
        if parameters.synonyms is MeteorSynonyms.WORDNET:
            wanted = tuple(free_stems(prediction, alignments))
            synonyms = yield from expect(ask(FindSynonyms(wanted)))
            # `synonyms` may contain the words of the whole request.
            alignments = align_synonyms(prediction, alignments, {word: synonyms[word] for word in wanted})
        found = [
            meteor_parts(alignment, len(words), len(reference), parameters)
            for alignment, reference in zip(alignments, references, strict=True)
        ]
        scores = [meteor_score(parts, parameters.alpha) for parts in found]
        best = first_of_the_highest(np.array(scores))
        return MetricResult(
            score=scores[best],
            warnings=cut_warning(prediction_cut, references_cut),
            matched_reference=best,
            parts=found[best],
        )
