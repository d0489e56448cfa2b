"""One call about many rows: cuts it into requests, keeps a few in flight, puts the answers in order."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from gradewire._calls.chunks import UNASKED_BYTES, UNASKED_ITEMS, Chunk, ChunkLimits, Deadline, chunk_limits, cut
from gradewire.errors import DeadlineExceeded, ServerFault, TransportError
from gradewire.items import ItemProblem
from gradewire.model_list import Limits
from gradewire.results import Status
from gradewire.transport import Transport

CHUNKS_IN_FLIGHT = 4
# So many failures without an answer between them say that the server is gone; the rest is not tried.
_GIVE_UP_AFTER = 2 * CHUNKS_IN_FLIGHT

ProgressCallback = Callable[[int, int], None]

M = TypeVar("M", bound=Message)
R = TypeVar("R")


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
            self._tell()
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
        if len(self._rows) > min(UNASKED_ITEMS, self._chunk_items):
            return None
        elements, problems = [], []
        for index, row in enumerate(self._rows):
            message = self._encode(index, row, UNASKED_BYTES)
            if not isinstance(message, ItemProblem):
                elements.append((index, message))
            elif message.too_large:
                return None
            else:
                problems.append((index, message))
        chunks = list(cut(elements, ChunkLimits(max_bytes=UNASKED_BYTES)))
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
            self._tell()

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

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, len(self._rows))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
