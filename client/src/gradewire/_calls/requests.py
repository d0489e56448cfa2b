"""One call of `score`: many rows cut into requests, a few in flight, the answers put in order."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._calls.retries import Retries, until_answered
from gradewire.errors import DeadlineExceeded, InvalidRequest, ServerFault, TransportError
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metrics.choice import MetricChoice
from gradewire.options import Priority
from gradewire.results import ItemScores, Limits, Provenance, ScoreReport, Status
from gradewire.transport import SCORE, Transport
from gradewire_proto.descriptors import corpus_of
from gradewire_proto.v1 import scoring_pb2, types_pb2

# Small enough that results come before a deadline and show as progress, large enough for full batches in the encoder.
CHUNK_ITEMS = 128
CHUNK_BYTES = 1024 * 1024
# Where a judge takes a second or more for an item: what is in flight must be done within the longest deadline that a
# server gives a call (ten minutes).
JUDGE_CHUNK_ITEMS = 32
# What is sent without asking the server for its limits; nobody sets them as low as this.
ASSUMED_ITEMS = 32
ASSUMED_BYTES = 256 * 1024
# The default limit of every gRPC server.
SAFE_MESSAGE_BYTES = 4 * 1024 * 1024
# Tag and length of one element of a repeated field.
_ELEMENT_BYTES = 8


T = TypeVar("T", bound=Message)

CHUNKS_IN_FLIGHT = 4
# So many failures without an answer between them say that the server is gone; the rest is not tried.
_GIVE_UP_AFTER = 2 * CHUNKS_IN_FLIGHT

ProgressCallback = Callable[[int, int], None]

M = TypeVar("M", bound=Message)
R = TypeVar("R")

_REMEDY = (
    "or prepare the references as a set (client.prepare or `gradewire prepare`, with the metric's corpus or idf set to "
    "prepared) and name it as reference_set"
)

PRIORITIES: Mapping[Priority, scoring_pb2.Priority.ValueType] = {
    "normal": scoring_pb2.PRIORITY_UNSPECIFIED,
    "bulk": scoring_pb2.PRIORITY_BULK,
}


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Bounds on the size of one request.

    Attributes:
        max_items: Elements of one request.
        max_bytes: A request is closed before it grows beyond this.
        max_item_bytes: A single element may be this large; it then travels alone.
    """

    max_items: int = CHUNK_ITEMS
    max_bytes: int = CHUNK_BYTES
    max_item_bytes: int = SAFE_MESSAGE_BYTES - 1024


def chunk_limits(limits: Limits | None, *, overhead_bytes: int, wanted_items: int = CHUNK_ITEMS) -> ChunkLimits:
    """How large one request may be, by what the server says (None or 0: nothing) and what else the request holds."""
    most = uncut_limits(limits, overhead_bytes=overhead_bytes)
    return ChunkLimits(min(most.max_items, wanted_items), min(CHUNK_BYTES, most.max_bytes), most.max_item_bytes)


def uncut_limits(limits: Limits | None, *, overhead_bytes: int) -> ChunkLimits:
    """As `chunk_limits`, for a request that cannot be cut: all that the server takes."""
    max_items = (limits and limits.max_items_per_request) or CHUNK_ITEMS
    message_bytes = (limits and limits.max_message_bytes) or SAFE_MESSAGE_BYTES
    room = max(1, message_bytes - overhead_bytes - 64)
    return ChunkLimits(max_items, room, room)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """The elements of one request, with their positions in the call."""

    indices: list[int]
    messages: list[T]


def cut(elements: Iterable[tuple[int, T]], limits: ChunkLimits) -> Iterator[Chunk[T]]:
    """Cuts in order, lazily; no chunk is empty."""
    indices: list[int] = []
    messages: list[T] = []
    filled_bytes = 0
    for index, message in elements:
        size = message.ByteSize() + _ELEMENT_BYTES
        if messages and (len(messages) == limits.max_items or filled_bytes + size > limits.max_bytes):
            yield Chunk(indices, messages)
            indices, messages, filled_bytes = [], [], 0
        indices.append(index)
        messages.append(message)
        filled_bytes += size
    if messages:
        yield Chunk(indices, messages)


