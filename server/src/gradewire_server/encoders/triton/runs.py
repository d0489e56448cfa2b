"""An encoder's runs as requests to Triton: their deadlines, their failures, and a second try where it may help."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from gradewire_server.encoders.backend import Encoded
from gradewire_server.encoders.batching.dispatcher import RemoteRuns
from gradewire_server.encoders.batching.errors import DeadlinePassedError, RunError
from gradewire_server.encoders.run_reader import RunOutput, RunReader, token_ids
from gradewire_server.encoders.triton.model import TritonModel
from gradewire_server.encoders.triton.telemetry import TritonTelemetry
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.triton.errors import Fault, TritonError

_DEADLINE_SLACK_S: Final = 0.05
"""An inference that ends with a timeout this shortly before its callers' deadline has ended because of that."""
_OUT_OF_TIME: Final = frozenset({Fault.LATE, Fault.QUEUE_TIMEOUT})


class TritonRuns(RemoteRuns[PendingText, Encoded]):
    """An encoder's runs in Triton."""

    def __init__(self, reader: RunReader, model: TritonModel, telemetry: TritonTelemetry, *, timeout_s: float) -> None:
        self._reader = reader
        self._model = model
        self._timeout_s = timeout_s
        self._resending = 0
        self._in_flight = telemetry.in_flight.labels(model.description.name)

    @override
    def refusal(self) -> RunError | None:
        error = self._model.last_error
        return None if self._model.breaker.closed or error is None else RunError(error.meaning.failure)

    @override
    async def run(self, jobs: Sequence[PendingText], /, *, deadline_s: float) -> list[Encoded]:
        started_s = time.perf_counter()
        model = self._model
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        layers = self._reader.layers_for(jobs)
        sent_s = time.monotonic()
        self._in_flight.inc()
        try:
            output = await self._infer(jobs, layers, deadline_s=deadline_s)
        except TritonError as error:
            if error.kind in _OUT_OF_TIME and time.monotonic() > deadline_s - _DEADLINE_SLACK_S:
                model.overdue(sent_s)
                raise DeadlinePassedError from error
            model.note(error)
            raise RunError(error.meaning.failure) from error
        finally:
            self._in_flight.dec()
        model.computed()
        if layers:
            return await asyncio.to_thread(self._reader.read, jobs, output, started_s)
        return self._reader.read(jobs, output, started_s)

    async def _infer(self, jobs: Sequence[PendingText], layers: Sequence[int], *, deadline_s: float) -> RunOutput:
        """Sends a run, once more where it failed: of several instances one may be dead, and nothing is lost by it."""
        model = self._model
        sent_s = time.monotonic()
        try:
            return await self._send(jobs, layers, deadline_s=deadline_s)
        except TritonError as error:
            hopeless = self._resending and not model.computed_since(sent_s)  # one is enough to find out
            if error.kind is not Fault.FAILED or not model.breaker.closed or hopeless:
                raise
            model.failed_once(error)
        self._resending += 1
        try:
            output = await self._send(jobs, layers, deadline_s=deadline_s)
        finally:
            self._resending -= 1
        model.flawed()
        return output

    async def _send(self, jobs: Sequence[PendingText], layers: Sequence[int], *, deadline_s: float) -> RunOutput:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise DeadlinePassedError
        timeout_s = min(left_s, self._timeout_s)
        return await self._model.infer(token_ids(jobs), layers=layers, timeout_s=timeout_s)
