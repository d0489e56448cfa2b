"""The ports through which scoring and requests use encoders, judges, stores and the lexicon."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

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
    """The sentence vectors from one call.

    Attributes:
        values: float32[n, dims]. Failed texts have rows of zeros.
        truncated: bool[n], see `Vectors`.
        sources: uint8[n], each text's `AnswerSource`.
        failures: The failures by text index.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokensReply:
    """The token vectors from one call. `items` has one entry for each text."""

    items: tuple[TokenVectors | Failure, ...]
    sources: NDArray[np.uint8]
    timing: Timing


@dataclass(frozen=True, slots=True)
class GradeReply:
    """The logits from one call.

    Attributes:
        logits: float32[n]. Failed items have the value 0.
        truncated: bool[n], see `Grades`.
        pieces: int32[n], see `Grades`.
        sources: uint8[n], each item's `AnswerSource`.
        failures: The failures by item index.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


A = TypeVar("A", bound=Choice | Generated)

REPLACED: Final = Failure(Status.UNAVAILABLE, "the model was replaced during this request; try again")
"""The failure for NAME@DIGEST if model NAME now has a different digest."""


@dataclass(frozen=True, slots=True)
class JudgeReply(Generic[A]):
    """A judge's answer to one need, or a failure."""

    answer: A | Failure
    source: AnswerSource
    timing: Timing


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model's state and properties. The fields match gradewire.v1.Model."""

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
    kind: str = "encoder"  # "encoder" | "grader" | "judge"
    remarks: tuple[str, ...] = ()
    sees_images: bool = False  # judges only

    @property
    def unusable_message(self) -> str:
        """The reason why a missing or broken model cannot be used, with advice."""
        if self.message:
            return self.message
        state = "is not built" if self.state == "missing" else f"is {self.state} and must be replaced"
        advice = "Run: " if self.how_to_get.startswith("gradewire ") else "To use it, "
        return f"Model {self.name} {state}. {advice}{self.how_to_get}"


class Embeddings(Protocol):
    """Encoders, which turn texts into vectors. Calls may be cancelled and may run concurrently."""

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return sentence vectors for distinct `texts`. Errors become `failures`, not exceptions.

        Args:
            model: NAME, NAME@DIGEST with 64 digits, or "" for the default model. If NAME now has a different digest,
                the call fails with UNAVAILABLE.
            texts: The texts, NFC and not blank.
            tiers: Each text's cache tier.
            deadline_s: The deadline in `time.monotonic()` seconds.
        """

    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return approximate vectors (see `EmbedRoughly`). If the model has none, return exact vectors."""

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        """Return token vectors for distinct `texts`.

        For `layer`, see `EmbedTokens`. For the other arguments, see `embed`.
        """

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        """Return each text's token IDs without special tokens, in the same order as the vectors of `embed_tokens`."""


class Graders(Protocol):
    """Graders, which turn a question, a reference and an answer into a logit. Calls may be cancelled."""

    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        """Return logits for distinct `items`. Errors become `failures`, not exceptions."""


class Judges(Protocol):
    """Language models that grade."""

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """Have a judge choose an option. Errors become failures, not exceptions."""

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """Have a judge write a text. Errors become failures, not exceptions."""


class ReferenceSets(Protocol):
    """The store for reference sets: each set's synthetic answers and corpus, by the set's name."""

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        """Return the set's synthetic answers for a question's references."""

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """Store synthetic answers by reference, durably and without a time to live.

        If the set already has a different answer for a reference, return INVALID_INPUT.
        """

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """Return the entries of the set's corpus, or NOT_PREPARED if the set has no corpus."""

    async def entries_revision(self, reference_set: str) -> str | Failure:
        """Return a string that changes with the entries, or NOT_PREPARED. Do not read the entries."""

    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        """Add entries to the set's corpus, durably. Entries that already exist are ignored.

        If the set is sealed and `seal` is not its seal, return INVALID_INPUT.
        """

    async def seal_of(self, reference_set: str) -> str | Failure:
        """Return the digest that the set's corpus is sealed with, or "" if the set is not sealed."""

    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        """Seal the set's corpus with `digest`, or return INVALID_INPUT if the set has a different seal."""


class SharedValue(NamedTuple):
    """A value that server processes share. `pinned` is True if each process should keep it longer than others."""

    value: bytes
    pinned: bool


class SharedValues(Protocol):
    """Values in memory that the server processes of one machine share. Names have 16 random bytes, such as a hash.

    A value's last byte may change, so it must mean nothing that a score depends on. No call blocks or raises errors.
    """

    def get(self, name: bytes) -> SharedValue | None:
        """Return the value of `name` as it was stored, or None."""

    def put(self, name: bytes, value: bytes, *, pinned: bool) -> None:
        """Store a value of at least one byte, until newer values need its place."""


class Lexicon(Protocol):
    """A lexicon of synonyms."""

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        """Return each word's synonyms, or MODEL_UNAVAILABLE if WordNet's files are missing."""


class ModelIndex(Protocol):
    """An index of all encoders, all graders or all judges."""

    def statuses(self) -> Sequence[ModelStatus]:
        """Return the status of every known model."""

    def status(self, name: str) -> ModelStatus | Failure:
        """Return a model's status ("" means the default model), or MODEL_UNAVAILABLE with the reason."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports that scoring and requests use.

    Attributes:
        of_namespace: A function that returns the ports for a tenant's namespace, with the same models.
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
        """Return the ports for a tenant's namespace. Raise RuntimeError if `of_namespace` is not set."""
        if self.of_namespace is None:
            raise RuntimeError("of_namespace must be set if tenants have namespaces")
        return self.of_namespace(namespace)
