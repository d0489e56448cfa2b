"""The generator contract between metrics and those who answer their needs.

A metric is a generator: it yields a tuple of needs, is resumed with a tuple of answers in the same order, as many
rounds as it wants, and returns a MetricResult. `ask` makes one round typed and short:

    vectors = yield from ask(Embed(model, texts, Tier.REFERENCE))
    if isinstance(vectors, Failure):
        return MetricResult.failed(vectors)
"""

from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import Corpus
from gradewire_server.domain.items import Failure, MetricResult
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated

T = TypeVar("T")


class Tier(IntEnum):
    """How long a vector is worth keeping; where one text is asked for with several, the largest counts."""

    WINDOW = 1  # in-process LRU only, admitted so that a scan of windows never pushes out the rest
    PREDICTION = 2  # also in the second level, with a time to live
    REFERENCE = 3  # pinned: second level without a time to live; also synthetic answers


class AnswerSource(IntEnum):
    """Where a vector or a verdict came from."""

    MEMORY = 0
    DISK = 1
    REDIS = 2
    JOINED = 3
    COMPUTED = 4


@dataclass(frozen=True, slots=True)
class Embed:
    """Sentence vectors of `texts` (NFC, not blank, without the model's prefix); repeated texts cost nothing."""

    model: str
    texts: tuple[str, ...]
    tier: Tier


@dataclass(frozen=True, slots=True)
class Vectors:
    """Answer to Embed.

    Attributes:
        values: float32[n, dims], rows of length 1, rounded to float16 before first use (cold equals warm).
        truncated: bool[n], the text was longer than the model reads.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EmbedRoughly:
    """Approximate sentence vectors of `texts`, to choose among them; never for a score. Answered with `Vectors`.

    Only of a model whose `ModelMetadata.rough_cosine_error` is set, which bounds the error. Texts as in `Embed`.
    """

    model: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedTokens:
    """Token vectors of each text, with the sentence vector of the same pass; texts as in `Embed`.

    Attributes:
        layer: Hidden layer, 1 for the first, its special tokens included; 0: the last layer without them.
    """

    model: str
    texts: tuple[str, ...]
    tier: Tier
    layer: int = 0


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """One text of the answer to EmbedTokens (which is a tuple of these).

    Attributes:
        sentence: float32[dims], equal to what Embed answers for the text.
        tokens: float32[tokens, dims], not normalised, rounded to float16 before first use; special tokens are left out
            where no layer was asked for.
        offsets: int32[tokens, 2], half-open character ranges in the text; (0, 0) for special tokens.
        ids: int32[tokens], the model's token numbers; -1 for special tokens.
        truncated: The text was longer than the model reads.
    """

    sentence: NDArray[np.float32]
    tokens: NDArray[np.float32]
    offsets: NDArray[np.int32]
    ids: NDArray[np.int32]
    truncated: bool


GradedTexts: TypeAlias = tuple[str, str, str]
"""Question (may be blank), reference and answer, NFC."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Logits of `items`, each read as one text by a grader; repeated items cost nothing."""

    model: str
    items: tuple[GradedTexts, ...]


@dataclass(frozen=True, slots=True)
class Grades:
    """Answer to Grade.

    Attributes:
        logits: float32[n], of "right"; the highest over the pieces in which a long answer was read.
        truncated: bool[n], a part of one of the three texts was not read.
        pieces: int32[n], 1 to 8.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PreparedSynthetic:
    """Synthetic answers stored by References.Prepare for a question's references, in the request's reference set."""

    question: str
    references: tuple[str, ...]


PreparedAnswers: TypeAlias = tuple[str | None, ...]
"""Answer to PreparedSynthetic: one per reference, None where nothing is stored."""


class Terms(StrEnum):
    """What is counted in a corpus."""

    NGRAMS = "ngrams"  # word n-grams of CIDEr, once per entry: an entry's references are one document
    TOKENS = "tokens"  # a model's tokens, once per distinct reference: each reference is a document


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """In how many documents of a corpus each term occurs.

    Attributes:
        corpus: REQUEST or PREPARED.
        terms: What is counted.
        model: Whose tokens, NAME@DIGEST; "" for n-grams.
        with_question: Documents are "QUESTION REFERENCE", of entries that have a question; not for n-grams.
    """

    corpus: Corpus
    terms: Terms
    model: str = ""
    with_question: bool = False


@dataclass(frozen=True, slots=True)
class DocumentFrequencies:
    """Answer to CorpusStatistics; shared by all items of the request, never to be changed.

    Attributes:
        name: For people and for the result: NAME:DOCUMENTS:DIGEST, NAME "request" or the reference set, DIGEST 12 hex
            digits over the corpus.
        documents: At least 1.
        counts: By term: a tuple of 1 to 4 words, or a token number.
    """

    name: str
    documents: int
    counts: Mapping[Hashable, int]


ReferenceEntries: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Distinct (question, references) of a corpus, sorted."""


@dataclass(frozen=True, slots=True)
class FindSynonyms:
    """Synonyms of lower-case `words` by WordNet; answered with `Synonyms`."""

    words: tuple[str, ...]


Synonyms: TypeAlias = Mapping[str, frozenset[str]]
"""By word: single words that share a sense with it, itself among them where WordNet knows it; else empty."""

Need: TypeAlias = (
    Embed | EmbedRoughly | EmbedTokens | Grade | PreparedSynthetic | CorpusStatistics | FindSynonyms | Choose | Generate
)
Answer: TypeAlias = (
    Vectors
    | tuple[TokenVectors, ...]
    | Grades
    | PreparedAnswers
    | DocumentFrequencies
    | Synonyms
    | Choice
    | Generated
    | Failure
)
Rounds: TypeAlias = Generator[tuple[Need, ...], Any, T]
"""A part of a metric: rounds of needs, and what they come to."""
Program: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], MetricResult]
"""A metric at work on one item."""
Preparation: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], Failure | None]
"""A metric getting one entry's references ready; returns what stood in the way, or None."""


@overload
def ask(need: Embed | EmbedRoughly, /) -> Rounds[Vectors | Failure]: ...
@overload
def ask(need: EmbedTokens, /) -> Rounds[tuple[TokenVectors, ...] | Failure]: ...
@overload
def ask(need: Grade, /) -> Rounds[Grades | Failure]: ...
@overload
def ask(need: PreparedSynthetic, /) -> Rounds[PreparedAnswers | Failure]: ...
@overload
def ask(need: CorpusStatistics, /) -> Rounds[DocumentFrequencies | Failure]: ...
@overload
def ask(need: FindSynonyms, /) -> Rounds[Synonyms | Failure]: ...
@overload
def ask(need: Choose, /) -> Rounds[Choice | Failure]: ...
@overload
def ask(need: Generate, /) -> Rounds[Generated | Failure]: ...
def ask(need: Need, /) -> Rounds[Any]:
    """One round with one need; returns its answer. For several at once: `answers = yield (need, need, …)`."""
    (answer,) = yield (need,)
    return answer
