"""The interface through which metrics ask the scorer for vectors, judge answers and other data.

A metric is a generator. In each round, it yields a tuple of needs and receives a tuple of answers in the same order.
Finally, it returns a MetricResult. `ask` is a typed shorthand for a round with one need:

    vectors = yield from ask(Embed(model, texts, Tier.REFERENCE))
    if isinstance(vectors, Failure):
        return MetricResult.failed(vectors)
"""

from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import Corpus
from gradewire_server.domain.items import Failure, MetricResult
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated

T = TypeVar("T")


class Tier(IntEnum):
    """A vector's cache tier. If a text is requested with several tiers, the highest tier counts."""

    WINDOW = 1  # only the in-process cache
    PREDICTION = 2  # also the second level, with a time to live
    REFERENCE = 3  # also the second level, without a time to live


class AnswerSource(IntEnum):
    """The origin of an answer."""

    MEMORY = 0
    DISK = 1
    REDIS = 2
    JOINED = 3
    COMPUTED = 4


@dataclass(frozen=True, slots=True)
class Embed:
    """A need for sentence vectors of `texts` (NFC, not blank, without the model's prefix)."""

    model: str
    texts: tuple[str, ...]
    tier: Tier


@dataclass(frozen=True, slots=True)
class Vectors:
    """The answer to Embed.

    Attributes:
        values: float32[n, dims], rows with norm 1, rounded to float16 like cached vectors.
        truncated: bool[n], True if the text was too long for the model and was cut.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EmbedRoughly:
    """A need for approximate sentence vectors, answered by `Vectors`. Use the vectors for selection, not for scores.

    The model must have a `ModelMetadata.rough_cosine_error`.
    """

    model: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedTokens:
    """A need for each text's token vectors and sentence vector.

    Attributes:
        layer: The hidden layer's number, starting at 1. 0 means the last layer, without special tokens.
    """

    model: str
    texts: tuple[str, ...]
    tier: Tier
    layer: int = 0


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """One text's vectors. The answer to EmbedTokens is a tuple of `TokenVectors`.

    Attributes:
        sentence: float32[dims], equal to the text's vector from Embed.
        tokens: float32[tokens, dims], not normalised, rounded to float16.
        offsets: int32[tokens, 2], half-open character ranges in the text, (0, 0) for special tokens.
        ids: int32[tokens], the model's token IDs, -1 for special tokens.
        truncated: True if the text was too long for the model and was cut.
    """

    sentence: NDArray[np.float32]
    tokens: NDArray[np.float32]
    offsets: NDArray[np.int32]
    ids: NDArray[np.int32]
    truncated: bool


GradedTexts: TypeAlias = tuple[str, str, str]
"""A question (may be blank), a reference and an answer; all are NFC."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A need for a grader's logits for `items`."""

    model: str
    items: tuple[GradedTexts, ...]


MOST_PIECES: Final = 8
"""The number of pieces after which a grader reads no more of an answer."""


@dataclass(frozen=True, slots=True)
class Grades:
    """The answer to Grade.

    Attributes:
        logits: float32[n], the logits of the label "right". A long answer has the highest of its pieces' logits.
        truncated: bool[n], True if the grader did not read the whole question, reference and answer.
        pieces: int32[n], the number of pieces in each answer, 1 to `MOST_PIECES`.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PreparedSynthetic:
    """A need for the synthetic answers that References.Prepare stored for these references."""

    question: str
    references: tuple[str, ...]


PreparedAnswers: TypeAlias = tuple[str | None, ...]
"""The answer to PreparedSynthetic: for each reference, a synthetic answer, or None if none is stored."""


class Terms(StrEnum):
    """The terms that corpus statistics count."""

    NGRAMS = "ngrams"  # CIDEr's word n-grams; an entry's references together are one document
    TOKENS = "tokens"  # a model's tokens; each distinct reference is a document


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """A need for a corpus's document frequencies.

    Attributes:
        corpus: REQUEST or PREPARED.
        model: NAME@DIGEST of the model for TOKENS, or "" for NGRAMS.
        with_question: For TOKENS, True if each document is "QUESTION REFERENCE".
    """

    corpus: Corpus
    terms: Terms
    model: str = ""
    with_question: bool = False


@dataclass(frozen=True, slots=True)
class DocumentFrequencies:
    """The answer to CorpusStatistics. Do not change this object, because all items in a request share it.

    Attributes:
        name: The corpus's name in results, NAME:DOCUMENTS:DIGEST. NAME is "request" or the reference set's name, and
            DIGEST has 12 hex digits.
        documents: The number of documents, 1 or more.
        counts: The number of documents that contain each term (a tuple of 1 to 4 words, or a token ID).
    """

    name: str
    documents: int
    counts: Mapping[Hashable, int]


ReferenceEntries: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""A corpus's distinct (question, references) pairs, sorted."""


@dataclass(frozen=True, slots=True)
class FindSynonyms:
    """A need for WordNet's synonyms of lower-case `words`, answered by `Synonyms`."""

    words: tuple[str, ...]


Synonyms: TypeAlias = Mapping[str, frozenset[str]]
"""For each word, its synonyms and the word itself. A word that is not in WordNet has an empty set."""

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
"""A generator that does a part of a metric's program and returns a `T`."""
Program: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], MetricResult]
Preparation: TypeAlias = Generator[tuple[Need, ...], tuple[Answer, ...], Failure | None]
"""A generator that prepares an entry's references and returns None or a failure."""


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
    """Run a round with one need and return the answer. For several needs, use `answers = yield (need, need, …)`."""
    (answer,) = yield (need,)
    return answer
