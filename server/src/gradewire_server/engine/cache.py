"""From texts to bodies through all levels: in-process cache, single flight, second level, encoder, write-back."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from gradewire_server.domain.needs import Source, Tier
from gradewire_server.domain.result import Failure, Status
from gradewire_server.engine.codec import with_tier
from gradewire_server.engine.encoder import Encoder
from gradewire_server.engine.flight import Call, Flight, FlightTable
from gradewire_server.engine.keys import ModelSpaces
from gradewire_server.engine.lru import SegmentedLru
from gradewire_server.engine.second_level import SecondLevel, Write
from gradewire_server.engine.telemetry import EngineTelemetry
from gradewire_server.engine.token_codec import sentence_of, with_sentence
from gradewire_server.engine.writer import WriteBack

_log = logging.getLogger(__name__)
_SLICE = 1024
"""Texts looked up before others get the event loop: about 1 ms."""
_DEFECT = Failure(Status.INTERNAL, "the engine failed on this text")


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
        with_tokens: bool,
        deadline_s: float | None,
    ) -> Call:
        """Bodies of distinct `texts`, in `Call.results`.

        What is all in memory is answered without a task, a thread or a turn of the event loop.
        """
        call = Call(len(texts), deadline_s=deadline_s)
        space = encoder.spaces.tokens if with_tokens else encoder.spaces.sentence
        missing: list[tuple[int, bytes]] = []
        for start in range(0, len(texts), _SLICE):
            if start:
                await asyncio.sleep(0)
            started_s = time.perf_counter()
            names = space.hashes(texts[start : start + _SLICE])
            for position, name in enumerate(names, start):
                body = self._lru.get(name)
                if body is None:
                    missing.append((position, name))
                    continue
                call.results[position] = body
                if body[-1] < tiers[position] and self._writer is not None:
                    self._offer(encoder.spaces, texts[position], name, body, tiers[position])
            call.timing.cache_s += time.perf_counter() - started_s
        if missing:
            started = []
            for position, name in missing:
                if not self._flights.join(name, call, position, tiers[position]):
                    flight = Flight(name, texts[position], tiers[position], with_tokens=with_tokens)
                    self._flights.start(flight, call, position)
                    started.append(flight)
            if started:
                self._launch(encoder, started)
            await call.wait()
        return call

    def landed(self, spaces: ModelSpaces, flight: Flight, result: bytes | Failure) -> None:
        """Takes what an encoder made of a flight: keeps it and hands it out. Nothing failed is kept."""
        if isinstance(result, Failure):
            self._flights.land(flight, result, Source.COMPUTED)
            return
        pinned = flight.tier is Tier.REFERENCE
        name, body = flight.name, result
        if flight.with_tokens:
            name = spaces.sentence.hashes([flight.text])[0]
            known = self._lru.get(name)
            body = sentence_of(result, spaces.dims) if known is None else known
            result = with_sentence(result, body)
            self._lru.put(flight.name, result, pinned=pinned)
        self._lru.put(name, body, pinned=pinned)
        self._persist(spaces, name, body, flight.tier)
        self._flights.land(flight, result, Source.COMPUTED)

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

    def _launch(self, encoder: Encoder, flights: Sequence[Flight]) -> None:
        second = self._second
        direct = [flight for flight in flights if second is None or flight.with_tokens or flight.tier is Tier.WINDOW]
        with self._ending(direct):
            if direct and not encoder.submit_small(direct):
                self._spawn(encoder.submit(direct), direct)
        if second is not None and len(direct) < len(flights):
            stored = [flight for flight in flights if not flight.with_tokens and flight.tier is not Tier.WINDOW]
            self._spawn(self._resolve(encoder, second, stored), stored)

    async def _resolve(self, encoder: Encoder, second: SecondLevel, flights: Sequence[Flight]) -> None:
        spaces = encoder.spaces
        started_s = time.perf_counter()
        bodies = await second.read([spaces.sentence.stored(flight.name) for flight in flights], spaces.dims)
        took_s = time.perf_counter() - started_s
        for call in {call for flight in flights for call in flight.calls()}:
            call.timing.cache_s += took_s
        left = []
        for flight, body in zip(flights, bodies, strict=True):
            if body is None:
                left.append(flight)
                continue
            self._lru.put(flight.name, body, pinned=flight.tier is Tier.REFERENCE)
            self._persist(spaces, flight.name, body, flight.tier)
            self._flights.land(flight, body, second.source)
        if left and not encoder.submit_small(left):
            await encoder.submit(left)

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

    def _offer(self, spaces: ModelSpaces, text: str, name: bytes, body: bytes, tier: Tier) -> None:
        """Offers an entry of the first level, of either kind, to the second as `tier`."""
        sentence_name = spaces.sentence.hashes([text])[0]
        if sentence_name != name:
            # A token entry: its sentence's own entry knows whether it is stored; from now on this one repeats it.
            sentence = self._lru.get(sentence_name)
            if sentence is None:
                sentence = sentence_of(body, spaces.dims)
                self._lru.put(sentence_name, sentence, pinned=False)
            self._lru.refresh(name, with_sentence(body, sentence))
            body = sentence
        self._persist(spaces, sentence_name, body, tier)

    def _persist(self, spaces: ModelSpaces, name: bytes, body: bytes, tier: Tier) -> None:
        if self._writer is not None and tier > Tier.WINDOW and body[-1] < tier:
            self._writer.add(name, Write(spaces.sentence.stored(name), body, tier))

    def _written(self, name: bytes, tier: Tier) -> None:
        body = self._lru.peek(name)
        if body is not None:
            self._lru.refresh(name, with_tier(body, tier))
