"""CIDEr: n-grams that prediction and references share, weighted by their rarity in a corpus.

Source: Vedantam, Zitnick and Parikh 2015, "CIDEr: Consensus-based Image Description Evaluation", section 3.
"""

import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from gradewire_proto.choices import Corpus
from gradewire_proto.parts import CiderParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status, shortened
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError
from gradewire_server.domain.needs import CorpusStatistics, DocumentFrequencies, Program, Terms, ask
from gradewire_server.metrics.common import (
    AnswerParameters,
    FailureError,
    NothingToPrepare,
    cut_warning,
    expect,
    scoring,
    stop_at,
    take_choices,
    with_graded_answer,
)
from gradewire_server.metrics.text.normalise import bare_words
from gradewire_server.metrics.text.words import MAX_WORDS, words_of_references

MAX_ORDER: Final = 4
"""Number of words in the longest n-gram."""
Ngram: TypeAlias = tuple[str, ...]

_SIGMA_WORDS: Final = 6.0
_SCALE: Final = 10.0


def words_of(text: str) -> tuple[list[str], bool]:
    """Return the first MAX_WORDS words, in lower case and without punctuation, and True if there are more.

    A text without words ("?!") is split at white space.
    """
    words = bare_words(text) or text.lower().split()
    return words[:MAX_WORDS], len(words) > MAX_WORDS


def ngrams(words: Sequence[str]) -> Counter[Ngram]:
    """Return the count of each n-gram of 1 to MAX_ORDER words."""
    return Counter(_occurrences(words))


def document_frequencies(documents: Sequence[Sequence[str]]) -> dict[Hashable, int]:
    """Return the number of documents with each n-gram; one entry's references are a document.

    N-grams in only one document are omitted. Most n-grams of a corpus are of this kind, and they weigh the same as
    unknown n-grams.
    """
    # Find n-grams in several documents by their hashes, which need a tenth of the memory.
    hashes = array("q")
    for references in documents:
        hashes.extend(map(hash, _distinct(references)))
    numbers, counts = np.unique(np.array(hashes, np.int64), return_counts=True)
    shared = set(numbers[counts > 1].tolist())
    found: Counter[Ngram] = Counter()
    for references in documents:
        found.update(ngram for ngram in _distinct(references) if hash(ngram) in shared)
    return {ngram: count for ngram, count in found.items() if count > 1}


def _distinct(references: Sequence[str]) -> set[Ngram]:
    return {ngram for words in words_of_references(references, words_of)[0] for ngram in _occurrences(words)}


def _occurrences(words: Sequence[str]) -> Iterator[Ngram]:
    orders = range(1, MAX_ORDER + 1)
    return chain.from_iterable(zip(*(words[start:] for start in range(order)), strict=False) for order in orders)


@dataclass(frozen=True, slots=True)
class CiderParameters(AnswerParameters):
    """The parameters of `cider`.

    Raises:
        ParameterError: A choice is unknown, or `corpus` is NONE.
    """

    corpus: Corpus = Corpus.REQUEST

    def __post_init__(self) -> None:
        take_choices(self)
        if self.corpus is Corpus.NONE:
            raise ParameterError("corpus", "must be request or prepared, since CIDEr needs a corpus for its weights")


@dataclass(frozen=True, slots=True)
class _Vector:
    weights: tuple[Mapping[Ngram, float], ...]
    norms: tuple[float, ...]
    words: int


class Cider(NothingToPrepare):
    """The similarity of weighted n-gram counts, averaged over n-gram lengths and references, times 10."""

    info = MetricInfo(
        name="cider",
        version=1,
        description="CIDEr-D over all references: shared 1- to 4-grams, weighted by their rarity in a corpus.",
        maximum=10.0,
        grades_abstentions=False,
        citation="Vedantam, Zitnick and Parikh 2015, CIDEr: Consensus-based Image Description Evaluation, CVPR",
    )
    parameters_type = CiderParameters

    @scoring
    def score(self, item: Item, parameters: CiderParameters, metadata: ModelMetadata) -> Program:
        """Request the corpus's document frequencies in one round, then grade."""
        del metadata
        item = with_graded_answer(item, parameters.answer)
        corpus = yield from expect(ask(CorpusStatistics(parameters.corpus, Terms.NGRAMS)))
        stop_at(_too_small(corpus))
        return _grade(item, corpus)


def _too_small(corpus: DocumentFrequencies) -> Failure | None:
    if corpus.documents > 1:
        return None
    return Failure(
        Status.INVALID_PARAMETER,
        f"corpus: {shortened(corpus.name)} contains only one question with its references, so all n-grams are equally "
        "rare. Score several questions in one request, or prepare a set of several questions",
    )


def _grade(item: Item, corpus: DocumentFrequencies) -> MetricResult:
    prediction_words, prediction_cut = words_of(item.prediction)
    references_words, references_cut = words_of_references(item.references, words_of)
    prediction = _vector(prediction_words, corpus)
    by_order = [0.0] * MAX_ORDER
    weighty = False
    for words in references_words:
        reference = _vector(words, corpus)
        weighty |= any(reference.norms)
        for index, similarity in enumerate(_similarities(prediction, reference)):
            by_order[index] += similarity
    if not weighty:
        message = (
            f"references: every word occurs in all {corpus.documents} documents of the corpus {corpus.name}, so no "
            "word has a weight. Use a corpus with more questions"
        )
        raise FailureError(Failure(Status.INVALID_INPUT, message))
    parts = tuple(_SCALE * total / len(references_words) for total in by_order)
    return MetricResult(
        score=sum(parts) / MAX_ORDER,
        warnings=cut_warning(prediction_cut, references_cut),
        parts=CiderParts(by_order=parts, corpus=corpus.name),
    )


def _vector(words: list[str], corpus: DocumentFrequencies) -> _Vector:
    """Return each n-gram's count times its idf; an unknown n-gram weighs as much as an n-gram in one document."""
    log_documents = math.log(corpus.documents)
    frequency = corpus.counts.get
    weights: tuple[dict[Ngram, float], ...] = tuple({} for _ in range(MAX_ORDER))
    for ngram, count in ngrams(words).items():
        weights[len(ngram) - 1][ngram] = count * (log_documents - math.log(max(1, frequency(ngram, 0))))
    norms = tuple(math.sqrt(math.fsum(value * value for value in each.values())) for each in weights)
    return _Vector(weights, norms, len(words))


def _similarities(prediction: _Vector, reference: _Vector) -> list[float]:
    """Return a cosine with clipped weights for each n-gram order, 0 to 1. A length difference reduces all cosines."""
    difference = prediction.words - reference.words
    penalty = math.exp(-(difference**2) / (2 * _SIGMA_WORDS**2))
    found = []
    for order in range(MAX_ORDER):
        norm = prediction.norms[order] * reference.norms[order]
        if not norm:
            found.append(0.0)
            continue
        mine, theirs = prediction.weights[order], reference.weights[order]
        # Iterate over the shorter text, since a long answer may have a thousand short references.
        fewer, more = (mine, theirs) if len(mine) < len(theirs) else (theirs, mine)
        shared = math.fsum(min(mine[ngram], theirs[ngram]) * theirs[ngram] for ngram in fewer if ngram in more)
        found.append(penalty * min(1.0, shared / norm))
    return found
