"""Pending texts. If several calls request the same vector at the same time, the encoder computes the vector once.

Calls only subscribe to pending texts, so a cancelled call never cancels other calls' work.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from typing import Final

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.tokenizer import Tokenized  # noqa: TC001 - one way of importing types, everywhere
from gradewire_server.storage.codec import SENTENCE, Blobs, VectorKind

_TIMED_OUT = Failure(Status.TIMEOUT, "the deadline passed before the encoder was done. Allow more time or send less")
_NO_KINDS: Final[frozenset[VectorKind]] = frozenset()
_ABANDONED = Failure(Status.UNAVAILABLE, "all callers that requested this text have disconnected")


class VectorCall:
    """One call and its pending results.

    Args:
        deadline_s: Deadline in `time.monotonic()` seconds; None means no deadline.

    Attributes:
        results: A blob, a failure or None (pending) for each position.
        sources: Each result's `AnswerSource`.
    """

    __slots__ = ("_began_s", "_future", "_pending", "deadline_s", "open", "results", "sources", "timing")

    def __init__(self, size: int, *, deadline_s: float | None) -> None:
        self.results: list[bytes | Failure | None] = [None] * size
        self.sources = bytearray(size)  # AnswerSource.MEMORY is 0
        self.deadline_s = math.inf if deadline_s is None else deadline_s
        self.timing = Timing()
        self.open = True
        self._began_s = math.inf
        self._pending = 0
        self._future: asyncio.Future[None] | None = None

    def ran(self, began_s: float, *, queued_s: float) -> None:
        """Add a finished run to the call's times. All arguments are `time.monotonic()` seconds.

        Queueing ends when the first run starts. Inference ends when the last run ends.
        """
        if began_s < self._began_s:
            self._began_s = began_s
            self.timing.queue_s = max(0.0, began_s - queued_s)
        self.timing.inference_s = time.monotonic() - self._began_s

    def expect(self, count: int) -> None:
        """Expect `count` more results."""
        self._pending += count

    def settle(self, position: int, result: bytes | Failure, source: AnswerSource) -> None:
        """Set one result, unless this result has timed out. The last result ends `wait`."""
        if self.results[position] is not None:
            return  # already timed out
        self.results[position] = result
        self.sources[position] = source
        self._pending -= 1
        if not self._pending:
            self._wake()

    async def wait(self) -> None:
        """Wait for all results. At the deadline, pending results become TIMEOUT failures."""
        timer: asyncio.TimerHandle | None = None
        try:
            if self._pending:
                loop = asyncio.get_running_loop()
                self._future = loop.create_future()
                if self.deadline_s < math.inf:
                    timer = loop.call_at(self.deadline_s, self._expire)  # the loop uses the same clock
                await self._future
        finally:
            self.open = False
            if timer is not None:
                timer.cancel()

    def _expire(self) -> None:
        for position, result in enumerate(self.results):
            if result is None:
                self.results[position] = _TIMED_OUT
        self._pending = 0
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class PendingText:
    """A text to encode. A run computes all vectors that callers requested before the run.

    Attributes:
        name: Name of the sentence entry in memory (`KeySpace.hashes`).
        text: The model input without the prefix.
        token_kinds: The layers whose token vectors callers want.
        length: The number of tokens with special tokens, or 0 before tokenization.
        taken: Kinds of token vectors that the current run computes, or None before the run.
        queued_s: Time when the text was queued, in `time.monotonic()` seconds.
    """

    __slots__ = ("length", "name", "queued_s", "subscribers", "taken", "text", "tier", "token_kinds", "tokens")

    def __init__(self, name: bytes, text: str, tier: Tier) -> None:
        self.name = name
        self.text = text
        self.tier = tier
        self.token_kinds = _NO_KINDS
        self.taken: frozenset[VectorKind] | None = None
        self.tokens: Tokenized | None = None
        self.length = 0
        self.queued_s = 0.0
        self.subscribers: list[tuple[VectorCall, int, VectorKind]] = []

    def subscribe(self, call: VectorCall, position: int, kind: VectorKind) -> None:
        """Add a caller, which must expect one more result."""
        self.subscribers.append((call, position, kind))
        if kind != SENTENCE:
            self.token_kinds |= {kind}

    @property
    def storable(self) -> bool:
        """True if the second level stores all wanted vectors; token vectors are stored only for references."""
        return self.tier is Tier.REFERENCE or (self.tier is Tier.PREDICTION and not self.token_kinds)

    def take(self) -> frozenset[VectorKind]:
        """Start a run, and return the kinds of token vectors to compute. Later kinds need another run. Thread-safe."""
        self.taken = self.token_kinds
        return self.taken

    def is_wanted(self, now_s: float) -> bool:
        """Return True if a caller whose deadline has not passed still waits for the text."""
        for call, _, _ in self.subscribers:  # noqa: SIM110 - without a generator, because this runs for every text
            if call.open and call.deadline_s > now_s:
                return True
        return False

    @property
    def deadline_s(self) -> float:
        """The callers' latest deadline in `time.monotonic()` seconds, or infinity if a caller has no deadline."""
        return max((call.deadline_s for call, _, _ in self.subscribers if call.open), default=-math.inf)