class Deadline:
    """A point in time that the parts of a call share."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._end = time.monotonic() + deadline_s

    def remaining_s(self) -> float:
        """Seconds left.

        Raises:
            DeadlineExceeded: None is left.
        """
        if (left := self.left_s()) <= 0:
            raise DeadlineExceeded(
                f"not done within deadline_s={self._deadline_s:g}: give a larger deadline_s or fewer items"
            )
        return left

    def left_s(self) -> float:
        """Seconds left; 0 or less where there is none."""
        return self._end - time.monotonic()


class RequestBatch(ABC, Generic[M, R]):
    """A running call.

    Args:
        transport: Carries it.
        rows: What the caller gave.
        deadline: Of the whole call.
        progress: Told (rows done, rows in all) after every request; an exception from it ends the call.
        chunk_items: Most rows of one request, where the server takes as many.
    """

    def __init__(
        self,
        transport: Transport,
        rows: Sequence[Any],
        deadline: Deadline,
        progress: ProgressCallback | None,
        chunk_items: int,
    ) -> None:
        self._transport = transport
        self._rows = rows
        self._deadline = deadline
        self._progress = progress
        self._chunk_items = chunk_items
        self._results: list[R | None] = [None] * len(rows)
        self._done = 0
        self._answered = 0
        self._failed_in_a_row = 0
        self._first_error: TransportError | None = None

    async def run_rows(self, limits: Callable[[], Awaitable[Limits]]) -> list[R]:
        """The results of all rows, in order.

        A row that cannot be sent becomes INVALID_INPUT. A request that fails for want of a server or of time makes
        its rows UNAVAILABLE or TIMEOUT, unless no request was answered at all.

        Args:
            limits: Asks the server what one request may hold; called only when the rows may be too much for one.

        Raises:
            GradewireError: No request was answered, or a reply says that the call itself is wrong.
        """
        if (chunk := self._single_chunk()) is not None:
            if chunk.messages or not self._rows:
                await self._send(chunk)
            self._report()
        else:
            await self._run_many(await limits(), self._request(()).ByteSize())
        return [result for result in self._results if result is not None]

    @abstractmethod
    def _encode(self, index: int, row: Any, max_bytes: int) -> M | ItemProblem:
        """The message of a row, or why there is none."""

    @abstractmethod
    def _request(self, messages: Sequence[M]) -> Message:
        """A request with these messages."""

    @abstractmethod
    async def _exchange(self, chunk: Chunk[M]) -> Sequence[R]:
        """Sends a chunk; a result for each of its messages."""

    @abstractmethod
    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> R:
        """The result of a row that has none."""

    async def _run_many(self, limits: Limits, overhead_bytes: int) -> None:
        await self._run_chunks(chunk_limits(limits, overhead_bytes=overhead_bytes, wanted_items=self._chunk_items))

    def _single_chunk(self) -> Chunk[M] | None:
        """All rows as one request that every server takes, if they are so few and so small."""
        if len(self._rows) > min(ASSUMED_ITEMS, self._chunk_items):
            return None
        elements, problems = [], []
        for index, row in enumerate(self._rows):
            message = self._encode(index, row, ASSUMED_BYTES)
            if not isinstance(message, ItemProblem):
                elements.append((index, message))
            elif message.too_large:
                return None
            else:
                problems.append((index, message))
        chunks = list(cut(elements, ChunkLimits(max_bytes=ASSUMED_BYTES)))
        if len(chunks) > 1:
            return None
        for index, problem in problems:
            self._reject(index, problem)
        return chunks[0] if chunks else Chunk([], [])

    async def _run_chunks(self, limits: ChunkLimits) -> None:
        chunks = cut(self._encoded(limits.max_item_bytes), limits)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(CHUNKS_IN_FLIGHT):
                    tasks.create_task(self._work(chunks))
        except BaseExceptionGroup as group:
            raise _first(group) from None
        if self._first_error is not None and not self._answered:
            raise self._first_error

    def _encoded(self, max_item_bytes: int) -> Iterator[tuple[int, M]]:
        for index, row in enumerate(self._rows):
            message = self._encode(index, row, max_item_bytes)
            if isinstance(message, ItemProblem):
                self._reject(index, message)
            else:
                yield index, message

    def _reject(self, index: int, problem: ItemProblem) -> None:
        self._set(index, self._failed(index, problem.id, (Status.INVALID_INPUT, problem.message)))

    async def _work(self, chunks: Iterator[Chunk[M]]) -> None:
        for chunk in chunks:
            try:
                await self._send(chunk)
            except TransportError as error:
                self._first_error = self._first_error or error
                self._failed_in_a_row += 1
                self._fail(chunk, error)
                # Whatever is no defect has been tried until the deadline, or cannot be helped by trying.
                beyond_help = not isinstance(error, ServerFault)
                if beyond_help or not self._answered or self._failed_in_a_row >= _GIVE_UP_AFTER:
                    for rest in chunks:
                        self._fail(rest, error)
            self._report()

    async def _send(self, chunk: Chunk[M]) -> None:
        results = await self._exchange(chunk)
        for index, result in zip(chunk.indices, results, strict=True):
            self._set(index, result)
        self._answered += 1
        self._failed_in_a_row = 0

    def _fail(self, chunk: Chunk[M], error: TransportError) -> None:
        status = Status.TIMEOUT if isinstance(error, DeadlineExceeded) else Status.UNAVAILABLE
        for index, message in zip(chunk.indices, chunk.messages, strict=True):
            self._set(index, self._failed(index, getattr(message, "id", ""), (status, str(error))))

    def _set(self, index: int, result: R) -> None:
        self._results[index] = result
        self._done += 1

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._done, len(self._rows))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def counting_over_request(specs: Sequence[types_pb2.MetricSpec]) -> list[str]:
    """Names of the metrics whose corpus is the request's items, each once."""
    found = (spec.WhichOneof("metric") or "" for spec in specs if corpus_of(spec) == types_pb2.CORPUS_REQUEST)
    return list(dict.fromkeys(found))


