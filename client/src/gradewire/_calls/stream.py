"""One call of `score_stream`."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from gradewire._calls.decode import complete_item, decode_call_provenance, decode_results, failed_item
from gradewire._calls.row_stream import Connection, RowStream
from gradewire.items import ItemLike, ItemProblem, encode_item
from gradewire.metric_types.choice import MetricChoice
from gradewire.model_list import Limits
from gradewire.results import ItemScores, MetricScore, Provenance, Status
from gradewire.transport import Transport
from gradewire_proto.conventions.telemetry_names import CLIENT_STREAM
from gradewire_proto.v1 import scoring_pb2, types_pb2


class Stream(RowStream[types_pb2.Item, ItemScores, MetricScore]):
    """A running call of `score_stream`.

    Args:
        transport: Carries it.
        choice: The metrics, or how to find out which they are.
        source: As `RowStream`.
        limits: As there.
        stall_s: As there.
    """

    def __init__(
        self,
        transport: Transport,
        choice: MetricChoice | Callable[[], Awaitable[MetricChoice]],
        source: AsyncIterable[ItemLike],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
    ) -> None:
        super().__init__(source, limits, stall_s, "item")
        self._transport = transport
        self._named = choice
        self._provenance: dict[str, Provenance] = {}

    async def _begin(self) -> None:
        self._choice = self._named if isinstance(self._named, MetricChoice) else await self._named()

    @property
    def _span_name(self) -> str:
        return CLIENT_STREAM

    @property
    def _accepted(self) -> bool:
        return bool(self._provenance)

    def _encode(self, index: int, row: Any, max_bytes: int) -> types_pb2.Item | ItemProblem:
        return encode_item(index, row, max_bytes=max_bytes, images=self._choice.shows_images)

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> ItemScores:
        return failed_item(self._choice, index, identifier, failure)

    def _config(self) -> scoring_pb2.ScoreStreamRequest:
        choice = self._choice
        config = scoring_pb2.ScoreStreamConfig(metrics=choice.specs, reference_set=choice.reference_set)
        return scoring_pb2.ScoreStreamRequest(config=config)

    def _rows(self, messages: Sequence[types_pb2.Item]) -> scoring_pb2.ScoreStreamRequest:
        return scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=messages))

    def _start(
        self, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest]
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        return self._transport.score_stream(requests)

    def _read(self, reply: scoring_pb2.ScoreStreamResponse, connection: Connection) -> bool:
        if reply.provenance:
            self._provenance = decode_call_provenance(self._choice, reply.provenance, self._provenance)
        for item in reply.items:
            index, waiting = self.waiting_for(connection, item.index)
            waiting.parts |= decode_results(self._choice, self._provenance, index, item.results)
            if item.complete:
                self.answered(index, complete_item(self._choice, index, waiting.message.id, waiting.parts))
        return bool(reply.items)
