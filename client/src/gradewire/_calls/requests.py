"""Split a call with many rows into requests, keep a few in flight, and put the results in order."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from google.protobuf.message import Message

from gradewire._calls.retries import Retries, until_answered
from gradewire.errors import DeadlineExceeded, InvalidRequest, ServerFault, TransportError
from gradewire.items import ItemProblem
from gradewire.options import Priority
from gradewire.results import Limits, Provenance, Status
from gradewire.transport import RpcMethod, Transport
from gradewire_proto.v1 import scoring_pb2

CHUNK_BYTES = 1024 * 1024
CHUNK_ITEMS = 128
"""Maximum number of items per request. Fewer items would not fill the server's batches; more might miss deadlines."""
# Every server accepts requests of these sizes, so small calls need not request the server's limits.
ASSUMED_ITEMS = 32
ASSUMED_BYTES = 256 * 1024
# The default maximum size of a message in gRPC, in bytes.
SAFE_MESSAGE_BYTES = 4 * 1024 * 1024
# Maximum size of the tag and length that precede a repeated field's element, in bytes.
_ELEMENT_BYTES = 8

CHUNKS_IN_FLIGHT = 4
# After this many consecutive failures, the client gives up on the remaining requests.
_GIVE_UP_AFTER = 2 * CHUNKS_IN_FLIGHT

ProgressCallback = Callable[[int, int], None]

M = TypeVar("M", bound=Message)
R = TypeVar("R")

PRIORITIES: Mapping[Priority, scoring_pb2.Priority.ValueType] = {
    "normal": scoring_pb2.PRIORITY_UNSPECIFIED,
    "bulk": scoring_pb2.PRIORITY_BULK,
}


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Limits on one request. An element above `max_bytes`, but not above `max_item_bytes`, gets a separate request."""

    max_items: int = CHUNK_ITEMS
    max_bytes: int = CHUNK_BYTES
    max_item_bytes: int = SAFE_MESSAGE_BYTES - 1024


def chunk_limits(limits: Limits | None, *, overhead_bytes: int, wanted_items: int = CHUNK_ITEMS) -> ChunkLimits:
    """Return the limits on one request, given the server's limits and the size of the request's other fields.

    None or 0 means that a limit is unknown.
    """
    most = uncut_limits(limits, overhead_bytes=overhead_bytes)
    return ChunkLimits(min(most.max_items, wanted_items), min(CHUNK_BYTES, most.max_bytes), most.max_item_bytes)


def uncut_limits(limits: Limits | None, *, overhead_bytes: int) -> ChunkLimits:
    """Return the server's full limits, for a request that cannot be split."""
    max_items = (limits and limits.max_items_per_request) or CHUNK_ITEMS
    message_bytes = (limits and limits.max_message_bytes) or SAFE_MESSAGE_BYTES
    room = max(1, message_bytes - overhead_bytes - 64)
    return ChunkLimits(max_items, room, room)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[M]):
    indices: list[int]
    messages: list[M]


def cut(elements: Iterable[tuple[int, M]], limits: ChunkLimits) -> Iterator[Chunk[M]]:
    """Split elements into nonempty chunks, lazily and in order."""
    indices: list[int] = []
    messages: list[M] = []
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
    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._end = time.monotonic() + deadline_s

    def remaining_s(self) -> float:
        """Return the seconds left; raise DeadlineExceeded after the deadline."""
        if (left := self.left_s()) <= 0:
            raise DeadlineExceeded(
                f"the call did not finish within deadline_s={self._deadline_s:g}: use a larger deadline_s, or fewer "
                "items"
            )
        return left

    def left_s(self) -> float:
        return self._end - time.monotonic()


@dataclass(slots=True)
class OpenRow(Generic[M]):
    """A row that still needs results, with the results received so far."""

    message: M
    parts: dict[str, Any] = field(default_factory=dict)


class Rows(ABC, Generic[M, R]):
    """A call's rows (items or pairs), with methods that encode rows and decode their results.

    Attributes:
        noun: Name of a row in error messages.
        ahead: Maximum number of rows that a stream reads before the caller consumes their results.
        chunk_rows: Maximum number of rows per request; the server's limit may be lower.
        provenance: Provenance from the server, by label; empty until the server accepts the call.
    """

    noun: ClassVar[str]
    unary: ClassVar[RpcMethod[Any, Any]]
    stream: ClassVar[RpcMethod[Any, Any]]
    span_name: ClassVar[str]
    ahead: ClassVar[int]
    chunk_rows: int
    needs_one_request: bool = False
    emits_events: bool = True

    def __init__(self) -> None:
        self.provenance: dict[str, Provenance] = {}

    @abstractmethod
    def encode(self, index: int, row: Any, max_bytes: int) -> M | ItemProblem:
        """Return a row's message, or the reason why the row cannot be sent."""

    @abstractmethod
    def failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> R: ...

    @abstractmethod
    def request(self, messages: Sequence[M]) -> Message: ...

    @abstractmethod
    def stream_config(self) -> Message: ...

    @abstractmethod
    def stream_request(self, messages: Sequence[M], deadline_s: float) -> Message:
        """Return a message of a stream with a time limit for its rows in seconds, at least the server's default."""

    @abstractmethod
    def received(self, reply: Any) -> Sequence[Any]:
        """Store a reply's provenance and return the reply's results; raise the errors of `decode_call_provenance`."""

    @abstractmethod
    def completed(self, index: int, row: OpenRow[M], result: Any) -> R | None:
        """Add a result to a row. Return the row's result if it is now complete. Raise ServerFault for wrong metrics."""

    def too_many(self, rows: int, max_rows: int) -> InvalidRequest:
        return InvalidRequest(f"{rows} {self.noun}s do not fit into one request: give at most {max_rows}")


