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
        values: float32[n, dims]; rows of failed texts are zero and must not be read.
        truncated: bool[n].
        sources: uint8[n], the `AnswerSource` of each text.
        timing: The times of the whole call.
        failures: Failures by position.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokensReply:
    """The token vectors of one call; `items` has a Failure at the position of each failed text."""

    items: tuple[TokenVectors | Failure, ...]
    sources: NDArray[np.uint8]
    timing: Timing


@dataclass(frozen=True, slots=True)
class GradeReply:
    """The logits of one call.

    Attributes:
        logits: float32[n]; those of failed items are zero and must not be read.
        truncated: bool[n].
        pieces: int32[n], as in `Grades`.
        sources: uint8[n], the `AnswerSource` of each item.
        timing: The times of the whole call.
        failures: Failures by position.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


A = TypeVar("A", bound=Choice | Generated)

REPLACED: Final = Failure(Status.UNAVAILABLE, "the model was replaced during this request; try again")
"""The failure for NAME@DIGEST if the model of that name now has another digest."""


@dataclass(frozen=True, slots=True)
class JudgeReply(Generic[A]):
    """A judge's answer to one need, or its failure. The sources DISK and REDIS are the verdict cache's second level.

    The `tokenize_s` of its timing is 0 for judges that tokenize elsewhere.
    """

    answer: A | Failure
    source: AnswerSource
    timing: Timing


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model as the server sees it; fields as in gradewire.v1.Model, whose numeric_class is `precision` here."""

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
    """Encoders, which turn texts into vectors. All calls may be cancelled and may run concurrently."""

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return sentence vectors of distinct `texts`; a backend's errors become `failures`, never exceptions.

        Args:
            model: NAME, "" for the default one, or NAME@DIGEST with all 64 digits. With a digest, a model that has been
                replaced fails with UNAVAILABLE, so that the rounds of an item never mix two models.
            texts: NFC, not blank.
            tiers: One for each text.
            deadline_s: In `time.monotonic()` seconds.
        """

    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Return approximate vectors (see `EmbedRoughly`), or exact ones if the model has no others."""

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        """Return token vectors of distinct `texts` for a layer (see `EmbedTokens`); otherwise as `embed`."""

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        """Return the token ids of each text as in `embed_tokens`, without special tokens, cut as the model cuts."""


class Graders(Protocol):
    """Graders, which turn a question, a reference and an answer into one number. Cancellation as in `Embeddings`."""

    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        """Return logits of distinct `items`; a backend's errors become `failures`, never exceptions."""


class Judges(Protocol):
    """Language models that grade."""

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """Have a judge choose. Equal concurrent needs run once, and a backend's errors become failures.

        A model that has been replaced or does not exist fails as in `Embeddings.embed`.
        """

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """Have a judge write; otherwise as `choose`."""


class ReferenceSets(Protocol):
    """The synthetic answers and the corpus that References.Prepare stored under the name of a set."""

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        """Return the synthetic answers that a set has for a question's references."""

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """Store synthetic answers by reference, durably and without a time to live; repeating a call changes nothing.

        A stored answer is never replaced: a different answer for its reference is INVALID_INPUT.
        """

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """Return the questions and references of a set's corpus; NOT_PREPARED if it has none."""

    async def entries_revision(self, reference_set: str) -> str | Failure:
        """Return a cheap value that changes whenever `entries` changes; NOT_PREPARED as there."""

    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        """Add entries to a set's corpus, durably; an existing entry changes nothing.

        A sealed set needs its own `seal`; another or none is INVALID_INPUT.
        """

    async def seal_of(self, reference_set: str) -> str | Failure:
        """Return the digest that a set's corpus is sealed with; "" for a set that is not sealed."""

    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        """Seal a set's corpus with its final digest; INVALID_INPUT if it is sealed with another one."""


class Lexicon(Protocol):
    """A lexicon of synonyms."""

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        """Return WordNet's synonyms of each word; MODEL_UNAVAILABLE, with what to install, without WordNet's files."""


class ModelIndex(Protocol):
    """An index of the models of one kind: encoders, graders or judges."""

    def statuses(self) -> Sequence[ModelStatus]:
        """Return all known models; the default one is marked."""

    def status(self, name: str) -> ModelStatus | Failure:
        """Return a model by name ("" for the default one), or a MODEL_UNAVAILABLE failure with the reason."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports that scoring and requests use.

    Attributes:
        of_namespace: Returns the ports of a tenant's namespace: the same models, but only the tenant's own stored data.
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
            RuntimeError: These ports have no namespaces, so they would share stored data.
        """
        if self.of_namespace is None:
            raise RuntimeError("these ports have no namespaces")
        return self.of_namespace(namespace)
