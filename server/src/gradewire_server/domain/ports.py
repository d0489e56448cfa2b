"""Ports of scoring and requests to the rest of the server: the seam before encoders, judges, stores and lexicon."""

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
    """Sentence vectors of one call.

    Attributes:
        values: float32[n, dims]; rows of failed texts are zero and must not be read.
        truncated: bool[n].
        sources: uint8[n], `AnswerSource` of each text.
        timing: Of the call as a whole.
        failures: By position; empty when all went well.
    """

    values: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokensReply:
    """Token vectors of one call; `items` holds a Failure at the place of a text that failed."""

    items: tuple[TokenVectors | Failure, ...]
    sources: NDArray[np.uint8]
    timing: Timing


@dataclass(frozen=True, slots=True)
class GradeReply:
    """Logits of one call.

    Attributes:
        logits: float32[n]; those of failed items are zero and must not be read.
        truncated: bool[n].
        pieces: int32[n], as in `Grades`.
        sources: uint8[n], `AnswerSource` of each item.
        timing: Of the call as a whole.
        failures: By position; empty when all went well.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    pieces: NDArray[np.int32]
    sources: NDArray[np.uint8]
    timing: Timing
    failures: Mapping[int, Failure] = field(default_factory=dict)


A = TypeVar("A", bound=Choice | Generated)

REPLACED: Final = Failure(Status.UNAVAILABLE, "the model was replaced while this was at work; try again")
"""Where NAME@DIGEST names a model that another one of the name has taken the place of."""


@dataclass(frozen=True, slots=True)
class JudgeReply(Generic[A]):
    """The answer of a judge to one need, or why not; DISK or REDIS: from the verdict cache's second level.

    The `tokenize_s` of its timing is 0 for judges that tokenize elsewhere.
    """

    answer: A | Failure
    source: AnswerSource
    timing: Timing


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One model as the server sees it; fields as gradewire.v1.Model, whose numeric_class is `precision`."""

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
    sees_images: bool = False  # of a judge


class Embeddings(Protocol):
    """Texts to vectors. All calls are safe to cancel and safe to run at once."""

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Sentence vectors of distinct `texts`.

        Never raises for a backend's sake: what failed stands in `failures`.

        Args:
            model: NAME, "" for the default one, or NAME@DIGEST with all 64 digits: then a model that has been replaced
                since fails with UNAVAILABLE, so that rounds of one item never mix two models.
            texts: NFC, not blank.
            tiers: One per text.
            deadline_s: In `time.monotonic()` seconds.
        """

    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        """Approximate vectors, as `EmbedRoughly` describes them; exact ones where there are no others."""

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        """Token vectors of distinct `texts`, of `layer` as in `EmbedTokens`; otherwise as `embed`."""

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        """Token ids of each text as `embed_tokens` numbers them, special ones left out, cut where the model cuts."""


class Graders(Protocol):
    """Question, reference and answer to one number. Safe to cancel and to run at once, as `Embeddings`."""

    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        """Logits of distinct `items`.

        Never raises for a backend's sake: what failed stands in `failures`.
        """


class Judges(Protocol):
    """Language models that grade."""

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """Have a judge choose. Never raises for a backend's sake; equal needs under way at once run once.

        A model that has been replaced, or is not there, fails as in `Embeddings.embed`.
        """

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """Has a judge write; otherwise as `choose`."""


class ReferenceSets(Protocol):
    """What References.Prepare stored by the name of a set: synthetic answers and the corpus."""

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        """Synthetic answers stored for the references of a question in a set."""

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """Stores synthetic answers by reference, durably (no time to live); the same content again changes nothing.

        What the set holds is never replaced: another answer for one of its references is INVALID_INPUT.
        """

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """The questions and references that a set's corpus was prepared with; NOT_PREPARED where there are none."""

    async def entries_revision(self, reference_set: str) -> str | Failure:
        """Differs once `entries` would answer otherwise, and costs next to nothing; NOT_PREPARED as there."""

    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        """Add entries to a set's corpus, durably; one that is there already changes nothing.

        Another seal than the set was sealed with, or none where it has one, is INVALID_INPUT.
        """

    async def seal_of(self, reference_set: str) -> str | Failure:
        """The digest that a set's corpus is to have for ever; "" where nobody has said."""

    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        """Says once for all which digest a set's corpus is to have; INVALID_INPUT where another one was said before."""


class Lexicon(Protocol):
    """Words that mean the same."""

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        """Synonyms by word, of WordNet's files where they are; MODEL_UNAVAILABLE says what to install."""


class ModelIndex(Protocol):
    """Which models there are: one index of encoders, one of graders, one of judges."""

    def statuses(self) -> Sequence[ModelStatus]:
        """All known models; the default one is marked."""

    def status(self, name: str) -> ModelStatus | Failure:
        """One model by name ("" is the default one), or why it cannot be used (MODEL_UNAVAILABLE)."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that scoring and requests ask of the rest of the server.

    Attributes:
        of_namespace: Makes the ports of a tenant's namespace: the same models, and of what is kept only its own.
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
        """The ports of a tenant's namespace.

        Raises:
            RuntimeError: These know no namespaces; sharing what is kept would be worse.
        """
        if self.of_namespace is None:
            raise RuntimeError("these ports know no namespaces")
        return self.of_namespace(namespace)
