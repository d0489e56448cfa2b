"""One model at work: from flights to bodies. How its runs are done is its dispatcher's affair."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.needs import Tier
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.batching.batcher import ClosedError
from gradewire_server.encoders.pending import Call, Flight
from gradewire_server.encoders.run_output import RunOutput
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.storage.codec import encode_bodies, round_vectors
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.storage.telemetry import EngineTelemetry
from gradewire_server.storage.token_codec import encode_tokens
from gradewire_server.storage.vector_kind import SENTENCE, WORDS, Bodies

INLINE_CHARACTERS = 4096
"""Texts of up to this many characters together are tokenized on the event loop, in under 1 ms."""

_CLOSED = Failure(Status.UNAVAILABLE, "the engine is shutting down")
_QUEUE_FULL = Failure(Status.UNAVAILABLE, "the encoder's queue is full; try again later")
_RUN_FAILED = Failure(Status.UNAVAILABLE, "the encoder failed on this text")
_NOT_FINITE = Failure(Status.INTERNAL, "the encoder answered with a vector that is zero or not finite")


class RunError(Exception):
    """A run that failed, with what its callers are told.

    Attributes:
        failure: Result of its texts; without internals.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Dispatcher(Protocol):
    """Runs an encoder's flights in batches, and tells the encoder how they ended."""

    def submit(self, flights: Sequence[Flight], /) -> bool:
        """Takes the flights of one call whole, or none of them: the queue is full or closed."""

    async def close(self) -> None:
        """Fails what is queued with ClosedError, waits for what is running."""


@dataclass(frozen=True, slots=True)
class EncoderParts:
    """A model that is ready to run.

    Attributes:
        model: Its description.
        tokenizer: Its tokenizer.
        spaces: Names of its cache entries.
        dispatcher: Makes what runs it, for the encoder that it is given; called on the event loop.
    """

    model: BuiltModel
    tokenizer: TextTokenizer
    spaces: ModelSpaces
    dispatcher: Callable[["Encoder"], Dispatcher]


class FlightSink(Protocol):
    """Where flights end; called on the event loop, once for every flight that was submitted."""

    def landed(self, encoder: "Encoder", flight: Flight, result: Bodies | Failure) -> None:
        """Takes what `encoder` made of a flight, or why there is nothing."""

    def dropped(self, flight: Flight) -> None:
        """Takes a flight whose turn came when nobody wanted it any more."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run, ready for the cache.

    Attributes:
        bodies: By job; what it was taken for and the sentence.
        padded_tokens: Size times longest text.
        duration_s: From its start to the encoded bodies.
    """

    bodies: list[Bodies | Failure]
    padded_tokens: int
    duration_s: float


