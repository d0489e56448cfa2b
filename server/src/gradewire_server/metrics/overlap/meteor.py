"""METEOR: words matched as they are, by stem and by synonym, with a penalty for broken order.

Source: Banerjee and Lavie 2005, "METEOR: An Automatic Metric for MT Evaluation"; Lavie and Agarwal 2007 (alpha,
beta, gamma).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from gradewire_server.domain.item import Item
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.needs import FindSynonyms, Program, ask
from gradewire_server.domain.parts import MeteorParts
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, cut_warning
from gradewire_server.metrics.overlap.meteor_alignment import (
    Alignment,
    IndexedWords,
    align_synonyms,
    align_words,
    count_chunks,
    free_stems,
)
from gradewire_server.metrics.parameters import take_choices
from gradewire_server.metrics.text.reference_words import words_of_references
from gradewire_server.metrics.text.word_split import first_words
from gradewire_server.metrics.text_metric import NothingToPrepare
from gradewire_server.metrics.ties import first_of_the_highest

_LARGEST_BETA: Final = 100.0


class MeteorSynonyms(StrEnum):
    """Where synonyms come from."""

    WORDNET = "wordnet"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MeteorParameters(Parameters):
    """Parameters of `meteor`.

    Attributes:
        synonyms: Where synonyms come from.
        alpha: Weight of precision against recall in the denominator of their mean, 0 to 1.
        beta: Exponent of the penalty, 0 to 100.
        gamma: Largest penalty, 0 to 1.

    Raises:
        ParameterError: A value out of range, or a source of synonyms that does not exist.
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
    """Precision, recall and penalty of an alignment; all 0 where no word is paired."""
    matches = len(alignment.pairs)
    if not matches:
        return MeteorParts(0.0, 0.0, 0.0, 0, 0)
    chunks = count_chunks(alignment.pairs)
    penalty = p.gamma * (chunks / matches) ** p.beta
    return MeteorParts(matches / prediction_words, matches / reference_words, penalty, matches, chunks)


def meteor_score(parts: MeteorParts, alpha: float) -> float:
    """(1 - penalty) P R / (alpha P + (1 - alpha) R), 0 where no word is paired."""
    if not parts.matches:
        return 0.0
    mean = parts.precision * parts.recall / (alpha * parts.precision + (1 - alpha) * parts.recall)
    return (1 - parts.penalty) * mean


class Meteor(NothingToPrepare):
    """METEOR against the best reference, of equals the first; asks for WordNet's synonyms of predictions alone."""

    info = MetricInfo(
        name="meteor",
        version=1,
        description="METEOR: words matched exactly, by Porter stem and by WordNet synonym, with a penalty for order.",
        citation="Banerjee and Lavie 2005, METEOR, ACL workshop; Lavie and Agarwal 2007, WMT",
        needs_synonyms=True,
    )
    parameters_type = MeteorParameters

    def score(self, item: Item, parameters: MeteorParameters, metadata: ModelMetadata) -> Program:
        """Asks for synonyms of words that are not matched otherwise; even of none, to learn of missing files."""
        del metadata
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        words, prediction_cut = first_words(item.prediction)
        references, references_cut = words_of_references(item.references, first_words)
        prediction = IndexedWords.of(words)
        alignments = [align_words(prediction, reference) for reference in references]
        if parameters.synonyms is MeteorSynonyms.WORDNET:
            wanted = tuple(free_stems(prediction, alignments))
            synonyms = yield from ask(FindSynonyms(wanted))
            if isinstance(synonyms, Failure):
                return MetricResult.failed(synonyms)
            # The answer may hold the words of the whole request.
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
