"""Hands scores to sinks and to the caller's function, on a thread of its own."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradewire.integrations.validation.sink import Sink
from gradewire.integrations.validation.step_scores import StepScores, StepState

_JOIN_S = 5.0

_log = logging.getLogger("gradewire.validation")


@dataclass(frozen=True, slots=True)
class _Delivery:
    scores: StepScores
    delivered: Callable[[], None]


class Deliveries:
    """One after the other; what sinks and the function raise is logged and ends nothing.

    Args:
        sinks: Get the scores of SCORED steps.
        callback: Gets those of all steps that have ended.
    """

    def __init__(self, sinks: Sequence[Sink], callback: Callable[[StepScores], None] | None) -> None:
        self._sinks = sinks
        self._callback = callback
        self._queue: queue.SimpleQueue[_Delivery | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="gradewire-validation-callbacks", daemon=True)
        self._thread.start()

    def add(self, scores: StepScores, delivered: Callable[[], None] = lambda: None) -> None:
        """Queues scores; `delivered` is called after everybody has them."""
        self._queue.put(_Delivery(scores, delivered))

    def close(self) -> None:
        """Waits some seconds for what is queued, then closes the sinks."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:  # noqa: BLE001 - of a library that we do not know; it is logged
                _log.exception("%s could not be closed", type(sink).__name__)

    def _run(self) -> None:
        while (delivery := self._queue.get()) is not None:
            if delivery.scores.state is StepState.SCORED:
                for sink in self._sinks:
                    self._call(sink.write, delivery.scores, type(sink).__name__)
            if self._callback is not None:
                self._call(self._callback, delivery.scores, "the callback")
            try:
                delivery.delivered()
            except OSError:
                _log.exception("scores of step %d cannot be kept; it is scored again later", delivery.scores.step)

    @staticmethod
    def _call(function: Callable[[StepScores], None], scores: StepScores, what: str) -> None:
        try:
            function(scores)
        except Exception:  # noqa: BLE001 - whatever the caller's function raises; it is logged
            _log.exception("%s failed over step %d of %s", what, scores.step, scores.name)
