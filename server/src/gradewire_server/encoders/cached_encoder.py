"""A memory cache, a second cache level and single flight for one model's texts."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.tracing.spans import CACHE, CACHE_HITS, CACHE_LEVEL, TEXTS, spanned
from gradewire_server.domain.caller import Lane, current_turn
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders.batcher import FinishedJobs, RunError
from gradewire_server.encoders.encoder import SHUTTING_DOWN, Encoded, Encoder, FinishedTexts
from gradewire_server.encoders.pending import PendingText, PendingTexts, VectorCall, calls_of
from gradewire_server.encoders.prometheus import EncoderTelemetry
from gradewire_server.loop_turns import give_way
from gradewire_server.storage import codec
from gradewire_server.storage.cache import SecondLevel, SegmentedLru, StorageTelemetry, Write, WriteBehind
from gradewire_server.storage.codec import SENTENCE, Blobs, EntryKind, ModelSpaces, VectorKind
from gradewire_server.storage.shared_table import SharedTable, is_running

_log = logging.getLogger(__name__)

_SLICE: Final = 512
"""The number of texts to look up in one turn of the event loop. It takes half a millisecond, or two if other processes
computed all of them."""
_SLICE_CHARACTERS: Final = 2_000_000
"""The number of characters to hash per turn of the event loop. Hashing them takes a few milliseconds."""
_MAX_VIEWS: Final = 4096
_NOTHING: Final[Blobs] = {}
_JOINED_FOR_S: Final = 0.02
"""Seconds to wait for a text that another process computes, for interactive work. Its own run would take this long."""
_BULK_JOINED_FOR_S: Final = 5.0
"""The same for bulk work, which other bulk work of the other process may delay."""
_FIRST_LOOK_S: Final = 0.002
_LAST_LOOK_S: Final = 0.03
"""Seconds between looks for texts that other processes compute, at first and after some time."""
_DEFECT: Final = Failure(Status.INTERNAL, "the engine failed on this text")
_RUN_FAILED: Final = Failure(Status.UNAVAILABLE, "the encoder failed on this text")


class Entry(NamedTuple):
    """A text's entry in the memory cache."""

    text: str
    kind: VectorKind
    name: bytes
    blob: bytes


