"""A loaded model, which tokenizes texts, queues them and reads each run's output."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.caller import current_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.encoders.batcher import FinishedJobs, JobQueue, QueueFullError, RunError
from gradewire_server.encoders.pending import PendingText, calls_of
from gradewire_server.encoders.prometheus import ModelTelemetry
from gradewire_server.encoders.tokenizer import GraderTokenizer, TextTokenizer, joined
from gradewire_server.storage import codec
from gradewire_server.storage.codec import SENTENCE, WORDS, Blobs, ModelSpaces

INLINE_CHARACTERS: Final = 4096
"""The maximum number of characters that a call tokenizes on the event loop. Tokenizing them takes less than 1 ms."""
SHUTTING_DOWN: Final = Failure(Status.UNAVAILABLE, "the engine is shutting down")
_QUEUE_FULL: Final = Failure(Status.UNAVAILABLE, "the encoder's queue is full. Try again later")
_NOT_FINITE: Final = Failure(Status.INTERNAL, "the encoder returned a vector that is zero or not finite")
_LOGIT_NOT_FINITE: Final = Failure(Status.INTERNAL, "the grader returned a logit that is not finite")
_WARM_UP: Final = ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it")


class Encoded(NamedTuple):
    """One text's vectors.

    Attributes:
        blobs: The blobs that callers requested before the text's run started, or the failure.
        began_s: Start of the run in `time.monotonic()` seconds, or infinity if there was no run.
    """

    blobs: Blobs | Failure
    source: AnswerSource = AnswerSource.COMPUTED
    began_s: float = math.inf


FinishedTexts: TypeAlias = FinishedJobs[PendingText, Encoded]


@dataclass(frozen=True, slots=True)
class RoughEncoder:
    """An encoder for a model's approximate vectors, with separate cache entries."""

    encoder: "Encoder"
    cosine_error: float
    note: str