class Batch(Generic[M, R]):
    """A running call. After each request, the batch calls `progress(finished_rows, all_rows)`.

    An exception in `progress` ends the call.
    """

    def __init__(
        self,
        transport: Transport,
        rows: Rows[M, R],
        given: Sequence[Any],
        deadline: Deadline,
        progress: ProgressCallback | None,
    ) -> None:
        self._transport = transport
        self._rows = rows
        self._given = given
        self._deadline = deadline
        self._progress = progress
        self._results: list[R | None] = [None] * len(given)
        self._done = 0
        self._answered = 0
        self._failed_in_a_row = 0
        self._first_error: TransportError | None = None

    async def run(self, limits: Callable[[], Awaitable[Limits]]) -> list[R]:
        """Return the results of all rows, in order.

        A row that cannot be sent gets the status INVALID_INPUT. If only some requests fail, their rows get the status
        UNAVAILABLE or TIMEOUT.

        Args:
            limits: A function that returns the server's limits; called only if the rows may exceed a limit.

        Raises:
            InvalidRequest: The rows must be in one request but do not fit.
            GradewireError: All requests failed, or the call itself is wrong.
        """
        if (chunk := self._single_chunk()) is not None:
            if chunk.messages or not self._given:
                await self._send(chunk)
            self._report()
        else:
            await self._run_chunks(self._chunks(await limits()))
        return [result for result in self._results if result is not None]

    def _single_chunk(self) -> Chunk[M] | None:
        if len(self._given) > min(ASSUMED_ITEMS, self._rows.chunk_rows):
            return None
        elements, problems = [], []
        for index, row in enumerate(self._given):
            message = self._rows.encode(index, row, ASSUMED_BYTES)
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

    def _chunks(self, limits: Limits) -> Iterator[Chunk[M]]:
        rows, overhead_bytes = self._rows, self._rows.request(()).ByteSize()
        if not rows.needs_one_request:
            most = chunk_limits(limits, overhead_bytes=overhead_bytes, wanted_items=rows.chunk_rows)
            return cut(self._encoded(most.max_item_bytes), most)
        most = uncut_limits(limits, overhead_bytes=overhead_bytes)
        chunks = list(cut(self._encoded(most.max_item_bytes), most))
        if len(chunks) > 1:
            raise rows.too_many(len(self._given), most.max_items)
        return iter(chunks)

    async def _run_chunks(self, chunks: Iterator[Chunk[M]]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(CHUNKS_IN_FLIGHT):
                    tasks.create_task(self._work(chunks))
        except BaseExceptionGroup as group:
            raise _first(group) from None
        if self._first_error is not None and not self._answered:
            raise self._first_error

    def _encoded(self, max_item_bytes: int) -> Iterator[tuple[int, M]]:
        for index, row in enumerate(self._given):
            message = self._rows.encode(index, row, max_item_bytes)
            if isinstance(message, ItemProblem):
                self._reject(index, message)
            else:
                yield index, message

    def _reject(self, index: int, problem: ItemProblem) -> None:
        self._set(index, self._rows.failed(index, problem.id, (Status.INVALID_INPUT, problem.message)))

    async def _work(self, chunks: Iterator[Chunk[M]]) -> None:
        for chunk in chunks:
            try:
                await self._send(chunk)
            except TransportError as error:
                self._first_error = self._first_error or error
                self._failed_in_a_row += 1
                self._fail(chunk, error)
                # Only a ServerFault may concern this request alone. Other errors were retried until the deadline, or
                # cannot be retried.
                beyond_help = not isinstance(error, ServerFault)
                if beyond_help or not self._answered or self._failed_in_a_row >= _GIVE_UP_AFTER:
                    for rest in chunks:
                        self._fail(rest, error)
            self._report()

    async def _send(self, chunk: Chunk[M]) -> None:
        request = self._rows.request(chunk.messages)
        reply = await until_answered(
            lambda: self._transport.unary(self._rows.unary, request, timeout_s=self._deadline.remaining_s()),
            Retries(self._deadline.left_s),
        )
        results = self._rows.received(reply)
        if len(results) != len(chunk.indices):
            raise ServerFault(
                f"the server answered {len(results)} of {len(chunk.indices)} {self._rows.noun}s: report this defect"
            )
        completed = [
            self._rows.completed(index, OpenRow(message), result)
            for index, message, result in zip(chunk.indices, chunk.messages, results, strict=True)
        ]
        for index, result in zip(chunk.indices, completed, strict=True):
            if result is None:
                raise ServerFault(f"the server left out a part of {self._rows.noun}s[{index}]: report this defect")
            self._set(index, result)
        self._answered += 1
        self._failed_in_a_row = 0

    def _fail(self, chunk: Chunk[M], error: TransportError) -> None:
        status = Status.TIMEOUT if isinstance(error, DeadlineExceeded) else Status.UNAVAILABLE
        for index, message in zip(chunk.indices, chunk.messages, strict=True):
            self._set(index, self._rows.failed(index, getattr(message, "id", ""), (status, str(error))))

    def _set(self, index: int, result: R) -> None:
        self._results[index] = result
        self._done += 1

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._done, len(self._given))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
