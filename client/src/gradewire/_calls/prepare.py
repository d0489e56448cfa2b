"""Run a `prepare` call: split its entries into requests, and repeat interrupted requests."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace

from gradewire._calls.requests import Chunk, ChunkLimits, Deadline, chunk_limits, cut
from gradewire._calls.retries import Retries, until_answered
from gradewire._calls.score import decode_call_provenance, decode_provenance, decode_status
from gradewire.errors import DeadlineExceeded, InvalidRequest, ServerFault, TransportError
from gradewire.metrics.choice import MetricChoice
from gradewire.references import (
    EntryFailure,
    PrepareProgress,
    PrepareReport,
    ReferenceEntryLike,
    SyntheticGeneration,
    encode_entry,
)
from gradewire.results import CacheHits, Limits, Provenance, Status
from gradewire.transport import PREPARE, Transport
from gradewire_proto.v1 import references_pb2
from gradewire_proto.wire_rules import digest_entries, name_set, split_pin

PrepareCallback = Callable[[PrepareProgress], None]


class Preparation:
    """A running `prepare` call. An exception in `progress` ends the call.

    Raises:
        InvalidRequest: There are no entries, or none of them has references.
    """

    def __init__(
        self,
        transport: Transport,
        choice: MetricChoice,
        entries: Sequence[ReferenceEntryLike],
        deadline: Deadline,
        progress: PrepareCallback | None,
    ) -> None:
        if not entries:
            raise InvalidRequest("entries is empty: give at least one entry with its references")
        self._transport = transport
        self._choice = choice
        self._deadline = deadline
        self._progress = progress
        self._messages: list[tuple[int, references_pb2.ReferenceEntry]] = []
        self._failures: list[EntryFailure] = []
        for index, entry in enumerate(entries):
            message = encode_entry(index, entry)
            if isinstance(message, EntryFailure):
                self._failures.append(message)
            elif message is not None:
                self._messages.append((index, message))
        if not self._messages and not self._failures:
            raise InvalidRequest("entries: no question has an answer, so there is nothing to prepare")
        done = len(entries) - len(self._messages)
        self._so_far = PrepareProgress(done, len(entries), CacheHits(), synthetic_answers_stored=0)
        self._answers: dict[int, tuple[str | None, ...]] = {}
        self._provenance: dict[str, Provenance] = {}
        self._generation: Provenance | None = None
        self._corpus_digest = ""
        # All requests share these fields. The set's name follows once the judge's digest is known.
        self._common = references_pb2.PrepareRequest(metrics=choice.specs)

    async def run(
        self, limits: Callable[[], Awaitable[Limits]], generate: SyntheticGeneration | None, *, immutable: bool = False
    ) -> PrepareReport:
        """Prepare all entries, one request at a time.

        Raises:
            InvalidRequest: An entry of an immutable set cannot be sent, or the server does not support immutable sets.
        """
        await self._name(generate)
        if immutable:
            self._common.immutable = True
            self._common.expected_digest = digest_entries(message for _, message in self._messages)
        room = chunk_limits(await limits(), overhead_bytes=self._common.ByteSize())
        chunks = list(cut(self._fitting(room), room))
        if immutable and self._failures:
            first = min(self._failures, key=lambda failure: failure.index)
            raise InvalidRequest(f"immutable: {first.message}; an immutable set must be complete")
        if len(chunks) == 1:
            self._common.expected_digest = ""  # a single request contains the whole set
        for chunk in chunks:
            await self._send_until_done(chunk)
        if immutable:
            await self._complete(len(chunks))
        failures = sorted(self._failures, key=lambda failure: failure.index)
        return PrepareReport(
            reference_set=self._common.reference_set,
            entries=self._so_far.entries_total,
            failures=tuple(failure for failure in failures if failure.status is not Status.UNPARSABLE),
            cache_hits=self._so_far.cache_hits,
            synthetic_answers_stored=self._so_far.synthetic_answers_stored,
            provenance=self._provenance,
            synthetic_answers_generated=self._so_far.synthetic_answers_generated,
            fallbacks=tuple(failure for failure in failures if failure.status is Status.UNPARSABLE),
            synthetic_answers=self._answers,
            generation=self._generation,
            corpus_digest=self._corpus_digest,
        )

    async def _complete(self, requests: int) -> None:
        """Have the server confirm that an immutable set sent in several requests is complete."""
        if requests > 1:
            self._provenance = {}  # drop provenance without the corpus digest
            await self._send_until_done(Chunk([], []))
        if not self._corpus_digest:
            raise InvalidRequest("immutable: this server does not support immutable sets: upgrade the server")

    async def _name(self, generate: SyntheticGeneration | None) -> None:
        """Name the set. If a judge writes answers, first get the judge's digest from the server and pin the judge."""
        if generate is not None:
            self._common.generate.model = generate.judge
            self._common.generate.prompt = generate.prompt
            self._common.generate.return_answers = True
            await self._send_until_done(Chunk([], []))
            self._provenance = {}  # drop the provenance of a request without entries
            writer = self._generation
            if writer is None:
                raise InvalidRequest("generate: this server does not write synthetic answers: upgrade the server")
            self._common.generate.model = f"{writer.model}@{writer.model_digest}"
            if "\n" not in generate.prompt:
                self._common.generate.prompt = f"{writer.prompt}@{writer.prompt_digest}"
        writer = self._generation
        digests = (writer.model_digest, writer.prompt_digest) if writer else ()
        name = name_set((message for _, message in self._messages), digests)
        said = self._choice.reference_set
        if split_pin(said)[0] not in {"", name}:
            raise InvalidRequest(
                f"a metric has reference_set={said!r}, but these entries make the set {name!r}: leave out reference_set"
            )
        self._common.reference_set = name

    def _fitting(self, room: ChunkLimits) -> list[tuple[int, references_pb2.ReferenceEntry]]:
        """Return the entries that fit into a message, and record a failure for each larger entry."""
        fitting = []
        for index, message in self._messages:
            if (size := message.ByteSize()) <= room.max_item_bytes:
                fitting.append((index, message))
                continue
            problem = (
                f"entries[{index}] has {size} bytes, but at most {room.max_item_bytes} fit into a message: shorten the "
                "entry"
            )
            self._failures.append(EntryFailure(index, Status.INVALID_INPUT, problem))
            self._so_far = replace(self._so_far, entries_done=self._so_far.entries_done + 1)
        return fitting

    async def _send_until_done(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        # A server that stops at its own deadline keeps finished work, so another attempt resumes.
        retries = Retries(self._deadline.left_s, resumed_after=(DeadlineExceeded,))
        await until_answered(lambda: self._send(chunk), retries)

    async def _send(self, chunk: Chunk[references_pb2.ReferenceEntry]) -> None:
        request = references_pb2.PrepareRequest(entries=chunk.messages)
        request.MergeFrom(self._common)
        failures: list[EntryFailure] = []
        last = references_pb2.PrepareProgress()
        replies = self._transport.stream(PREPARE, request, timeout_s=self._deadline.remaining_s())
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
                    if self._progress is not None and last.entries_total:
                        self._progress(_plus(self._so_far, last))
        except TransportError:
            # The server keeps the answers written so far, so the next attempt does not count them again.
            written = self._so_far.synthetic_answers_generated + last.synthetic_answers_generated
            self._so_far = replace(self._so_far, synthetic_answers_generated=written)
            raise
        if not last.complete:
            raise ServerFault(
                "the server stopped before the references were ready: check the server's log, then try again"
            )
        self._provenance = decode_call_provenance(self._choice.named, last.provenance, self._provenance)
        self._corpus_digest = last.corpus_digest
        if last.HasField("generation"):
            self._generation = decode_provenance(last.generation)
        self._failures += failures
        self._so_far = _plus(self._so_far, last)


_SUMMED = (
    "entries_done",
    "synthetic_answers_stored",
    "synthetic_answers_generated",
    "synthetic_answers_fallback",
)


def _plus(so_far: PrepareProgress, step: references_pb2.PrepareProgress) -> PrepareProgress:
    hits = {name: count + getattr(step.cache_hits, name) for name, count in asdict(so_far.cache_hits).items()}
    sums = {name: getattr(so_far, name) + getattr(step, name) for name in _SUMMED}
    return replace(so_far, cache_hits=CacheHits(**hits), **sums)