class BlobCache:
    """The memory cache and the second level. For one event loop only.

    `claims` says which texts other processes compute, or is None in the only process.
    """

    def __init__(
        self,
        lru: SegmentedLru,
        second: SecondLevel | None,
        telemetry: StorageTelemetry,
        *,
        max_pending_writes: int,
        claims: SharedTable | None = None,
    ) -> None:
        self.get = lru.get
        self.second = second
        self.claims = claims
        self._lru = lru
        self._writer = WriteBehind(second, lru, telemetry, max_pending=max_pending_writes)

    def keep_all(
        self, spaces: ModelSpaces, texts: Sequence[PendingText], results: Sequence[Encoded]
    ) -> list[Blobs | Failure]:
        """Put the blobs of a run's texts into memory, and offer them to the second level; see `keep`."""
        kept: list[Blobs | Failure] = []
        writes = []
        put_new, space, dims = self._lru.put_new, spaces.sentence, spaces.dims
        for text, (found, _, _) in zip(texts, results, strict=True):
            if isinstance(found, Failure):
                kept.append(found)
                continue
            blob = found.get(SENTENCE)
            if blob is None or len(found) > 1:
                kept.append(self.keep(spaces, text, found))
                continue
            name, tier = text.name, text.tier
            current = put_new(name, blob, pinned=tier is Tier.REFERENCE)
            kept.append(found if current is blob else {SENTENCE: current})
            if tier is not Tier.WINDOW and current[-1] < tier:
                writes.append((name, Write(space.stored(name), current, tier, dims, space.kind)))
        self._writer.add_all(writes)
        return kept

    def keep(self, spaces: ModelSpaces, text: PendingText, found: Blobs) -> Blobs:
        """Put a text's blobs into memory and offer them to the second level.

        Returns:
            The text's blobs, all with the same sentence vector.
        """
        sentence = self._lru.get(text.name)
        if sentence is None:
            sentence = found.get(SENTENCE) or codec.sentence_of(next(iter(found.values())), spaces.dims)
        kept = {kind: codec.with_sentence(blob, sentence) for kind, blob in found.items() if kind != SENTENCE}
        kept[SENTENCE] = sentence
        for kind, blob in kept.items():
            name = text.name if kind == SENTENCE else spaces.of(kind).hashes([text.text])[0]
            self._lru.put(name, blob, pinned=text.tier is Tier.REFERENCE)
            self._persist(spaces, Entry(text.text, kind, name, blob), text.tier)
        return kept

    def used(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        """Offer an entry from memory to the second level, unless the second level already has it with this tier."""
        if entry.kind != SENTENCE:
            name = spaces.sentence.hashes([entry.text])[0]
            sentence = self._lru.get(name)
            if sentence is None:
                sentence = codec.sentence_of(entry.blob, spaces.dims)
                self._lru.put(name, sentence, pinned=False)
            self._persist(spaces, Entry(entry.text, SENTENCE, name, sentence), tier)
            blob = codec.with_sentence(entry.blob, sentence)
            if tier is Tier.PREDICTION:
                # The second level stores no token vectors of predictions, so record the sentence vector's tier.
                blob = codec.with_tier(blob, Tier(min(max(blob[-1], sentence[-1]), tier)))
            self._lru.refresh(entry.name, blob)
            entry = entry._replace(blob=blob)
        self._persist(spaces, entry, tier)

    async def close(self) -> None:
        """Wait for pending writes, then close the second level."""
        await self._writer.flush()
        if self.second is not None:
            await self.second.close()

    def _persist(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        if tier is Tier.WINDOW or entry.blob[-1] >= tier:
            return
        if entry.kind == SENTENCE or tier is Tier.REFERENCE:
            space = spaces.of(entry.kind)
            self._writer.add(entry.name, Write(space.stored(entry.name), entry.blob, tier, spaces.dims, space.kind))


async def find_stored(spaces: ModelSpaces, second: SecondLevel, texts: Sequence[PendingText]) -> Sequence[Blobs]:
    """Return each text's stored blobs by kind. A text without stored blobs has an empty mapping."""
    wanted = [text.token_kinds for text in texts]
    if not any(wanted):
        keys = [spaces.sentence.stored(text.name) for text in texts]
        blobs = await second.read(keys, spaces.dims, kind=spaces.sentence.kind)
        return [_NOTHING if blob is None else {SENTENCE: blob} for blob in blobs]
    found: list[dict[VectorKind, bytes]] = [{} for _ in texts]
    plain = [index for index, kinds in enumerate(wanted) if not kinds]
    keys = [spaces.sentence.stored(texts[index].name) for index in plain]
    if keys:
        for index, blob in zip(plain, await second.read(keys, spaces.dims, kind=spaces.sentence.kind), strict=True):
            if blob is not None:
                found[index][SENTENCE] = blob
    for kind in sorted(frozenset().union(*wanted)):
        space = spaces.of(kind)
        having = [index for index, kinds in enumerate(wanted) if kind in kinds]
        keys = [space.stored(name) for name in space.hashes([texts[index].text for index in having])]
        for index, blob in zip(having, await second.read(keys, spaces.dims, kind=EntryKind.TOKENS), strict=True):
            if blob is not None and codec.is_complete(blob[:-2], spaces.dims):
                found[index][kind] = blob
    return found


class CachedEncoder:
    """An encoder with all cache levels. For one event loop only."""

    def __init__(self, encoder: Encoder, blobs: BlobCache, pending: PendingTexts, telemetry: EncoderTelemetry) -> None:
        self.name = encoder.model.name
        self.spaces = encoder.spaces
        self.layers = encoder.model.token_layers
        self._encoder = encoder
        self._blobs = blobs
        self._pending = pending
        self._dropped = telemetry.dropped
        self._tasks: set[asyncio.Task[None]] = set()
        self._views: dict[str, CachedEncoder] = {}

    def within(self, namespace: str) -> "CachedEncoder":
        """Return a view of this encoder for a tenant's namespace.

        Namespaces share memory and batches, but never cached or pending texts.
        """
        view = self._views.get(namespace)
        if view is None:
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()  # a view takes only microseconds to create again
            view = self._views[namespace] = copy(self)
            view.spaces = self.spaces.within(namespace)
        return view

    async def fetch(
        self, texts: Sequence[str], tiers: Sequence[Tier], *, kind: VectorKind, deadline_s: float | None
    ) -> VectorCall:
        """Return a call whose `results` are the blobs of `texts`. The texts must be distinct."""
        call = VectorCall(len(texts), deadline_s=deadline_s)
        with spanned(CACHE, {CACHE_LEVEL: "memory", TEXTS: len(texts)}) as span:
            missing = await self._look_up(call, texts, tiers, kind)
            if span is not None:
                span.set(CACHE_HITS, len(texts) - len(missing))
        if missing:
            names: Iterable[bytes] = missing.values()
            if kind != SENTENCE:
                names = await self._sentence_names([texts[position] for position in missing])
            self._subscribe(call, kind, zip(names, missing, strict=True), texts, tiers)
            await call.wait()
        return call

    async def _sentence_names(self, texts: Sequence[str]) -> list[bytes]:
        names = []
        for start, end in _slices(texts):
            if start:
                await give_way()
            names += self.spaces.sentence.hashes(texts[start:end])
        return names

    async def token_ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return each text's token IDs, without special tokens."""
        return await self._encoder.token_ids(texts)

    async def close(self, reason: Failure = SHUTTING_DOWN) -> None:
        """Fail queued texts with `reason`, and wait for running texts and look-ups."""
        await self._encoder.close(reason)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _look_up(
        self, call: VectorCall, texts: Sequence[str], tiers: Sequence[Tier], kind: VectorKind
    ) -> dict[int, bytes]:
        """Fill in a call's results from memory; return the names of the texts that memory lacks, by position."""
        space = self.spaces.of(kind)
        get = self._blobs.get
        missing: dict[int, bytes] = {}
        for start, end in _slices(texts):
            if start:
                await give_way()
            started_s = time.perf_counter()
            names = space.hashes(texts[start:end])
            for position, name in enumerate(names, start):
                blob = get(name)
                if blob is None:
                    missing[position] = name
                    continue
                call.results[position] = blob
                if blob[-1] < tiers[position] and self._blobs.second is not None:
                    self._blobs.used(self.spaces, Entry(texts[position], kind, name, blob), tiers[position])
            call.timing.cache_s += time.perf_counter() - started_s
        return missing

    def _subscribe(
        self,
        call: VectorCall,
        kind: VectorKind,
        missing: Iterable[tuple[bytes, int]],
        texts: Sequence[str],
        tiers: Sequence[Tier],
    ) -> None:
        started = self._pending.subscribe(call, kind, missing, texts, tiers)
        if started:
            self._spawn(self._launch(started))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # Use a separate task, so that a cancelled call does not cancel texts that other calls wait for. The task
        # starts in the loop's next turn, after the request has subscribed to all texts that it needs.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _launch(self, texts: Sequence[PendingText]) -> None:
        claims = self._blobs.claims
        if claims is not None:
            elsewhere = {text for text in texts if not claims.claim(text.name)}
            if elsewhere:
                joined = list(elsewhere)
                self._spawn(self._work_out(self._join(claims, joined), joined))
                texts = [text for text in texts if text not in elsewhere]
        if texts:
            await self._compute(texts)

    async def _join(self, claims: SharedTable, texts: Sequence[PendingText]) -> AsyncIterator[FinishedTexts]:
        """Wait for texts that other processes compute. Compute those here that do not come in time."""
        is_bulk = current_turn().lane is Lane.BULK
        ends_s = time.monotonic() + (_BULK_JOINED_FOR_S if is_bulk else _JOINED_FOR_S)
        pause_s = _FIRST_LOOK_S
        while texts:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_LOOK_S)
            now_s, running = time.monotonic(), cache(is_running)
            waiting, late, unwanted = [], [], []
            for text in texts:
                if (blobs := self._found(text)) is not None:
                    self._pending.complete(text, blobs, AnswerSource.JOINED)
                elif not text.is_wanted(now_s):
                    unwanted.append(text)
                elif now_s < ends_s and claims.claimed_elsewhere(text.name, running):
                    waiting.append(text)
                else:
                    claims.claim(text.name)
                    late.append(text)
            if unwanted:
                yield FinishedJobs(unwanted)
            if late:
                self._spawn(self._compute(late))
            texts = waiting

    def _found(self, text: PendingText) -> Blobs | None:
        """Return the wanted blobs of a text if memory has all of them now."""
        found = {}
        for kind in {kind for _, _, kind in text.subscribers}:
            space = self.spaces.of(kind)
            blob = self._blobs.get(text.name if kind == SENTENCE else space.hashes([text.text])[0])
            if blob is None:
                return None
            found[kind] = blob
        return found

    async def _compute(self, texts: Sequence[PendingText]) -> None:
        second = self._blobs.second
        direct: list[PendingText] = []
        storable: list[PendingText] = []
        for text in texts:
            (storable if second is not None and text.storable else direct).append(text)
        if second is not None and storable:
            looked_up = self._work_out(self._encode_stored(second, storable), storable)
            if direct:
                self._spawn(looked_up)
            else:
                await looked_up
        if direct:
            await self._work_out(self._encoder.encode(direct), direct)

    async def _encode_stored(self, second: SecondLevel, texts: Sequence[PendingText]) -> AsyncIterator[FinishedTexts]:
        started_s = time.perf_counter()
        with spanned(CACHE, {CACHE_LEVEL: second.source.name.lower(), TEXTS: len(texts)}) as span:
            found = await find_stored(self.spaces, second, texts)
            if span is not None:
                span.set(CACHE_HITS, sum(map(bool, found)))
        took_s = time.perf_counter() - started_s
        for call in calls_of(texts):
            call.timing.cache_s += took_s
        if not any(found):
            async for part in self._encoder.encode(texts):
                yield part
            return
        hits = [(text, Encoded(blobs, second.source)) for text, blobs in zip(texts, found, strict=True) if blobs]
        if hits:
            yield FinishedJobs([text for text, _ in hits], [encoded for _, encoded in hits])
        left = [text for text, blobs in zip(texts, found, strict=True) if not blobs]
        if left:
            async for part in self._encoder.encode(left):
                yield part

    async def _work_out(self, parts: AsyncIterator[FinishedTexts], texts: Sequence[PendingText]) -> None:
        try:
            async for part in parts:
                unserved = self._complete(part)
                if unserved:
                    self._spawn(self._launch(unserved))
        except Exception:  # noqa: BLE001 - log the error; no caller may hang
            _log.exception("cannot encode %d texts because of an internal error", len(texts))
            for text in texts:
                if text in self._pending:
                    self._pending.complete(text, _DEFECT, AnswerSource.COMPUTED)
            self._release(texts)

    def _complete(self, part: FinishedTexts) -> list[PendingText]:
        """Deliver finished texts and cache their vectors.

        Returns:
            Texts that need another run because a caller wants vectors that this run did not compute.
        """
        try:
            return self._settle(part)
        finally:
            self._release(part.jobs)

    def _release(self, texts: Iterable[PendingText]) -> None:
        """Tell other processes that this process no longer works on texts."""
        if (claims := self._blobs.claims) is not None:
            for text in texts:
                claims.release(text.name)

    def _settle(self, part: FinishedTexts) -> list[PendingText]:
        if part.results is not None:
            return self._complete_run(part.jobs, part.results)
        if part.error is not None:
            failure = part.error.failure if isinstance(part.error, RunError) else _RUN_FAILED
            for text in part.jobs:
                self._pending.complete(text, failure, AnswerSource.COMPUTED)
            return []
        now_s = time.monotonic()
        wanted_again = []
        for text in part.jobs:
            if text.is_wanted(now_s):  # a call joined after the last check
                wanted_again.append(text)
            else:
                self._dropped.labels("deadline" if self._pending.drop(text) else "cancelled").inc()
        return wanted_again

    def _complete_run(self, texts: Sequence[PendingText], results: Sequence[Encoded]) -> list[PendingText]:
        began_s = results[0].began_s
        if began_s < math.inf:
            queued = {call: text.queued_s for text in texts for call, _, _ in text.subscribers}
            for call, queued_s in queued.items():
                call.ran(began_s, queued_s=queued_s)
        kept = self._blobs.keep_all(self.spaces, texts, results)
        return self._pending.complete_all(texts, kept, [each.source for each in results])


def _slices(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    if len(texts) <= _SLICE and sum(map(len, texts)) <= _SLICE_CHARACTERS:
        yield 0, len(texts)
        return
    start = characters = 0
    for position, text in enumerate(texts):
        characters += len(text)
        if position > start and (position - start >= _SLICE or characters > _SLICE_CHARACTERS):
            yield start, position
            start, characters = position, len(text)
    yield start, len(texts)
