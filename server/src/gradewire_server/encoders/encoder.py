"""One model at work: tokenizes texts and queues them. How its runs are done is its queue's affair."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.needs import Tier
from gradewire_server.domain.result import Failure, Status
from gradewire_server.domain.turn import current_turn
from gradewire_server.encoders.backend import Encoded, EndedTexts, VectorBackend
from gradewire_server.encoders.batching.errors import QueueFullError, RunError
from gradewire_server.encoders.batching.submission import Ended, Submission
from gradewire_server.encoders.telemetry import ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.waiting_calls import PendingText, VectorCall
from gradewire_server.storage.keys import ModelSpaces

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
class LoadedParts:
    """What an encoder is made of.

    Attributes:
        model: Its description.
        tokenizer: Its tokenizer.
        spaces: Names of its entries in caches.
        queue: Runs it.
        telemetry: Where it is counted.
    """

    model: BuiltModel
    tokenizer: TextTokenizer
    spaces: ModelSpaces
    queue: RunQueue
    telemetry: ModelTelemetry


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
        parts: What it is made of.
        rough: Makes approximate vectors of it, if there is such an encoder; its owner closes both.
        degraded: What works less well than the settings ask for, a line for people; empty: nothing.
    """

    def __init__(self, parts: LoadedParts, *, rough: RoughEncoder | None = None, degraded: str = "") -> None:
        self.model = parts.model
        self.rough = rough
        self.degraded = degraded
        self.spaces = parts.spaces
        self._tokenizer = parts.tokenizer
        self._queue = parts.queue
        self._telemetry = parts.telemetry
        self._closed: Failure | None = None
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{parts.model.name}")

    @override
    async def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[EndedTexts]:
        # Tokenized off the event loop where they are long together.
        if self._closed is not None:
            yield Ended(texts, error=RunError(self._closed))
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
            yield Ended(texts, error=RunError(_QUEUE_FULL))
        except RunError as error:
            yield Ended(texts, error=error)
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
