"""Pending texts: a vector that several calls want at the same time is worked out once.

A pending text belongs to no call; calls only subscribe. So a cancelled call never takes work away from another one, and
a text that nobody waits for any more is dropped when its turn comes. A call costs one future, however many texts it
has.
"""

import asyncio
import math
import time
from collections.abc import Iterable

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.tokenizer import Tokenized  # noqa: TC001 - one way of importing types, everywhere
from gradewire_server.storage.codec import SENTENCE, Blobs, VectorKind

_TIMED_OUT = Failure(Status.TIMEOUT, "the deadline passed before the encoder was done; allow more time or send less")
_ABANDONED = Failure(Status.UNAVAILABLE, "everyone who asked for this text went away")


class VectorCall:
    """One call and what it still waits for.

    Args:
        deadline_s: In `time.monotonic()` seconds; None for none.

    Attributes:
        results: By position: a blob, a failure, or None while it is open.
        sources: By position, `AnswerSource` of each result.
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
        """Note a run that is over now: queueing ends where the first run begins, inference where the last one ends.

        Args:
            began_s: When the run began, `time.monotonic()` seconds.
            queued_s: When this call's texts in it were queued, likewise.
        """
        if began_s < self._began_s:
            self._began_s = began_s
            self.timing.queue_s = max(0.0, began_s - queued_s)
        self.timing.inference_s = time.monotonic() - self._began_s

    def expect(self) -> None:
        """Count one result that will be settled later."""
        self._pending += 1

    def settle(self, position: int, result: bytes | Failure, source: AnswerSource) -> None:
        """Take one result; the last one wakes the waiter."""
        if self.results[position] is not None:
            return  # timed out before
        self.results[position] = result
        self.sources[position] = source
        self._pending -= 1
        if not self._pending:
            self._wake()

    async def wait(self) -> None:
        """Return when every result is there; at the deadline open ones become TIMEOUT."""
        timer: asyncio.TimerHandle | None = None
        try:
            if self._pending:
                loop = asyncio.get_running_loop()
                self._future = loop.create_future()
                if self.deadline_s < math.inf:
                    timer = loop.call_at(self.deadline_s, self._expire)  # the loop has the same clock
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
    """One text on its way to vectors: all that is wanted of it comes from one pass, where it is wanted in time.

    Attributes:
        name: In-process name of its sentence's entry (`KeySpace.hashes`).
        text: The model input without prefix.
        taken: Of these, what the run at work was asked for; None before it began.
        tokens: The text as the model reads it, once tokenized.
        queued_s: When it entered the encoder's queue, `time.monotonic()` seconds.
    """

    __slots__ = ("kinds", "name", "queued_s", "subscribers", "taken", "text", "tier", "tokens")

    def __init__(self, name: bytes, text: str, tier: Tier) -> None:
        self.name = name
        self.text = text
        self.tier = tier
        self.kinds: frozenset[VectorKind] = frozenset()
        self.taken: frozenset[VectorKind] | None = None
        self.tokens: Tokenized | None = None
        self.queued_s = 0.0
        self.subscribers: list[tuple[VectorCall, int, VectorKind]] = []

    @property
    def token_kinds(self) -> frozenset[VectorKind]:
        """Layers whose token vectors are wanted."""
        return self.kinds - {SENTENCE}

    @property
    def storable(self) -> bool:
        """Whether a second level may hold all that is wanted: token vectors are kept of references alone."""
        return self.tier is Tier.REFERENCE or (self.tier is Tier.PREDICTION and not self.token_kinds)

    def take(self) -> frozenset[VectorKind]:
        """Settle what its run is asked for; what is wanted later takes another one. Any thread."""
        located = self.tokens is not None and self.tokens.kept is not None
        self.taken = self.token_kinds if located else frozenset()
        return self.taken

    @property
    def length(self) -> int:
        """Tokens, special ones included; 0 before tokenization."""
        return 0 if self.tokens is None else len(self.tokens.ids)

    def is_wanted(self, now_s: float) -> bool:
        """Return whether somebody waits for it whose deadline has not passed."""
        return any(call.open and call.deadline_s > now_s for call, _, _ in self.subscribers)

    @property
    def deadline_s(self) -> float:
        """When the last who waits for it gives up, `time.monotonic()` seconds; infinity for never."""
        return max((call.deadline_s for call, _, _ in self.subscribers if call.open), default=-math.inf)

    def calls(self) -> Iterable[VectorCall]:
        """Return everyone who subscribed."""
        return (call for call, _, _ in self.subscribers)


class PendingTexts:
    """All texts that are being worked out, by name."""

    def __init__(self) -> None:
        self._texts: dict[bytes, PendingText] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, pending: PendingText) -> bool:
        return self._texts.get(pending.name) is pending

    def join(self, name: bytes, call: VectorCall, position: int, kind: VectorKind, tier: Tier) -> bool:
        """Subscribe to the pending text of `name` if there is one; return whether there was."""
        pending = self._texts.get(name)
        if pending is None:
            return False
        pending.tier = max(pending.tier, tier)
        _subscribe(pending, call, position, kind)
        return True

    def start(self, pending: PendingText, call: VectorCall, position: int, kind: VectorKind) -> None:
        """Take a new text in, with its first subscriber."""
        self._texts[pending.name] = pending
        _subscribe(pending, call, position, kind)

    def complete(self, pending: PendingText, result: Blobs | Failure, source: AnswerSource) -> bool:
        """End the wait for a text: its first subscriber gets `source`, those that joined later JOINED.

        Returns:
            Whether everyone was served. Those who want what is not in `result` go on waiting, for another run of it.
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
        pending.kinds = frozenset(kind for _, _, kind in waiting)
        pending.taken = None
        if not waiting:
            self._texts.pop(pending.name, None)
        return not waiting

    def drop(self, pending: PendingText) -> bool:
        """End the wait for a text that is not wanted any more; return whether a deadline was the reason."""
        timed_out = any(call.open or call.deadline_s < math.inf for call in pending.calls())
        self.complete(pending, _TIMED_OUT if timed_out else _ABANDONED, AnswerSource.COMPUTED)
        return timed_out


def _subscribe(pending: PendingText, call: VectorCall, position: int, kind: VectorKind) -> None:
    pending.subscribers.append((call, position, kind))
    pending.kinds |= {kind}
    call.expect()
