"""The ports through which scoring and requests use encoders, judges, stores and the lexicon."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.metric import NO_MODEL, ModelMetadata
from gradewire_server.domain.needs import (
    AnswerSource,
    GradedTexts,
    PreparedAnswers,
    ReferenceEntries,
    Synonyms,
    Tier,
    TokenVectors,
)


@dataclass(frozen=True, slots=True)
class EmbedReply:
    """The sentence vectors of one call.

    Attributes:
        values: float32[n, dims]; the rows of failed texts are zero and must not be used.
        truncated: bool[n], see `Vectors`.
        sources: uint8[n], the `AnswerSource` of each text.
        timing: The times of the whole call.
        failures: The failures by the text's index.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokensReply:
    """The token vectors of one call; `items` contains a Failure for each failed text."""

    items: tuple[TokenVectors | Failure, ...]
    sources: NDArray[np.uint8]
    timing: Timing


@dataclass(frozen=True, slots=True)
class GradeReply:
    """The logits of one call.

    Attributes:
        logits: float32[n]; the logits of failed items are zero and must not be used.
        truncated: bool[n], see `Grades`.
        pieces: int32[n], see `Grades`.
        sources: uint8[n], the `AnswerSource` of each item.
        timing: The times of the whole call.
        failures: The failures by the item's index.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


A = TypeVar("A", bound=Choice | Generated)

REPLACED: Final = Failure(Status.UNAVAILABLE, "the model was replaced during this request; try again")
"""The failure for NAME@DIGEST if the model NAME now has a different digest."""


@dataclass(frozen=True, slots=True)
class JudgeReply(Generic[A]):
    """A judge's answer to one need, or its failure.

    The sources DISK and REDIS mean the verdict cache's second level. `timing.tokenize_s` is 0 for judges that
    tokenize elsewhere.
    """

    answer: A | Failure
    source: AnswerSource
    timing: Timing


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The server's view of a model. The fields match gradewire.v1.Model, where `precision` is called numeric_class."""

    name: str
    digest: str
    state: str  # "loaded" | "built" | "missing" | "broken"
    message: str = ""
    how_to_get: str = ""
    is_default: bool = False
    dims: int = 0
    max_tokens: int = 0
    licence: str = ""
    precision: str = ""
    metadata: ModelMetadata = NO_MODEL
    kind: str = "encoder"  # or "grader", or "judge"
    remarks: tuple[str, ...] = ()
    sees_images: bool = False  # judges only


class Embeddings(Protocol):
    """Encoders, which turn texts into vectors. Calls may be cancelled and may run concurrently."""

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return sentence vectors of distinct `texts`; a backend's errors become `failures`, never exceptions.

        Args:
            model: NAME, "" for the default model, or NAME@DIGEST with all 64 digits. With a digest, the call fails
                with UNAVAILABLE if the model has been replaced, so that the rounds of an item never mix two models.
            texts: NFC, not blank.
            tiers: The cache tier of each text.
            deadline_s: In `time.monotonic()` seconds.
        """

    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return approximate vectors (see `EmbedRoughly`), or exact vectors if the model has no approximate ones."""

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        """Return token vectors of distinct `texts` for a layer (see `EmbedTokens`); otherwise like `embed`."""

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        """Return the token IDs that `embed_tokens` would use for each text, without special tokens."""


class Graders(Protocol):
    """Graders, which turn a question, a reference and an answer into one logit. Calls may be cancelled."""

    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        """Return logits of distinct `items`; a backend's errors become `failures`, never exceptions."""


class Judges(Protocol):
    """Language models that grade."""

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """Have a judge choose an option. Equal concurrent needs run once, and a backend's errors become failures.

        A call fails if the model does not exist, or with UNAVAILABLE if it has been replaced.
        """

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """Have a judge write; otherwise like `choose`."""


class ReferenceSets(Protocol):
    """The store of reference sets: under each set's name, the synthetic answers and corpus from References.Prepare."""

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        """Return the synthetic answers that a set contains for a question's references."""

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """Store synthetic answers by reference, durably and without a time to live; repeating a call changes nothing.

        A stored answer is never replaced. A different answer for the same reference is INVALID_INPUT.
        """

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """Return the questions and references of a set's corpus; NOT_PREPARED if the set has no corpus."""

    async def entries_revision(self, reference_set: str) -> str | Failure:
        """Return a cheap value that changes whenever `entries` changes; NOT_PREPARED if the set has no corpus."""

    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        """Add entries to a set's corpus, durably; entries that already exist change nothing.

        If the set is sealed, a missing or different `seal` is INVALID_INPUT.
        """

    async def seal_of(self, reference_set: str) -> str | Failure:
        """Return the digest that a set's corpus is sealed with; "" if the set is not sealed."""

    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        """Seal a set's corpus with its final digest; INVALID_INPUT if the set is sealed with a different digest."""


class Lexicon(Protocol):
    """A lexicon of synonyms."""

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        """Return WordNet's synonyms of each word; MODEL_UNAVAILABLE with install advice if its files are missing."""


class ModelIndex(Protocol):
    """An index of all encoders, all graders or all judges."""

    def statuses(self) -> Sequence[ModelStatus]:
        """Return all known models; the default model has `is_default`."""

    def status(self, name: str) -> ModelStatus | Failure:
        """Return a model by name ("" for the default model), or a MODEL_UNAVAILABLE failure with the reason."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports that scoring and requests use.

    Attributes:
        of_namespace: A function that returns the ports of a tenant's namespace, which use the same models but only the
            tenant's stored data.
    """

    embeddings: Embeddings
    encoders: ModelIndex
    judges: Judges
    judge_models: ModelIndex
    reference_sets: ReferenceSets
    lexicon: Lexicon
    graders: Graders
    grader_models: ModelIndex
    of_namespace: "Callable[[str], Ports] | None" = None

    def within(self, namespace: str) -> "Ports":
        """Return the ports of a tenant's namespace.

        Raises:
            RuntimeError: These ports have no namespaces, so tenants would share stored data.
        """
        if self.of_namespace is None:
            raise RuntimeError("these ports have no namespaces")
        return self.of_namespace(namespace)