def calls_of(texts: Iterable[PendingText]) -> set[VectorCall]:
    """Return all calls that are subscribed to at least one of the texts."""
    return {call for text in texts for call, _, _ in text.subscribers}


class PendingTexts:
    """All pending texts, by name."""

    def __init__(self) -> None:
        self._texts: dict[bytes, PendingText] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, pending: PendingText) -> bool:
        return self._texts.get(pending.name) is pending

    def join(self, name: bytes, call: VectorCall, position: int, kind: VectorKind, tier: Tier) -> bool:
        """Subscribe to the pending text with this name; return False if there is no such text."""
        pending = self._texts.get(name)
        if pending is None:
            return False
        pending.tier = max(pending.tier, tier)
        pending.subscribe(call, position, kind)
        call.expect(1)
        return True

    def subscribe(
        self,
        call: VectorCall,
        kind: VectorKind,
        missing: Iterable[tuple[bytes, int]],
        texts: Sequence[str],
        tiers: Sequence[Tier],
    ) -> list[PendingText]:
        """Subscribe a call to texts, by name and position; return the texts that were not pending before."""
        known = self._texts
        started = []
        for name, position in missing:
            if name not in known:
                pending = known[name] = PendingText(name, texts[position], tiers[position])
                pending.subscribe(call, position, kind)
                started.append(pending)
            else:
                self.join(name, call, position, kind, tiers[position])
        call.expect(len(started))
        return started

    def complete(self, pending: PendingText, result: Blobs | Failure, source: AnswerSource) -> bool:
        """Deliver a text's result. The first subscriber gets `source`, and all other subscribers get JOINED.

        Returns:
            False if a caller wants vectors that are not in `result`, so that the text needs another run.
        """
        served = False
        waiting: list[tuple[VectorCall, int, VectorKind]] = []
        for call, position, kind in pending.subscribers:
            blob = result if isinstance(result, Failure) else result.get(kind)
            if blob is None:
                waiting.append((call, position, kind))
                continue
            call.settle(position, blob, AnswerSource.JOINED if served else source)
            served = True
        pending.subscribers = waiting
        if not waiting:
            self._texts.pop(pending.name, None)
            return True
        pending.token_kinds = frozenset(kind for _, _, kind in waiting if kind != SENTENCE)
        pending.taken = None
        return False

    def complete_all(
        self, texts: Sequence[PendingText], results: Sequence[Blobs | Failure], sources: Iterable[AnswerSource]
    ) -> list[PendingText]:
        """Deliver the results of a run, like `complete`, and return the texts that need another run."""
        again = []
        for pending, result, source in zip(texts, results, sources, strict=True):
            if len(pending.subscribers) == 1 and not isinstance(result, Failure):  # nearly always
                call, position, kind = pending.subscribers[0]
                blob = result.get(kind)
                if blob is not None:
                    pending.subscribers = []
                    self._texts.pop(pending.name, None)
                    call.settle(position, blob, source)
                    continue
            if not self.complete(pending, result, source):
                again.append(pending)
        return again

    def drop(self, pending: PendingText) -> bool:
        """Remove a text that no caller waits for. Return True if a deadline passed, False if all callers cancelled."""
        timed_out = any(call.open or call.deadline_s < math.inf for call in calls_of((pending,)))
        self.complete(pending, _TIMED_OUT if timed_out else _ABANDONED, AnswerSource.COMPUTED)
        return timed_out
