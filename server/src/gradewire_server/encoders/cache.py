"""From texts to bodies through all levels: in-process cache, single flight, second level, encoder, write-back."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gradewire_server.domain.needs import Source, Tier
from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.encoder import Encoder
from gradewire_server.encoders.pending import Call, Flight, FlightTable
from gradewire_server.encoders.stored import find_stored
from gradewire_server.storage.codec import with_tier
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.storage.lru import SegmentedLru
from gradewire_server.storage.second_level import SecondLevel, Write
from gradewire_server.storage.telemetry import EngineTelemetry
from gradewire_server.storage.token_codec import sentence_of, with_sentence
from gradewire_server.storage.vector_kind import SENTENCE, Bodies, Part
from gradewire_server.storage.write_behind import WriteBack

_log = logging.getLogger(__name__)
_SLICE = 1024
"""Texts looked up before others get the event loop: about 1 ms."""
_DEFECT = Failure(Status.INTERNAL, "the engine failed on this text")


class Entry(NamedTuple):
    """What the first level holds of a text under a name."""

    text: str
    part: Part
    name: bytes
    body: bytes


class VectorCache:
    """All levels before the encoders of an engine. Lives on one event loop.

    Args:
        lru: The first level.
        second: The second level, or None.
        telemetry: Where answers are counted.
        max_pending_writes: See `CacheConfig`.
    """

    def __init__(
        self, lru: SegmentedLru, second: SecondLevel | None, telemetry: EngineTelemetry, *, max_pending_writes: int
    ) -> None:
        self._lru = lru
        self._second = second
        self._telemetry = telemetry
        self._flights = FlightTable()
        self._tasks: set[asyncio.Task[None]] = set()
        self._new: list[tuple[Encoder, Sequence[Flight]]] = []
        self._writer = (
            WriteBack(second, telemetry, max_pending=max_pending_writes, written=self._written) if second else None
        )

    @property
    def in_flight(self) -> int:
        """Texts that are being worked out."""
        return len(self._flights)

    async def fetch(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        part: Part,
        deadline_s: float | None,
    ) -> Call:
        """Bodies of distinct `texts`, in `Call.results`.

        What is all in memory is answered without a task, a thread or a turn of the event loop.
        """
        call = Call(len(texts), deadline_s=deadline_s)
        space = encoder.spaces.of(part)
        missing: list[int] = []
        for start in range(0, len(texts), _SLICE):
            if start:
                await asyncio.sleep(0)
            started_s = time.perf_counter()
            names = space.hashes(texts[start : start + _SLICE])
            for position, name in enumerate(names, start):
                body = self._lru.get(name)
                if body is None:
                    missing.append(position)
                    continue
                call.results[position] = body
                if body[-1] < tiers[position] and self._writer is not None:
                    self._offer(encoder.spaces, Entry(texts[position], part, name, body), tiers[position])
            call.timing.cache_s += time.perf_counter() - started_s
        if missing:
            wanted = [(position, texts[position], tiers[position]) for position in missing]
            names = encoder.spaces.sentence.hashes([text for _, text, _ in wanted])
            self._subscribe(encoder, call, part, zip(names, wanted, strict=True))
            await call.wait()
        return call

    def _subscribe(
        self, encoder: Encoder, call: Call, part: Part, wanted: Iterable[tuple[bytes, tuple[int, str, Tier]]]
    ) -> None:
        started = []
        for name, (position, text, tier) in wanted:
            if not self._flights.join(name, call, position, part, tier):
                flight = Flight(name, text, tier)
                self._flights.start(flight, call, position, part)
                started.append(flight)
        if started:
            self._launch_soon(encoder, started)

    def landed(self, encoder: Encoder, flight: Flight, result: Bodies | Failure) -> None:
        """Takes what an encoder made of a flight: keeps it and hands it out. Nothing failed is kept."""
        if not isinstance(result, Failure):
            result = self._keep(encoder.spaces, flight, result)
        if not self._flights.land(flight, result, Source.COMPUTED):
            self._launch_soon(encoder, [flight])

    def dropped(self, flight: Flight) -> None:
        """Takes a flight that nobody wanted any more when its turn came."""
        timed_out = self._flights.drop(flight)
        self._telemetry.dropped.labels("deadline" if timed_out else "cancelled").inc()

    async def close(self) -> None:
        """Waits for look-ups and writes that are under way, then closes the second level."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._writer is not None:
            await self._writer.flush()
        if self._second is not None:
            await self._second.close()

    def _launch_soon(self, encoder: Encoder, flights: Sequence[Flight]) -> None:
        """Launches flights in the event loop's next turn: what one request asks of a text, it asks in this one."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._launch_new)
        self._new.append((encoder, flights))

    def _launch_new(self) -> None:
        new, self._new = self._new, []
        for encoder, flights in new:  # each call's by themselves, for calls take turns
            self._launch(encoder, flights)

    def _launch(self, encoder: Encoder, flights: Sequence[Flight]) -> None:
        second = self._second
        direct = [flight for flight in flights if second is None or not flight.storable]
        with self._ending(direct):
            if direct and not encoder.submit_small(direct):
                self._spawn(encoder.submit(direct), direct)
        if second is not None and len(direct) < len(flights):
            stored = [flight for flight in flights if flight.storable]
            self._spawn(self._resolve(encoder, second, stored), stored)

    async def _resolve(self, encoder: Encoder, second: SecondLevel, flights: Sequence[Flight]) -> None:
        started_s = time.perf_counter()
        found = await find_stored(encoder.spaces, second, flights)
        took_s = time.perf_counter() - started_s
        for call in {call for flight in flights for call in flight.calls()}:
            call.timing.cache_s += took_s
        left = []
        for flight, bodies in zip(flights, found, strict=True):
            if not bodies or not self._flights.land(flight, self._keep(encoder.spaces, flight, bodies), second.source):
                left.append(flight)
        if left and not encoder.submit_small(left):
            await encoder.submit(left)

    def _keep(self, spaces: ModelSpaces, flight: Flight, found: Bodies) -> Bodies:
        """Puts entries into the first level and offers them to the second; all with one sentence vector."""
        sentence = self._lru.get(flight.name)
        if sentence is None:
            sentence = found.get(SENTENCE) or sentence_of(next(iter(found.values())), spaces.dims)
        kept = {part: with_sentence(body, sentence) for part, body in found.items() if part != SENTENCE}
        kept[SENTENCE] = sentence
        for part, body in kept.items():
            name = flight.name if part == SENTENCE else spaces.of(part).hashes([flight.text])[0]
            self._lru.put(name, body, pinned=flight.tier is Tier.REFERENCE)
            self._persist(spaces, Entry(flight.text, part, name, body), flight.tier)
        return kept

    @contextlib.contextmanager
    def _ending(self, flights: Sequence[Flight]) -> Iterator[None]:
        """Ends flights whose work raised, or their callers would wait for ever."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it was, it is logged and no caller may hang
            _log.exception("work on %d texts failed", len(flights))
            for flight in flights:
                if flight in self._flights:
                    self._flights.land(flight, _DEFECT, Source.COMPUTED)

    def _spawn(self, work: Coroutine[Any, Any, None], flights: Sequence[Flight]) -> None:
        # The engine's own task, never a caller's: a cancelled call must not take the flights others wait for with it.
        async def guarded() -> None:
            with self._ending(flights):
                await work

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _offer(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        """Offers an entry of the first level, of any part, to the second as `tier`."""
        if entry.part != SENTENCE:
            name = spaces.sentence.hashes([entry.text])[0]
            sentence = self._lru.get(name)
            if sentence is None:
                sentence = sentence_of(entry.body, spaces.dims)
                self._lru.put(name, sentence, pinned=False)
            self._persist(spaces, Entry(entry.text, SENTENCE, name, sentence), tier)
            body = with_sentence(entry.body, sentence)
            if tier is Tier.PREDICTION:
                # It is not stored itself, and so is kept as well as its sentence is.
                body = with_tier(body, Tier(min(max(body[-1], sentence[-1]), tier)))
            self._lru.refresh(entry.name, body)
            entry = entry._replace(body=body)
        self._persist(spaces, entry, tier)

    def _persist(self, spaces: ModelSpaces, entry: Entry, tier: Tier) -> None:
        if self._writer is None or tier is Tier.WINDOW or entry.body[-1] >= tier:
            return
        if entry.part == SENTENCE or tier is Tier.REFERENCE:
            space = spaces.of(entry.part)
            self._writer.add(entry.name, Write(space.stored(entry.name), entry.body, tier, spaces.dims, space.kind))

    def _written(self, name: bytes, tier: Tier) -> None:
        body = self._lru.peek(name)
        if body is not None:
            self._lru.refresh(name, with_tier(body, tier))
