"""One call of `prepare`: cuts the entries into requests; a broken one sent again computes only what is missing."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import astuple, dataclass, field

from gradewire._calls.chunks import Chunk, ChunkLimits, Deadline, chunk_limits, cut
from gradewire._calls.decode import check_same, decode_generation, decode_provenance, decode_status
from gradewire._transport.retries import Retries
from gradewire.errors import InvalidRequest, ServerFault, TransportError
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.preparation import (
    EntryFailure,
    PrepareProgress,
    PrepareReport,
    ReferenceEntryLike,
    SyntheticGeneration,
    encode_entry,
)
from gradewire.results import CacheHits, Provenance, Status
from gradewire.transport import Transport
from gradewire_proto.conventions.reference_sets import name_set
from gradewire_proto.v1 import references_pb2

PrepareCallback = Callable[[PrepareProgress], None]


@dataclass(frozen=True, slots=True)
class PrepareCall:
    """What all requests of a call share.

    Attributes:
        choice: The metrics.
        deadline: Of the whole call.
        progress: Told after every message of the server; an exception from it ends the call.
        generate: Who writes synthetic answers; None: nobody does.
    """

    choice: MetricChoice
    deadline: Deadline
    progress: PrepareCallback | None
    generate: SyntheticGeneration | None = None


@dataclass(slots=True)
class _Counts:
    """Counts over all requests so far."""

    entries: int = 0
    cache_hits: CacheHits = field(default_factory=CacheHits)
    stored: int = 0
    generated: int = 0
    fallback: int = 0

    def plus(self, step: references_pb2.PrepareProgress) -> "_Counts":
        """These counts and those of one request."""
        hits = step.cache_hits
        new = (hits.memory, hits.disk, hits.redis, hits.joined, hits.computed)
        return _Counts(
            entries=self.entries + step.entries_done,
            cache_hits=CacheHits(*(before + now for before, now in zip(astuple(self.cache_hits), new, strict=True))),
            stored=self.stored + step.synthetic_answers_stored,
            generated=self.generated + step.synthetic_answers_generated,
            fallback=self.fallback + step.synthetic_answers_fallback,
        )


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
        self._counts = _Counts(entries=len(self._failures))
        self._answers: dict[int, tuple[str | None, ...]] = {}
        self._provenance: dict[str, Provenance] = {}
        self._generation: Provenance | None = None
        # What all requests have in common; the name of the set is known once it is known who writes in it.
        self._common = references_pb2.PrepareRequest(metrics=call.choice.specs)

    async def run(self, limits: Callable[[], Awaitable[Limits]]) -> PrepareReport:
        """Prepares all entries, one request after the other."""
        await self._name()
        room = chunk_limits(await limits(), overhead_bytes=self._common.ByteSize())
        for chunk in cut(self._fitting(room), room):
            await self._send_until_done(chunk)
        failures = sorted(self._failures, key=lambda failure: failure.index)
        return PrepareReport(
            reference_set=self._common.reference_set,
            entries=self._total,
            failures=tuple(failure for failure in failures if failure.status is not Status.UNPARSABLE),
            cache_hits=self._counts.cache_hits,
            synthetic_answers_stored=self._counts.stored,
            provenance=self._provenance,
            synthetic_answers_generated=self._counts.generated,
            fallbacks=tuple(failure for failure in failures if failure.status is Status.UNPARSABLE),
            synthetic_answers=self._answers,
            generation=self._generation,
        )

    async def _name(self) -> None:
        """Names the set; where a judge is to write, first asks the server which one, and pins it for the whole call."""
        generate = self._call.generate
        if generate is not None:
            self._common.generate.model = generate.judge
            self._common.generate.prompt = generate.prompt
            self._common.generate.return_answers = True
            await self._send_until_done(Chunk([], []))
            self._provenance = {}  # names a set that is not this one
            writer = self._generation
            if writer is None:
                raise InvalidRequest("generate: this server writes no synthetic answers; use a later one")
            self._common.generate.model = f"{writer.model}@{writer.model_digest}"
            if "\n" not in generate.prompt:
                self._common.generate.prompt = f"{writer.prompt}@{writer.prompt_digest}"
        writer = self._generation
        digests = (writer.model_digest, writer.prompt_digest) if writer else ()
        name = name_set((message for _, message in self._messages), digests)
        said = self._call.choice.reference_set
        if said not in {"", name}:
            raise InvalidRequest(
                f"a metric says reference_set={said!r}, and these entries make the set {name!r}: leave it out of the "
                "metric"
            )
        self._common.reference_set = name

    def _fitting(self, room: ChunkLimits) -> list[tuple[int, references_pb2.ReferenceEntry]]:
        """The entries that fit into a message; the others fail."""
        fitting = []
        for index, message in self._messages:
            if (size := message.ByteSize()) <= room.max_item_bytes:
                fitting.append((index, message))
                continue
            problem = (
                f"entries[{index}] takes {size} bytes, at most {room.max_item_bytes} fit into a message: shorten it"
            )
            self._failures.append(EntryFailure(index, Status.INVALID_INPUT, problem))
            self._counts.entries += 1
        return fitting

    async def _send_until_done(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        retries = Retries(self._call.deadline.remaining_s)
        while True:
            try:
                await self._send(chunk)
            except TransportError as error:
                await retries.wait_after(error)
            else:
                return

    async def _send(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        request = references_pb2.PrepareRequest(entries=chunk.messages)
        request.MergeFrom(self._common)
        failures: list[EntryFailure] = []
        last = references_pb2.PrepareProgress()
        replies = self._transport.prepare(request, timeout_s=self._call.deadline.remaining_s())
        try:
            async with aclosing(replies):
                async for last in replies:
                    failures += [
                        EntryFailure(chunk.indices[each.index], decode_status(each.status), each.message)
                        for each in last.failures
                    ]
                    for entry in last.synthetic_answers:
                        answers = tuple(answer or None for answer in entry.synthetic_answers)
                        self._answers[chunk.indices[entry.index]] = answers
                    self._tell(last)
        except TransportError:
            # What was written is kept: the next attempt finds it, and does not count it as written.
            self._counts.generated += last.synthetic_answers_generated
            raise
        if not last.complete:
            raise ServerFault("the server stopped before the references were ready: look at its log, then call again")
        provenance = decode_provenance(self._call.choice, last.provenance)
        if self._provenance:
            check_same(self._provenance, provenance)
        self._provenance = provenance
        if last.HasField("generation"):
            self._generation = decode_generation(last.generation)
        self._failures += failures
        self._counts = self._counts.plus(last)

    def _tell(self, step: references_pb2.PrepareProgress) -> None:
        if self._call.progress is None or not step.entries_total:
            return
        counts = self._counts.plus(step)
        self._call.progress(
            PrepareProgress(
                entries_done=counts.entries,
                entries_total=self._total,
                cache_hits=counts.cache_hits,
                synthetic_answers_stored=counts.stored,
                synthetic_answers_generated=counts.generated,
                synthetic_answers_fallback=counts.fallback,
            )
        )
