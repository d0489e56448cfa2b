"""One model at work: tokenize texts and queue them; and the protocols of its backend and of its source."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.caller import current_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.batcher import FinishedJobs, QueueFullError, RunError, Submission
from gradewire_server.encoders.pending import PendingText, VectorCall
from gradewire_server.encoders.prometheus import ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.storage.codec import Blobs, ModelSpaces


class Encoded(NamedTuple):
    """What one text was made into.

    Attributes:
        blobs: All that was asked for when its turn came, or why there is nothing.
        source: Where it came from.
        began_s: When the run began that computed it, `time.monotonic()` seconds; infinity where there was none.
    """

    blobs: Blobs | Failure
    source: AnswerSource = AnswerSource.COMPUTED
    began_s: float = math.inf


FinishedTexts: TypeAlias = FinishedJobs[PendingText, Encoded]


class VectorBackend(Protocol):
    """Texts to vectors. Lives on one event loop."""

    def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[FinishedTexts]:
        """Works texts out, each of which ends once; what is wanted of them may grow until their turn comes."""


INLINE_CHARACTERS: Final = 4096
"""Texts of up to this many characters together are tokenized on the event loop, in under 1 ms."""
SHUTTING_DOWN: Final = Failure(Status.UNAVAILABLE, "the engine is shutting down")
_QUEUE_FULL: Final = Failure(Status.UNAVAILABLE, "the encoder's queue is full; try again later")


class RunQueue(Protocol):
    """Runs tokenized texts in batches."""

    def submit(self, texts: Sequence[PendingText], /) -> Submission[PendingText, Encoded]:
        """Takes the texts of one call whole; what is returned tells how they end.

        Raises:
            QueueFullError: None was taken, for the queue is full.
            RunError: None was taken: it is closed, or no run would go well now.
        """

    async def close(self, reason: Failure) -> None:
        """Fails what is queued with `reason`, waits for what is running."""


@dataclass(frozen=True, slots=True)
class RoughEncoder:
    """What makes approximate vectors of a model.

    Attributes:
        encoder: Runs it; its entries in caches have names of their own.
        cosine_error: See `ModelMetadata.rough_cosine_error`.
        remark: What it does, a line for people.
    """

    encoder: "Encoder"
    cosine_error: float
    remark: str


class Encoder(VectorBackend):
    """A loaded model.

    Args:
        model: Its description.
        tokenizer: Its tokenizer.
        spaces: Names of its entries in caches.
        queue: Runs it.
        telemetry: Where it is counted.
        rough: Makes approximate vectors of it, if there is such an encoder; its owner closes both.
        degraded: What works less well than the settings ask for, a line for people; empty: nothing.
    """

    def __init__(  # noqa: PLR0913 - the five parts of one model, and two more by name
        self,
        model: BuiltModel,
        tokenizer: TextTokenizer,
        spaces: ModelSpaces,
        queue: RunQueue,
        telemetry: ModelTelemetry,
        *,
        rough: RoughEncoder | None = None,
        degraded: str = "",
    ) -> None:
        self.model = model
        self.rough = rough
        self.degraded = degraded
        self.spaces = spaces
        self._tokenizer = tokenizer
        self._queue = queue
        self._telemetry = telemetry
        self._closed: Failure | None = None
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{model.name}")

    @override
    async def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[FinishedTexts]:
        # Tokenized off the event loop where they are long together.
        if self._closed is not None:
            yield FinishedJobs(texts, error=RunError(self._closed))
            return
        if sum(len(text.text) for text in texts) <= INLINE_CHARACTERS:
            tokenize_s = self._tokenize(texts)
        else:
            loop = asyncio.get_running_loop()
            tokenize_s = await loop.run_in_executor(self._tokenizing, self._tokenize, texts)
        self._telemetry.tokenize_s.observe(tokenize_s)
        for call in _calls(texts):
            call.timing.tokenize_s += tokenize_s
        now_s = time.monotonic()
        turn = current_turn()
        for text in texts:
            text.queued_s = now_s
        turn.queued(sum(text.length for text in texts))
        try:
            submission = self._queue.submit(texts)
        except QueueFullError:
            yield FinishedJobs(texts, error=RunError(_QUEUE_FULL))
        except RunError as error:
            yield FinishedJobs(texts, error=error)
        else:
            async for part in submission:
                if part.results is not None:
                    turn.computed(sum(text.length for text in part.jobs))
                yield part

    async def token_ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Ids of each text as `EmbedTokens` numbers them, special ones left out."""
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return self._ids(texts)
        return await asyncio.get_running_loop().run_in_executor(self._tokenizing, self._ids, texts)

    async def close(self, reason: Failure = SHUTTING_DOWN) -> None:
        """Fails what is queued with `reason`, waits for what is running."""
        self._closed = reason
        await self._queue.close(reason)
        await asyncio.to_thread(self._tokenizing.shutdown)

    def _ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        numbered = (
            self._tokenizer.rows(each, special=True).ids for each in self._tokenizer.encode(texts, offsets=True)
        )
        return [ids[ids >= 0] for ids in numbered]

    def _tokenize(self, texts: Sequence[PendingText]) -> float:
        started_s = time.perf_counter()
        for offsets in (False, True):
            # Of windows nobody wants token vectors; of anything else somebody may before its turn comes.
            group = [text for text in texts if bool(text.token_kinds or text.tier > Tier.WINDOW) is offsets]
            if group:
                tokenized = self._tokenizer.encode([text.text for text in group], offsets=offsets)
                for text, tokens in zip(group, tokenized, strict=True):
                    text.tokens = tokens
        return time.perf_counter() - started_s


def _calls(texts: Sequence[PendingText]) -> set[VectorCall]:
    return {call for text in texts for call in text.calls()}


class NotNowError(Exception):
    """A model is described here and cannot be used now; its source has it loaded again as soon as it can be.

    Attributes:
        model: The model.
        failure: What callers are told. MODEL_UNAVAILABLE: as things stand it is the wrong model; UNAVAILABLE: nobody
            knows yet.
    """

    def __init__(self, model: BuiltModel, failure: Failure) -> None:
        super().__init__(failure.message)
        self.model = model
        self.failure = failure


class UnusableError(Exception):
    """A model is whole and yet of no use here, until it is built again; the message is for callers."""


class ModelSource(Protocol):
    """A source of models; used on one event loop."""

    def listed(self) -> Sequence[BuiltModel]:
        """Models that are described here; broken ones are left out. Reads small files."""

    def describe(self, name: str) -> BuiltModel:
        """One model; raises ModelNotBuiltError or ModelBrokenError."""

    async def open(self, name: str, *, namespace: str) -> Encoder:
        """Gets a model ready to run.

        Args:
            name: Of the model.
            namespace: See `CacheConfig.namespace`.

        Raises:
            ModelError: It is not here, or is broken.
            UnusableError: It is here, and nothing for this source.
            NotNowError: It is here, and cannot be used now.
        """

    def trouble(self, name: str) -> str:
        """Why a model that was opened cannot compute now; empty when it can."""

    async def close(self) -> None:
        """Gives back what it holds; all encoders are closed by then."""