class Encoder:
    """A loaded model.

    Args:
        parts: The model.
        sink: Where its flights end.
        telemetry: Where it is counted.
    """

    def __init__(self, parts: EncoderParts, sink: FlightSink, telemetry: EngineTelemetry) -> None:
        model = parts.model
        self.spaces = parts.spaces
        self.layers = model.token_layers
        self._tokenizer = parts.tokenizer
        self._sink = sink
        self._closed: Failure | None = None
        self._dispatcher = parts.dispatcher(self)
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{model.name}")
        self._queue_s = telemetry.queue_s.labels(model.name)
        self._inference_s = telemetry.inference_s.labels(model.name)
        self._tokenize_s = telemetry.tokenize_s.labels(model.name)
        self._batch_texts = telemetry.batch_texts.labels(model.name)
        self._batch_tokens = telemetry.batch_tokens.labels(model.name)
        self._real_tokens = telemetry.tokens.labels(model.name, "real")
        self._padding_tokens = telemetry.tokens.labels(model.name, "padding")

    def submit_small(self, flights: Sequence[Flight]) -> bool:
        """Tokenizes and queues flights at once; False (and nothing done) where that would hold up the event loop."""
        if sum(len(flight.text) for flight in flights) > INLINE_CHARACTERS:
            return False
        self._queue(flights, self._tokenize(flights))
        return True

    async def submit(self, flights: Sequence[Flight]) -> None:
        """Tokenizes flights off the event loop and queues them."""
        if self._closed is not None:
            self._refuse(flights)
            return
        loop = asyncio.get_running_loop()
        self._queue(flights, await loop.run_in_executor(self._tokenizing, self._tokenize, flights))

    async def token_ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Ids of each text as `EmbedTokens` numbers them, special ones left out."""
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return self._ids(texts)
        return await asyncio.get_running_loop().run_in_executor(self._tokenizing, self._ids, texts)

    def _ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        numbered = (
            self._tokenizer.rows(each, special=True).ids for each in self._tokenizer.encode(texts, offsets=True)
        )
        return [ids[ids >= 0] for ids in numbered]

    async def close(self, reason: Failure = _CLOSED) -> None:
        """Fails what is queued with `reason`, waits for what is running."""
        self._closed = reason
        await self._dispatcher.close()
        await asyncio.to_thread(self._tokenizing.shutdown)

    def _tokenize(self, flights: Sequence[Flight]) -> float:
        started_s = time.perf_counter()
        for offsets in (False, True):
            # Of windows nobody wants token vectors; of anything else somebody may before its turn comes.
            group = [flight for flight in flights if bool(flight.token_parts or flight.tier > Tier.WINDOW) is offsets]
            if group:
                tokenized = self._tokenizer.encode([flight.text for flight in group], offsets=offsets)
                for flight, tokens in zip(group, tokenized, strict=True):
                    flight.tokens = tokens
        return time.perf_counter() - started_s

    def _queue(self, flights: Sequence[Flight], tokenize_s: float) -> None:
        self._tokenize_s.observe(tokenize_s)
        for call in _calls(flights):
            call.timing.tokenize_s += tokenize_s
        now_s = time.monotonic()
        for flight in flights:
            flight.queued_s = now_s
        if not self._dispatcher.submit(flights):
            self._refuse(flights)

    def _refuse(self, flights: Sequence[Flight]) -> None:
        for flight in flights:
            self._sink.landed(self, flight, self._closed or _QUEUE_FULL)

    # What follows is for the dispatcher: `read` in any thread, the rest on the event loop.

    def read(self, jobs: Sequence[Flight], output: RunOutput, started_s: float) -> RunResult:
        """Makes bodies of a run's output.

        Args:
            jobs: Taken, in the order of the output's rows.
            output: What the run gave.
            started_s: When the run began, in `time.perf_counter()` seconds.
        """
        tokenized = [job.tokens for job in jobs if job.tokens is not None]
        rounded, good = round_vectors(output.sentences)
        truncated = np.array([tokens.truncated for tokens in tokenized], np.bool_)
        bodies = [
            self._bodies(job, row, body, output) if good[row] else _NOT_FINITE
            for row, (job, body) in enumerate(zip(jobs, encode_bodies(rounded, truncated), strict=True))
        ]
        longest = max(len(tokens.ids) for tokens in tokenized)
        return RunResult(bodies, longest * len(jobs), time.perf_counter() - started_s)

    def layers_for(self, jobs: Sequence[Flight]) -> list[int]:
        """Takes the jobs of a run; layers whose token vectors it has to give, ascending."""
        return sorted({part or self.layers[-1] for job in jobs for part in job.take()})

    def _bodies(self, job: Flight, row: int, sentence: bytes, output: RunOutput) -> Bodies | Failure:
        bodies = {SENTENCE: sentence}
        for part in job.taken or ():
            assert job.tokens is not None  # noqa: S101 - for mypy: it was tokenized before it was taken
            rows = self._tokenizer.rows(job.tokens, special=part != WORDS)
            vectors = output.tokens[part or self.layers[-1]][row, rows.positions]
            body = encode_tokens(sentence, vectors, rows.offsets, rows.ids)
            if body is None:
                return _NOT_FINITE
            bodies[part] = body
        return bodies

    def done(self, jobs: Sequence[Flight], result: RunResult) -> None:
        """Lands the flights of a run."""
        real_tokens = sum(job.length for job in jobs)
        self._inference_s.observe(result.duration_s)
        self._batch_texts.observe(len(jobs))
        self._batch_tokens.observe(result.padded_tokens)
        self._real_tokens.inc(real_tokens)
        self._padding_tokens.inc(result.padded_tokens - real_tokens)
        began_s = time.monotonic() - result.duration_s
        for job in jobs:
            waited_s = max(0.0, began_s - job.queued_s)
            self._queue_s.observe(waited_s)
        for call, queued_s in {call: job.queued_s for job in jobs for call in job.calls()}.items():
            call.ran(began_s, queued_s=queued_s)
        for job, bodies in zip(jobs, result.bodies, strict=True):
            self._sink.landed(self, job, bodies)

    def dropped(self, job: Flight) -> None:
        """Passes on a flight that nobody wanted any more."""
        self._sink.dropped(job)

    def failed(self, jobs: Sequence[Flight], error: Exception) -> None:
        """Lands the flights of a run that raised; its dispatcher has logged why, for the message may hold internals."""
        if isinstance(error, ClosedError):
            self._refuse(jobs)
            return
        failure = error.failure if isinstance(error, RunError) else _RUN_FAILED
        for job in jobs:
            self._sink.landed(self, job, failure)


def token_ids(jobs: Sequence[Flight]) -> list[NDArray[np.int32]]:
    """Ids of tokenized flights, in order."""
    return [job.tokens.ids for job in jobs if job.tokens is not None]


def _calls(flights: Sequence[Flight]) -> set[Call]:
    return {call for flight in flights for call in flight.calls()}