class Encoder:
    """A loaded model. For one event loop only.

    Args:
        rough: An encoder for the model's approximate vectors. `close` does not close this encoder.
        degraded: A message for users about a setting that has no effect here, or "".
    """

    def __init__(  # noqa: PLR0913 - five parts of one model, and two options by name
        self,
        model: BuiltModel,
        tokenizer: TextTokenizer,
        spaces: ModelSpaces,
        queue: JobQueue[PendingText, Encoded],
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

    async def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[FinishedTexts]:
        """Encode texts and yield each text once. Until a text's run starts, callers may request more of its vectors."""
        if self._closed is not None:
            yield FinishedJobs(texts, error=RunError(self._closed))
            return
        if sum([len(text.text) for text in texts]) <= INLINE_CHARACTERS:
            tokenize_s = self._tokenize(texts)
        else:
            loop = asyncio.get_running_loop()
            tokenize_s = await loop.run_in_executor(self._tokenizing, self._tokenize, texts)
        self._telemetry.tokenize_s.observe(tokenize_s)
        for call in calls_of(texts):
            call.timing.tokenize_s += tokenize_s
        now_s = time.monotonic()
        turn = current_turn()
        for text in texts:
            text.queued_s = now_s
        turn.queued(sum([text.length for text in texts]))
        try:
            submission = self._queue.submit(texts)
        except QueueFullError:
            yield FinishedJobs(texts, error=RunError(_QUEUE_FULL))
        except RunError as error:
            yield FinishedJobs(texts, error=error)
        else:
            async for part in submission:
                if part.results is not None:
                    turn.computed(sum([text.length for text in part.jobs]))
                yield part

    async def token_ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return each text's token IDs, without special tokens."""
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return self._ids(texts)
        return await asyncio.get_running_loop().run_in_executor(self._tokenizing, self._ids, texts)

    async def close(self, reason: Failure = SHUTTING_DOWN) -> None:
        """Fail queued texts with `reason` and wait for running texts."""
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
        plain = [text for text in texts if not text.token_kinds]
        groups = [(plain, False)]
        if len(plain) < len(texts):
            groups.append(([text for text in texts if text.token_kinds], True))
        for group, offsets in groups:
            tokenized = self._tokenizer.encode([text.text for text in group], offsets=offsets)
            for text, tokens in zip(group, tokenized, strict=True):
                text.tokens, text.length = tokens, len(tokens.ids)
        return time.perf_counter() - started_s


@dataclass(frozen=True, slots=True)
class RunOutput:
    """One run's vectors.

    Attributes:
        sentences: float32[n, dims], vectors of unit length; for a grader, float32[n, 1], logits.
        tokens: float32[n, padded tokens, dims] by layer, from 1. Padding has arbitrary vectors.
    """

    sentences: NDArray[np.float32]
    tokens: Mapping[int, NDArray[np.float32]]


class RunReader:
    """A reader of one model's output. Thread-safe."""

    def __init__(self, tokenizer: TextTokenizer, layers: Sequence[int], telemetry: ModelTelemetry) -> None:
        self._tokenizer = tokenizer
        self._layers = layers
        self._telemetry = telemetry

    def layers_for(self, texts: Sequence[PendingText]) -> list[int]:
        """Take texts for a run, and return the layers whose token vectors are needed, in ascending order."""
        layers = set()
        for text in texts:
            if kinds := text.take():
                layers |= {kind or self._layers[-1] for kind in kinds}
                if text.tokens is None or text.tokens.kept is None:
                    # A caller requested token vectors, which need offsets, after the text was tokenized.
                    (text.tokens,) = self._tokenizer.encode([text.text], offsets=True)
        return sorted(layers)

    def read(self, texts: Sequence[PendingText], output: RunOutput, started_s: float) -> list[Encoded]:
        """Convert a run's output to blobs. `texts` are in the order of the output's rows.

        `started_s` is the run's start in `time.perf_counter()` seconds.
        """
        blobs = self.make_blobs(texts, output)
        rows = token_ids(texts)
        padded_tokens = len(rows) * max(map(len, rows))
        duration_s = time.perf_counter() - started_s
        began_s = time.monotonic() - duration_s
        self._telemetry.ran(texts, padded_tokens=padded_tokens, began_s=began_s, duration_s=duration_s)
        return [Encoded(each, began_s=began_s) for each in blobs]

    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        """Return each text's blobs or failure."""
        tokenized = [text.tokens for text in texts if text.tokens is not None]
        rounded, good = codec.round_vectors(output.sentences)
        truncated = np.array([tokens.truncated for tokens in tokenized], np.bool_)
        encoded = codec.encode_blobs(rounded, truncated)
        if good.all() and not any(text.taken for text in texts):
            return [{SENTENCE: blob} for blob in encoded]
        return [
            self._blobs(text, row, blob, output) if good[row] else _NOT_FINITE
            for row, (text, blob) in enumerate(zip(texts, encoded, strict=True))
        ]

    def _blobs(self, text: PendingText, row: int, sentence: bytes, output: RunOutput) -> Blobs | Failure:
        blobs = {SENTENCE: sentence}
        for kind in text.taken or ():
            assert text.tokens is not None  # noqa: S101 - for mypy: a taken text is tokenized
            rows = self._tokenizer.rows(text.tokens, special=kind != WORDS)
            vectors = output.tokens[kind or self._layers[-1]][row, rows.positions]
            blob = codec.encode_tokens(sentence, vectors, rows.offsets, rows.ids)
            if blob is None:
                return _NOT_FINITE
            blobs[kind] = blob
        return blobs


def pad(ids: Sequence[NDArray[np.int32]], width: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return padded token IDs and the attention mask, both int64[n, width], for at least one text.

    If `width` is 0, use the longest text's length.
    """
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    mask = np.arange(width or lengths.max()) < lengths[:, None]
    padded = np.zeros(mask.shape, np.int64)
    padded[mask] = np.concatenate(ids)
    return padded, mask.astype(np.int64)


def token_ids(texts: Sequence[PendingText]) -> list[NDArray[np.int32]]:
    """Return the texts' token IDs: one row per text or, for a grader, one row per piece of a text."""
    rows: list[NDArray[np.int32]] = []
    for text in texts:
        if (tokens := text.tokens) is not None:
            rows += tokens.rows if tokens.ends else (tokens.ids,)
    return rows


class GraderRunReader(RunReader):
    """A reader of a grader's output. Thread-safe."""

    @override
    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        logits = output.sentences[:, 0]
        made: list[Blobs | Failure] = []
        row = 0
        for text in texts:
            assert text.tokens is not None  # noqa: S101 - for mypy: a taken text is tokenized
            pieces = len(text.tokens.ends)
            logit = float(logits[row : row + pieces].max())
            row += pieces
            blob = codec.encode_logit(logit, truncated=text.tokens.truncated, pieces=pieces)
            made.append({SENTENCE: blob} if np.isfinite(logit) else _LOGIT_NOT_FINITE)
        return made


def open_tokenizer(model: BuiltModel) -> TextTokenizer:
    """Return a model's tokenizer."""
    if model.kind == "grader":
        return GraderTokenizer(model.tokenizer_path)
    return TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix, suffix=model.suffix)


def run_reader(model: BuiltModel, tokenizer: TextTokenizer, telemetry: ModelTelemetry) -> RunReader:
    """Return a reader of a model's output."""
    kind = GraderRunReader if model.kind == "grader" else RunReader
    return kind(tokenizer, model.token_layers, telemetry)


def warm_up_ids(model: BuiltModel, tokenizer: TextTokenizer) -> list[NDArray[np.int32]]:
    """Return the token IDs of a short and a longer text, for warm-up runs."""
    texts = [joined((text, text, text)) for text in _WARM_UP] if model.kind == "grader" else _WARM_UP
    return [text.ids for text in tokenizer.encode(texts)]
