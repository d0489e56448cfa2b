"""One call of `prepare`: cuts the entries into requests; a broken one sent again computes only what is missing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import astuple, dataclass

from gradewire._chunks import Chunk, Deadline, chunk_limits, cut
from gradewire._decode import check_same, decode_provenance, decode_status
from gradewire.errors import InvalidRequest, ServerFault, TransportError
from gradewire.metric_choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.preparation import (
    EntryFailure,
    PrepareProgress,
    PrepareReport,
    ReferenceEntryLike,
    encode_entry,
    name_set,
)
from gradewire.results import CacheHits, Provenance, Status
from gradewire.transport import Transport
from gradewire_proto.v1 import references_pb2, types_pb2

_ATTEMPTS = 5
_FIRST_BACKOFF_S = 0.2

PrepareCallback = Callable[[PrepareProgress], None]


@dataclass(frozen=True, slots=True)
class PrepareCall:
    """What all requests of a call share.

    Attributes:
        choice: The metrics.
        deadline: Of the whole call.
        progress: Told after every message of the server; an exception from it ends the call.
    """

    choice: MetricChoice
    deadline: Deadline
    progress: PrepareCallback | None


class Preparation:
    """A running call of `prepare`."""

    def __init__(self, transport: Transport, call: PrepareCall, entries: Sequence[ReferenceEntryLike]) -> None:
        if not entries:
            raise InvalidRequest("entries is empty: give at least one entry with its references")
        self._transport = transport
        self._call = call
        self._messages: list[tuple[int, references_pb2.ReferenceEntry]] = []
        self._failures: list[EntryFailure] = []
        self._total = len(entries)
        for index, entry in enumerate(entries):
            message = encode_entry(index, entry)
            if isinstance(message, EntryFailure):
                self._failures.append(message)
            else:
                self._messages.append((index, message))
        self._reference_set = name_set(message for _, message in self._messages)
        if call.choice.reference_set not in {"", self._reference_set}:
            raise InvalidRequest(
                f"a metric says reference_set={call.choice.reference_set!r}, and these entries make the set "
                f"{self._reference_set!r}: leave it out of the metric"
            )
        self._done = len(self._failures)
        self._hits = CacheHits()
        self._stored = 0
        self._provenance: dict[str, Provenance] = {}

    async def run(self, limits: Callable[[], Awaitable[Limits]]) -> PrepareReport:
        """Prepares all entries, one request after the other."""
        request = references_pb2.PrepareRequest(metrics=self._call.choice.specs, reference_set=self._reference_set)
        room = chunk_limits(await limits(), overhead_bytes=request.ByteSize())
        fitting = []
        for index, message in self._messages:
            if (size := message.ByteSize()) <= room.max_item_bytes:
                fitting.append((index, message))
                continue
            problem = (
                f"entries[{index}] takes {size} bytes, at most {room.max_item_bytes} fit into a message: shorten it"
            )
            self._failures.append(EntryFailure(index, Status.INVALID_INPUT, problem))
            self._done += 1
        for chunk in cut(fitting, room):
            await self._send_until_done(chunk)
        return PrepareReport(
            reference_set=self._reference_set,
            entries=self._total,
            failures=tuple(sorted(self._failures, key=lambda failure: failure.index)),
            cache_hits=self._hits,
            synthetic_answers_stored=self._stored,
            provenance=self._provenance,
        )

    async def _send_until_done(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            self._call.deadline.remaining_s()
            try:
                await self._send(chunk)
            except TransportError as error:
                if attempt == _ATTEMPTS or isinstance(error, ServerFault):
                    raise
                await asyncio.sleep(error.retry_after_s or _FIRST_BACKOFF_S * 2 ** (attempt - 1))
            else:
                return

    async def _send(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        request = references_pb2.PrepareRequest(
            entries=chunk.messages, metrics=self._call.choice.specs, reference_set=self._reference_set
        )
        failures: list[EntryFailure] = []
        last = references_pb2.PrepareProgress()
        replies = self._transport.prepare(request, timeout_s=self._call.deadline.remaining_s())
        async with aclosing(replies):
            async for last in replies:
                failures += [
                    EntryFailure(chunk.indices[each.index], decode_status(each.status), each.message)
                    for each in last.failures
                ]
                self._tell(last)
        if not last.complete:
            raise ServerFault("the server stopped before the references were ready: look at its log, then call again")
        provenance = decode_provenance(self._call.choice, last.provenance)
        if self._provenance:
            check_same(self._provenance, provenance)
        self._provenance = provenance
        self._failures += failures
        self._done += len(chunk.indices)
        self._hits = self._hits_with(last.cache_hits)
        self._stored += last.synthetic_answers_stored

    def _tell(self, step: references_pb2.PrepareProgress) -> None:
        if self._call.progress is not None:
            self._call.progress(
                PrepareProgress(
                    entries_done=self._done + step.entries_done,
                    entries_total=self._total,
                    cache_hits=self._hits_with(step.cache_hits),
                    synthetic_answers_stored=self._stored + step.synthetic_answers_stored,
                )
            )

    def _hits_with(self, more: types_pb2.CacheHits) -> CacheHits:
        new = (more.memory, more.disk, more.redis, more.joined, more.computed)
        return CacheHits(*(before + now for before, now in zip(astuple(self._hits), new, strict=True)))