def check_streamed(specs: Sequence[types_pb2.MetricSpec]) -> None:
    """Refuses metrics that need all items at once, which a stream never has; raises InvalidRequest."""
    if names := counting_over_request(specs):
        raise InvalidRequest(
            f"{', '.join(names)}: corpus=request counts weights over the items of one call, and a stream has no such "
            f"call: score them with score(), {_REMEDY}"
        )


def too_many(specs: Sequence[types_pb2.MetricSpec], items: int, max_items: int) -> InvalidRequest:
    """The error for items that do not fit into the one request that they need."""
    return InvalidRequest(
        f"{', '.join(counting_over_request(specs))}: corpus=request counts weights over the items of one request, and "
        f"these {items} do not fit into one: give at most {max_items} (and no more text than a message holds) in a "
        f"call, {_REMEDY}"
    )


class Batch(RequestBatch[types_pb2.Item, ItemScores]):
    """A running call of `score`.

    Args:
        transport: Carries it.
        choice: The metrics.
        items: The caller's items.
        deadline: Of the whole call.
        priority: Whether the requests of others go first.
        progress: As `RequestBatch`.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what the caller has said
        self,
        transport: Transport,
        choice: MetricChoice,
        items: Sequence[ItemLike],
        deadline: Deadline,
        progress: ProgressCallback | None,
        priority: Priority = "normal",
    ) -> None:
        chunk_items = JUDGE_CHUNK_ITEMS if choice.asks_judge else CHUNK_ITEMS
        super().__init__(transport, items, deadline, progress, chunk_items)
        self._choice = choice
        self._priority = PRIORITIES[priority]
        self._provenance: dict[str, Provenance] = {}

    async def run(self, limits: Callable[[], Awaitable[Limits]]) -> ScoreReport:
        """Scores all items; as `run_rows`.

        Raises:
            InvalidRequest: A metric counts over the items of one request, and these do not fit into one.
            GradewireError: As there.
        """
        results = await self.run_rows(limits)
        return ScoreReport(tuple(results), self._choice.labels, self._provenance)

    async def _run_many(self, limits: Limits, overhead_bytes: int) -> None:
        if not counting_over_request(self._choice.specs):
            await super()._run_many(limits, overhead_bytes)
            return
        whole = uncut_limits(limits, overhead_bytes=overhead_bytes)
        chunks = list(cut(self._encoded(whole.max_item_bytes), whole))
        if len(chunks) > 1:
            raise too_many(self._choice.specs, len(self._rows), whole.max_items)
        for chunk in chunks:
            await self._send(chunk)
        self._report()

    def _encode(self, index: int, row: Any, max_bytes: int) -> types_pb2.Item | ItemProblem:
        return encode_item(index, row, max_bytes=max_bytes, images=self._choice.shows_images)

    def _request(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreRequest:
        choice = self._choice
        return scoring_pb2.ScoreRequest(
            items=messages, metrics=choice.specs, reference_set=choice.reference_set, priority=self._priority
        )

    async def _exchange(self, chunk: Chunk[types_pb2.Item]) -> list[ItemScores]:
        request = self._request(chunk.messages)
        reply = await until_answered(
            lambda: self._transport.unary(SCORE, request, timeout_s=self._deadline.remaining_s()),
            Retries(self._deadline.left_s),
        )
        provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        self._provenance = self._provenance or provenance
        if len(reply.items) != len(chunk.indices):
            raise ServerFault(f"the server answered {len(reply.items)} of {len(chunk.indices)} items: report it")
        return [
            complete_item(
                self._choice, index, item.id, decode_results(self._choice, self._provenance, index, item.results)
            )
            for index, item in zip(chunk.indices, reply.items, strict=True)
        ]

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ItemScores:
        return failed_item(self._choice, index, identifier, failure)
