"""A model in Triton. Replies are checked, and repeated failures stop requests."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.config import ATTENTION_MASK, FINGERPRINT_OUTPUT, INPUT_IDS
from gradewire_server.encoders.encoder import RunOutput, pad
from gradewire_server.encoders.prometheus import TritonTelemetry
from gradewire_server.resilience import Breaker
from gradewire_server.triton import OVERLOAD, Fault, TritonClient, TritonError

_log = logging.getLogger(__name__)

_STEPS: Final = ((64, 8), (128, 16), (512, 32))
_LARGEST_STEP: Final = 64
_FAILURES_TO_OPEN: Final = 3
_FAILURE_WINDOW_S: Final = 10.0
PROBE_TIMEOUT_S: Final = 5.0
_LOG_AGAIN_S: Final = 10.0
_DOUBTFUL: Final = frozenset({Fault.REPLACED, Fault.NOT_READY, Fault.LATE, Fault.FAILED})


def padded_tokens(tokens: int, *, max_tokens: int) -> int:
    """Return the length to pad to, one of a few lengths up to `max_tokens`."""
    step = next((step for limit, step in _STEPS if tokens <= limit), _LARGEST_STEP)
    return min(-(-tokens // step) * step, max_tokens)


class TritonModel:
    """A model in Triton with a known digest.

    Args:
        model: The local description, which matches Triton's description.
        probes: Token IDs of short texts with different lengths. Triton does not batch different lengths, so every idle
            instance gets a probe.
        doubted: Function to call if the model should be checked now.
        flawed: Function to call after a failure that no text can have caused.
    """

    def __init__(  # noqa: PLR0913 - the model with its client, and four collaborators by name
        self,
        client: TritonClient,
        model: BuiltModel,
        *,
        probes: Sequence[NDArray[np.int32]],
        telemetry: TritonTelemetry,
        doubted: Callable[[], None],
        flawed: Callable[[], None],
    ) -> None:
        self.description = model
        self._client = client
        self._probes = probes
        self._telemetry = telemetry
        self._doubted = doubted
        self.flawed = flawed
        self._computed_s = self._logged_s = -math.inf
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
        """The reason why the model cannot compute now, or "" if the model works."""
        if self.breaker.closed or self.last_error is None:
            return ""
        return f"model {self.description.name} cannot compute: {self.last_error.meaning.failure.message}"

    async def infer(
        self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], timeout_s: float | None = None
    ) -> RunOutput:
        """Compute sentence vectors, and token vectors for `layers`, in one request.

        If `timeout_s` is None, use the client's timeout.

        Raises:
            TritonError: The request failed, or a different model answered.
        """
        model = self.description
        padded, mask = pad(ids, padded_tokens(max(map(len, ids)), max_tokens=model.max_tokens))
        outputs = [model.sentence_output, FINGERPRINT_OUTPUT, *map(model.token_output, layers)]
        answer = await self._client.infer(
            model.name,
            {INPUT_IDS: padded, ATTENTION_MASK: mask},
            outputs,
            timeout_s=self._client.timeout_s if timeout_s is None else timeout_s,
        )
        self._check_graph(answer[FINGERPRINT_OUTPUT], len(ids))
        tokens = {layer: answer[model.token_output(layer)] for layer in layers}
        _check_vectors(answer[model.sentence_output], (len(ids), model.dims))
        for vectors in tokens.values():
            _check_vectors(vectors, (*padded.shape, model.dims))
        return RunOutput(answer[model.sentence_output], tokens)

    async def probe(self) -> bool:
        """Compute a few short texts, even if the breaker is open, and update the breaker.

        Returns:
            False if a probe failed although other probes succeeded.

        Raises:
            TritonError: No probe succeeded, or Triton answered with a graph that is not this model's.
        """
        # Send only one probe to a failing model, because each failure may delay other requests.
        probes = self._probes if self.breaker.closed else self._probes[:1]
        self.breaker.probing()
        timeout_s = min(self._client.timeout_s, PROBE_TIMEOUT_S)
        outcomes = await asyncio.gather(*(self._probe(ids, timeout_s) for ids in probes))
        errors = [error for error in outcomes if error is not None]
        replaced = [error for error in errors if error.kind is Fault.REPLACED]
        if replaced or len(errors) == len(probes):
            worst = (replaced or errors)[0]
            if worst.kind not in OVERLOAD:
                self.lost(worst)
            raise worst
        self.breaker.succeeded()
        failed = [error for error in errors if error.kind is Fault.FAILED]
        for error in failed:
            self._log(error)
        return not failed

    async def _probe(self, ids: NDArray[np.int32], timeout_s: float) -> TritonError | None:
        try:
            await self.infer([ids], layers=(), timeout_s=timeout_s)
        except TritonError as error:
            if error.kind is Fault.FAILED:
                self.flawed()
            return error
        return None

    def lost(self, error: TritonError) -> None:
        """Mark the model as unusable now, regardless of the number of failures."""
        self._log(error)
        self.breaker.open()

    def computed(self) -> None:
        """Record a successful run."""
        self._computed_s = time.monotonic()
        self.breaker.succeeded()

    def computed_since(self, since_s: float) -> bool:
        """Return True if a run has succeeded since `since_s`."""
        return self._computed_s > since_s

    def overdue(self, sent_s: float) -> None:
        """Request a check of the model if no run has succeeded since `sent_s`, because the model may hang."""
        if not self.computed_since(sent_s):
            self._doubted()

    def note(self, error: TritonError, *, again: bool = False) -> None:
        """Count a failed inference. Also update the breaker, unless the inference is sent again."""
        self._telemetry.errors.labels(self.description.name, error.kind.value).inc()
        self._log(error)
        if error.meaning.breaks and not again:
            self.breaker.failed()
        if error.kind in _DOUBTFUL:
            self._doubted()

    def _log(self, error: TritonError) -> None:
        now_s = time.monotonic()
        known = self.last_error is not None and self.last_error.kind is error.kind
        if not known or now_s > self._logged_s + _LOG_AGAIN_S:
            _log.warning("model %s in Triton: %s: %s", self.description.name, error.kind.value, error)
            self._logged_s = now_s
        self.last_error = error

    def _check_graph(self, fingerprint: NDArray[Any], rows: int) -> None:
        expected = self.description.fingerprint
        if fingerprint.shape != (rows, 1) or fingerprint.dtype != np.int64:
            raise TritonError(Fault.WRONG_ANSWER, f"fingerprints {fingerprint.dtype}{list(fingerprint.shape)}")
        if not (fingerprint == expected).all():
            found = sorted(set(fingerprint.ravel().tolist()))
            raise TritonError(Fault.REPLACED, f"the vectors are from graph {found}, not from graph {expected}")


def _check_vectors(vectors: NDArray[Any], shape: tuple[int, ...]) -> None:
    if vectors.shape != shape or vectors.dtype != np.float32:
        found = f"the vectors are {vectors.dtype}{list(vectors.shape)}, not float32{list(shape)}"
        raise TritonError(Fault.WRONG_ANSWER, found)
