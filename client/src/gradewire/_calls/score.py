"""One call of `score`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gradewire._calls.chunks import CHUNK_ITEMS, JUDGE_CHUNK_ITEMS, Chunk, Deadline, cut, whole_limits
from gradewire._calls.corpus import counting_over_request, too_many
from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._calls.requests import ProgressCallback, RequestBatch
from gradewire._transport.retries import Retries, until_answered
from gradewire.call_options import Priority
from gradewire.errors import ServerFault
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.results import ItemScores, Provenance, Status
from gradewire.score_report import ScoreReport
from gradewire.transport import Transport
from gradewire_proto.v1 import scoring_pb2, types_pb2

PRIORITIES: Mapping[Priority, scoring_pb2.Priority.ValueType] = {
    "normal": scoring_pb2.PRIORITY_UNSPECIFIED,
    "bulk": scoring_pb2.PRIORITY_BULK,
}


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
        whole = whole_limits(limits, overhead_bytes=overhead_bytes)
        chunks = list(cut(self._encoded(whole.max_item_bytes), whole))
        if len(chunks) > 1:
            raise too_many(self._choice.specs, len(self._rows), whole.max_items)
        for chunk in chunks:
            await self._send(chunk)
        self._tell()

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
            lambda: self._transport.score(request, timeout_s=self._deadline.remaining_s()),
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
