"""One call of `score`: cuts it into requests, keeps a few in flight, puts the answers in order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from gradewire._calls.chunks import (
    CHUNK_ITEMS,
    JUDGE_CHUNK_ITEMS,
    UNASKED_BYTES,
    UNASKED_ITEMS,
    Chunk,
    ChunkLimits,
    Deadline,
    chunk_limits,
    cut,
    whole_limits,
)
from gradewire._calls.corpus import counting_over_request, too_many
from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._transport.retries import Retries, until_answered
from gradewire.call_options import Priority
from gradewire.errors import DeadlineExceeded, ServerFault, TransportError
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.results import ItemScores, Provenance, Status
from gradewire.score_report import ScoreReport
from gradewire.transport import Transport
from gradewire_proto.v1 import scoring_pb2, types_pb2

CHUNKS_IN_FLIGHT = 4
# So many failures without an answer between them say that the server is gone; the rest is not tried.
_GIVE_UP_AFTER = 2 * CHUNKS_IN_FLIGHT

_PRIORITIES: Mapping[Priority, scoring_pb2.Priority.ValueType] = {
    "normal": scoring_pb2.PRIORITY_UNSPECIFIED,
    "bulk": scoring_pb2.PRIORITY_BULK,
}

ProgressCallback = Callable[[int, int], None]


class Batch:
    """A running call of `score`.

    Args:
        transport: Carries it.
        choice: The metrics.
        items: The caller's items.
        deadline: Of the whole call.
        priority: Whether the requests of others go first.
        progress: Told (items done, items in all) after every request; an exception from it ends the call.
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
        self._transport = transport
        self._choice = choice
        self._items = items
        self._deadline = deadline
        self._progress = progress
        self._priority = _PRIORITIES[priority]
        self._results: list[ItemScores | None] = [None] * len(items)
        self._provenance: dict[str, Provenance] = {}
        self._done = 0
        self._answered = 0
        self._failed_in_a_row = 0
        self._first_error: TransportError | None = None

    async def run(self, limits: Callable[[], Awaitable[Limits]]) -> ScoreReport:
        """Scores all items.

        An item that cannot be sent becomes INVALID_INPUT. A request that fails for want of a server or of time makes
        its items UNAVAILABLE or TIMEOUT, unless no request was answered at all.

        Args:
            limits: Asks the server what one request may hold; called only when the items may be too much for one.

        Raises:
            InvalidRequest: A metric counts over the items of one request, and these do not fit into one.
            GradewireError: No request was answered, or a reply says that the call itself is wrong.
        """
        if (chunk := self._single_chunk()) is not None:
            if chunk.messages or not self._items:
                await self._send(chunk)
            self._tell()
        else:
            overhead_bytes = self._request(()).ByteSize()
            if counting_over_request(self._choice.specs):
                await self._run_whole(whole_limits(await limits(), overhead_bytes=overhead_bytes))
            else:
                wanted_items = JUDGE_CHUNK_ITEMS if self._choice.asks_judge else CHUNK_ITEMS
                await self._run_chunks(
                    chunk_limits(await limits(), overhead_bytes=overhead_bytes, wanted_items=wanted_items)
                )
        results = tuple(result for result in self._results if result is not None)
        return ScoreReport(results, self._choice.labels, self._provenance)

    def _single_chunk(self) -> Chunk[types_pb2.Item] | None:
        """All items as one request that every server takes, if they are so few and so small."""
        if len(self._items) > UNASKED_ITEMS:
            return None
        elements, problems = [], []
        for index, item in enumerate(self._items):
            message = encode_item(index, item, max_bytes=UNASKED_BYTES, images=self._choice.shows_images)
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

    async def _run_whole(self, limits: ChunkLimits) -> None:
        chunks = list(cut(self._encoded(limits.max_item_bytes), limits))
        if len(chunks) > 1:
            raise too_many(self._choice.specs, len(self._items), limits.max_items)
        for chunk in chunks:
            await self._send(chunk)
        self._tell()

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

    def _encoded(self, max_item_bytes: int) -> Iterator[tuple[int, types_pb2.Item]]:
        for index, item in enumerate(self._items):
            message = encode_item(index, item, max_bytes=max_item_bytes, images=self._choice.shows_images)
            if isinstance(message, ItemProblem):
                self._reject(index, message)
            else:
                yield index, message

    def _reject(self, index: int, problem: ItemProblem) -> None:
        self._set(index, failed_item(self._choice, index, problem.id, (Status.INVALID_INPUT, problem.message)))

    async def _work(self, chunks: Iterator[Chunk[types_pb2.Item]]) -> None:
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

    async def _send(self, chunk: Chunk[types_pb2.Item]) -> None:
        request = self._request(chunk.messages)
        reply = await self._answer(request)
        provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        self._provenance = self._provenance or provenance
        if len(reply.items) != len(chunk.indices):
            raise ServerFault(f"the server answered {len(reply.items)} of {len(chunk.indices)} items: report it")
        for index, item in zip(chunk.indices, reply.items, strict=True):
            scores = decode_results(self._choice, self._provenance, index, item.results)
            self._set(index, complete_item(self._choice, index, item.id, scores))
        self._answered += 1
        self._failed_in_a_row = 0

    async def _answer(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        return await until_answered(
            lambda: self._transport.score(request, timeout_s=self._deadline.remaining_s()),
            Retries(self._deadline.left_s),
        )

    def _request(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreRequest:
        choice = self._choice
        return scoring_pb2.ScoreRequest(
            items=messages, metrics=choice.specs, reference_set=choice.reference_set, priority=self._priority
        )

    def _fail(self, chunk: Chunk[types_pb2.Item], error: TransportError) -> None:
        status = Status.TIMEOUT if isinstance(error, DeadlineExceeded) else Status.UNAVAILABLE
        for index, message in zip(chunk.indices, chunk.messages, strict=True):
            self._set(index, failed_item(self._choice, index, message.id, (status, str(error))))

    def _set(self, index: int, scores: ItemScores) -> None:
        self._results[index] = scores
        self._done += 1

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, len(self._items))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
