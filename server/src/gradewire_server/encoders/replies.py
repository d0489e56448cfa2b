"""From settled calls to what the scorer reads."""

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np

from gradewire_server.domain.needs import AnswerSource, TokenVectors
from gradewire_server.domain.ports import EmbedReply, TokensReply
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.encoders.waiting_calls import VectorCall
from gradewire_server.storage.codec import decode_blobs
from gradewire_server.storage.token_codec import decode_tokens

_INLINE_BYTES: Final = 1 << 20
"""Of token vectors: half a millisecond of reading."""


def sentence_reply(call: VectorCall, dims: int) -> EmbedReply:
    """Reply to `Embeddings.embed`; every result of `call` is settled."""
    failures = {i: result for i, result in enumerate(call.results) if isinstance(result, Failure)}
    blobs = [result for result in call.results if isinstance(result, bytes)]
    values, truncated = decode_blobs(blobs, dims)
    if failures:
        good = np.array([isinstance(result, bytes) for result in call.results], np.bool_)
        all_values = np.zeros((len(good), dims), np.float32)
        all_truncated = np.zeros(len(good), np.bool_)
        all_values[good], all_truncated[good] = values, truncated
        values, truncated = all_values, all_truncated
    return EmbedReply(values, truncated, np.frombuffer(call.sources, np.uint8), call.timing, failures)


async def tokens_reply(call: VectorCall, dims: int) -> TokensReply:
    """Reply to `Embeddings.embed_tokens`; every result of `call` is settled. Much of it is read off the event loop."""
    results = [result for result in call.results if result is not None]
    size = sum(len(result) for result in results if isinstance(result, bytes))
    if size > _INLINE_BYTES:
        items = await asyncio.to_thread(_token_vectors, results, dims)
    else:
        items = _token_vectors(results, dims)
    return TokensReply(items, np.frombuffer(call.sources, np.uint8), call.timing)


def _token_vectors(results: Sequence[bytes | Failure], dims: int) -> tuple[TokenVectors | Failure, ...]:
    return tuple(result if isinstance(result, Failure) else decode_tokens(result, dims) for result in results)


def failed_sentences(failure: Failure, size: int) -> EmbedReply:
    """Reply when nothing could be done for any text."""
    return EmbedReply(
        values=np.zeros((size, 0), np.float32),
        truncated=np.zeros(size, np.bool_),
        sources=_computed(size),
        timing=Timing(),
        failures=dict.fromkeys(range(size), failure),
    )


def failed_tokens(failure: Failure, size: int) -> TokensReply:
    """Reply when nothing could be done for any text."""
    return TokensReply((failure,) * size, _computed(size), Timing())


def _computed(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.full(size, AnswerSource.COMPUTED, np.uint8)
