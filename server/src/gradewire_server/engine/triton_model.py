"""One model in Triton: asks for vectors, believes nothing, leaves it alone when it fails again and again."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.config import ATTENTION_MASK, FINGERPRINT_OUTPUT, INPUT_IDS
from gradewire_models.repository import BuiltModel
from gradewire_server.engine.breaker import Breaker
from gradewire_server.engine.dispatcher import DeadlinePassedError
from gradewire_server.engine.encoder import Encoder, RunError, RunResult, token_ids
from gradewire_server.engine.flight import Flight
from gradewire_server.engine.lengths import pad
from gradewire_server.engine.run_output import RunOutput
from gradewire_server.engine.triton_errors import Kind, TritonError
from gradewire_server.engine.triton_link import TritonLink
from gradewire_server.engine.triton_telemetry import TritonTelemetry

_log = logging.getLogger(__name__)

_FAILURES_TO_OPEN: Final = 3
_FAILURE_WINDOW_S: Final = 10.0


class TritonModel:
    """A model of one digest, as Triton runs it.

    Args:
        link: Where Triton is.
        model: Its description here, which Triton's was found to equal.
        probe_ids: A short text, for finding out whether it computes.
        telemetry: Where errors are counted.
        doubted: Told when an answer came from another graph, or Triton lacks the model: look at it now.
    """

    def __init__(
        self,
        link: TritonLink,
        model: BuiltModel,
        *,
        probe_ids: NDArray[np.int32],
        telemetry: TritonTelemetry,
        doubted: Callable[[], None],
    ) -> None:
        self.description = model
        self._link = link
        self._probe_ids = probe_ids
        self._telemetry = telemetry
        self._doubted = doubted
        self.last_error: TritonError | None = None
        self.breaker = Breaker(
            failures_to_open=_FAILURES_TO_OPEN,
            window_s=_FAILURE_WINDOW_S,
            clock=time.monotonic,
            changed=lambda state: telemetry.set_breaker(model.name, state),
        )
        telemetry.set_breaker(model.name, self.breaker.state)

    @property
    def trouble(self) -> str:
        """Why it cannot compute now; empty when it can."""
        if self.breaker.closed or self.last_error is None:
            return ""
        return f"model {self.description.name} cannot compute: {self.last_error.meaning.failure.message}"

    async def infer(
        self, ids: Sequence[NDArray[np.int32]], *, with_tokens: bool, timeout_s: float | None = None
    ) -> RunOutput:
        """Vectors of texts, in one request.

        Args:
            ids: Token ids of each text, at least one.
            with_tokens: Whether token vectors are wanted.
            timeout_s: Longest wait; None for the link's.

        Raises:
            TritonError: It failed, or the answer is not this model's.
        """
        model = self.description
        padded, mask = pad(ids, max_tokens=model.max_tokens)
        outputs = [model.sentence_output, FINGERPRINT_OUTPUT]
        if with_tokens:
            outputs.append(model.tokens_output)
        answer = await self._link.infer(
            model.name,
            {INPUT_IDS: padded, ATTENTION_MASK: mask},
            outputs,
            timeout_s=self._link.timeout_s if timeout_s is None else timeout_s,
        )
        self._check_graph(answer[FINGERPRINT_OUTPUT], len(ids))
        tokens = answer[model.tokens_output] if with_tokens else None
        _check_vectors(answer[model.sentence_output], (len(ids), model.dims))
        if tokens is not None:
            _check_vectors(tokens, (*padded.shape, model.dims))
        return RunOutput(answer[model.sentence_output], tokens)

    async def probe(self) -> None:
        """Has one text computed, though the breaker be open; the outcome decides about it.

        Raises:
            TritonError: It failed.
        """
        self.breaker.probing()
        try:
            await self.infer([self._probe_ids], with_tokens=False)
        except TritonError as error:
            if error.kind is not Kind.QUEUE_FULL:  # a full queue is a sign of life
                self.lost(error)
                raise
        self.breaker.succeeded()

    def lost(self, error: TritonError) -> None:
        """Takes note that it is of no use now, however few inferences have failed."""
        self._log(error)
        self.breaker.open()

    def note(self, error: TritonError) -> None:
        """Counts an inference that failed, and draws the conclusions."""
        self._telemetry.errors.labels(self.description.name, error.kind.value).inc()
        self._log(error)
        if error.meaning.breaks:
            self.breaker.failed()
        if error.kind in {Kind.REPLACED, Kind.NOT_READY}:
            self._doubted()

    def _log(self, error: TritonError) -> None:
        if self.breaker.closed or self.last_error is None or self.last_error.kind is not error.kind:
            _log.warning("model %s in Triton: %s: %s", self.description.name, error.kind.value, error)
        self.last_error = error

    def _check_graph(self, fingerprint: NDArray[Any], rows: int) -> None:
        expected = self.description.fingerprint
        if fingerprint.shape != (rows, 1) or fingerprint.dtype != np.int64:
            raise TritonError(Kind.WRONG_ANSWER, f"fingerprints {fingerprint.dtype}{list(fingerprint.shape)}")
        if not (fingerprint == expected).all():
            found = sorted(set(fingerprint.ravel().tolist()))
            raise TritonError(Kind.REPLACED, f"vectors of the graph {found} instead of {expected}")


class TritonRuns:
    """An encoder's runs in Triton; see `RunHandler`."""

    def __init__(self, encoder: Encoder, model: TritonModel, telemetry: TritonTelemetry, *, timeout_s: float) -> None:
        self._encoder = encoder
        self._model = model
        self._timeout_s = timeout_s
        self._in_flight = telemetry.in_flight.labels(model.description.name)
        self.done = encoder.done
        self.failed = encoder.failed
        self.dropped = encoder.dropped

    def refusal(self) -> RunError | None:
        """Why no run would go well now: the breaker is not closed."""
        error = self._model.last_error
        return None if self._model.breaker.closed or error is None else RunError(error.meaning.failure)

    async def run(self, jobs: Sequence[Flight], /, *, deadline_s: float) -> RunResult:
        """Computes one run."""
        started_s = time.perf_counter()
        model = self._model
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise DeadlinePassedError
        with_tokens = any(job.with_tokens for job in jobs)
        self._in_flight.inc()
        try:
            timeout_s = min(left_s, self._timeout_s)
            output = await model.infer(token_ids(jobs), with_tokens=with_tokens, timeout_s=timeout_s)
        except TritonError as error:
            if error.kind is Kind.LATE and left_s <= self._timeout_s:
                raise DeadlinePassedError from error
            model.note(error)
            raise RunError(error.meaning.failure) from error
        finally:
            self._in_flight.dec()
        model.breaker.succeeded()
        if with_tokens:
            return await asyncio.to_thread(self._encoder.read, jobs, output, started_s)
        return self._encoder.read(jobs, output, started_s)


def _check_vectors(vectors: NDArray[Any], shape: tuple[int, ...]) -> None:
    if vectors.shape != shape or vectors.dtype != np.float32:
        raise TritonError(
            Kind.WRONG_ANSWER, f"vectors {vectors.dtype}{list(vectors.shape)} instead of float32{list(shape)}"
        )
