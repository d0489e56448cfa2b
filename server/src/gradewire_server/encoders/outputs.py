"""Outputs of a model: from a run to blobs, and from settled calls to the replies that the scorer reads."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, TokenVectors
from gradewire_server.domain.ports import EmbedReply, GradeReply, TokensReply
from gradewire_server.encoders.encoder import Encoded
from gradewire_server.encoders.pending import PendingText, VectorCall
from gradewire_server.encoders.prometheus import ModelTelemetry
from gradewire_server.encoders.tokenizer import GraderTokenizer, TextTokenizer, joined
from gradewire_server.storage.codec import (
    SENTENCE,
    WORDS,
    Blobs,
    decode_blobs,
    decode_logits,
    decode_tokens,
    encode_blobs,
    encode_logit,
    encode_tokens,
    round_vectors,
)

_NOT_FINITE: Final = Failure(Status.INTERNAL, "the encoder answered with a vector that is zero or not finite")

_LOGIT_NOT_FINITE: Final = Failure(Status.INTERNAL, "the grader answered with a logit that is not finite")

_WARM_UP: Final = ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it")

_INLINE_BYTES: Final = 1 << 20
"""Of token vectors: half a millisecond of reading."""

_NOTHING = encode_logit(0.0, truncated=False, pieces=1)


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Vectors of one run.

    Attributes:
        sentences: float32[n, dims], of unit length; of a grader its logits, [n, 1].
        tokens: float32[n, padded tokens, dims] by layer, 1 for the first, of those that were asked for; rows of padding
            are unspecified.
    """

    sentences: NDArray[np.float32]
    tokens: Mapping[int, NDArray[np.float32]]


class RunReader:
    """Reads the runs of one model; in any thread.

    Args:
        tokenizer: The model's.
        layers: Whose token vectors the model gives.
        telemetry: Where runs are counted.
    """

    def __init__(self, tokenizer: TextTokenizer, layers: Sequence[int], telemetry: ModelTelemetry) -> None:
        self._tokenizer = tokenizer
        self._layers = layers
        self._telemetry = telemetry

    def layers_for(self, texts: Sequence[PendingText]) -> list[int]:
        """Takes the texts of a run; layers whose token vectors it has to give, ascending."""
        return sorted({kind or self._layers[-1] for text in texts for kind in text.take()})

    def read(self, texts: Sequence[PendingText], output: RunOutput, started_s: float) -> list[Encoded]:
        """Makes blobs of a run's output.

        Args:
            texts: Taken, in the order of the output's rows.
            output: What the run gave.
            started_s: When the run began, in `time.perf_counter()` seconds.
        """
        blobs = self.make_blobs(texts, output)
        rows = token_ids(texts)
        padded_tokens = len(rows) * max(map(len, rows))
        duration_s = time.perf_counter() - started_s
        began_s = time.monotonic() - duration_s
        self._telemetry.ran(texts, padded_tokens=padded_tokens, began_s=began_s, duration_s=duration_s)
        return [Encoded(each, began_s=began_s) for each in blobs]

    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        """Blobs of each text, or why there are none; arguments as of `read`."""
        tokenized = [text.tokens for text in texts if text.tokens is not None]
        rounded, good = round_vectors(output.sentences)
        truncated = np.array([tokens.truncated for tokens in tokenized], np.bool_)
        return [
            self._blobs(text, row, blob, output) if good[row] else _NOT_FINITE
            for row, (text, blob) in enumerate(zip(texts, encode_blobs(rounded, truncated), strict=True))
        ]

    def _blobs(self, text: PendingText, row: int, sentence: bytes, output: RunOutput) -> Blobs | Failure:
        blobs = {SENTENCE: sentence}
        for kind in text.taken or ():
            assert text.tokens is not None  # noqa: S101 - for mypy: it was tokenized before it was taken
            rows = self._tokenizer.rows(text.tokens, special=kind != WORDS)
            vectors = output.tokens[kind or self._layers[-1]][row, rows.positions]
            blob = encode_tokens(sentence, vectors, rows.offsets, rows.ids)
            if blob is None:
                return _NOT_FINITE
            blobs[kind] = blob
        return blobs


def token_ids(texts: Sequence[PendingText]) -> list[NDArray[np.int32]]:
    """Ids of tokenized texts, in order: a row for each, or for each of its pieces."""
    return [row for text in texts if text.tokens is not None for row in text.tokens.rows]


class GraderRunReader(RunReader):
    """Reads the runs of one grader; in any thread."""

    @override
    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        logits = output.sentences[:, 0]
        made: list[Blobs | Failure] = []
        row = 0
        for text in texts:
            assert text.tokens is not None  # noqa: S101 - for mypy: it was tokenized before it was taken
            pieces = len(text.tokens.ends)
            logit = float(logits[row : row + pieces].max())
            row += pieces
            blob = encode_logit(logit, truncated=text.tokens.truncated, pieces=pieces)
            made.append({SENTENCE: blob} if np.isfinite(logit) else _LOGIT_NOT_FINITE)
        return made


def open_tokenizer(model: BuiltModel) -> TextTokenizer:
    """The tokenizer of a model."""
    if model.kind == "grader":
        return GraderTokenizer(model.tokenizer_path)
    return TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix)


def run_reader(model: BuiltModel, tokenizer: TextTokenizer, telemetry: ModelTelemetry) -> RunReader:
    """What makes blobs of a model's runs."""
    kind = GraderRunReader if model.kind == "grader" else RunReader
    return kind(tokenizer, model.token_layers, telemetry)


def warm_up_ids(model: BuiltModel, tokenizer: TextTokenizer) -> list[NDArray[np.int32]]:
    """Token ids of a short and of a longer text, for runs that nobody waits for."""
    texts = [joined((text, text, text)) for text in _WARM_UP] if model.kind == "grader" else _WARM_UP
    return [text.ids for text in tokenizer.encode(texts)]


def failures_of(call: VectorCall) -> dict[int, Failure]:
    """Return the failures of a settled call by position."""
    return {position: result for position, result in enumerate(call.results) if isinstance(result, Failure)}


def failed_call(failure: Failure, size: int) -> VectorCall:
    """Return a settled call in which nothing could be done for any text."""
    call = VectorCall(size, deadline_s=None)
    call.results = [failure] * size
    call.sources = bytearray([AnswerSource.COMPUTED] * size)
    return call


def sentence_reply(call: VectorCall, dims: int, failures: Mapping[int, Failure]) -> EmbedReply:
    """Return the reply to `Embeddings.embed`, from a settled call with its `failures_of`."""
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
    """Return the reply to `Embeddings.embed_tokens`, from a settled call; much of it is read off the event loop."""
    results = [result for result in call.results if result is not None]
    size = sum(len(result) for result in results if isinstance(result, bytes))
    if size > _INLINE_BYTES:
        items = await asyncio.to_thread(_token_vectors, results, dims)
    else:
        items = _token_vectors(results, dims)
    return TokensReply(items, np.frombuffer(call.sources, np.uint8), call.timing)


def _token_vectors(results: Sequence[bytes | Failure], dims: int) -> tuple[TokenVectors | Failure, ...]:
    return tuple(result if isinstance(result, Failure) else decode_tokens(result, dims) for result in results)


def grade_reply(call: VectorCall, failures: Mapping[int, Failure]) -> GradeReply:
    """Return the reply to `Graders.grade`, from a settled call with its `failures_of`."""
    blobs = [result if isinstance(result, bytes) else _NOTHING for result in call.results]
    return GradeReply(*decode_logits(blobs), np.frombuffer(call.sources, np.uint8), call.timing, failures)
