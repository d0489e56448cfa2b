"""One call of `compare`, and one of `compare_stream`."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from gradewire._calls.decode import decode_comparison, decode_one_provenance
from gradewire._calls.requests import PRIORITIES, Chunk, Deadline, ProgressCallback, RequestBatch
from gradewire._calls.stream import RowStream, StreamAttempt
from gradewire._transport.retries import Retries, until_answered
from gradewire.errors import ServerFault
from gradewire.items import ItemProblem
from gradewire.metrics import Compare
from gradewire.options import CompareOptions, Priority, check_comparison, check_priority
from gradewire.pairs import Comparison, PairLike, encode_pair
from gradewire.results import Limits, Provenance, Status
from gradewire.transport import COMPARE, COMPARE_STREAM, Transport
from gradewire_proto.spans import CLIENT_COMPARE_STREAM
from gradewire_proto.v1 import judging_pb2, types_pb2

# Each pair is two questions to the judge: as much work as a request of items has.
CHUNK_PAIRS = 16
# What a judge on a CPU has in work at a time must fit into the deadline that a server gives each pair.
READ_AHEAD_PAIRS = 64


@dataclass(frozen=True, slots=True)
class ChosenComparison:
    """How a call compares.

    Attributes:
        compare: As the caller said it, with the call's defaults filled in.
        priority: Whether the requests of others go first; a stream's always do.
    """

    compare: Compare
    priority: Priority = "normal"

    @classmethod
    def of(cls, method: str, by: object, options: CompareOptions) -> Self:
        """What the caller of a client's method, CLASS.METHOD, said.

        Raises:
            TypeError: The method has no such option; said as Python says it.
            InvalidRequest: An option is of a wrong type, or `by` is no comparison.
        """
        if unknown := options.keys() - CompareOptions.__optional_keys__:
            raise TypeError(f"{method}() got an unexpected keyword argument {min(unknown)!r}")
        priority: Priority = options.get("priority") or "normal"
        check_priority(priority)
        return cls(check_comparison(by, options.get("judge")), priority)

    @property
    def parameters(self) -> types_pb2.CompareParameters:
        """The same for the wire."""
        return self.compare.to_spec().compare

    def encode(self, index: int, row: Any, max_bytes: int) -> judging_pb2.Pair | ItemProblem:
        """The message of a pair, or why there is none."""
        return encode_pair(index, row, max_bytes=max_bytes, images=bool(self.compare.image))


class PairBatch(RequestBatch[judging_pb2.Pair, Comparison]):
    """A running call of `compare`.

    Args:
        transport: Carries it.
        chosen: How it compares.
        pairs: The caller's pairs.
        deadline: Of the whole call.
        progress: As `RequestBatch`.
    """

    def __init__(
        self,
        transport: Transport,
        chosen: ChosenComparison,
        pairs: Sequence[PairLike],
        deadline: Deadline,
        progress: ProgressCallback | None,
    ) -> None:
        super().__init__(transport, pairs, deadline, progress, CHUNK_PAIRS)
        self._chosen = chosen
        self._provenance: Provenance | None = None

    def _encode(self, index: int, row: Any, max_bytes: int) -> judging_pb2.Pair | ItemProblem:
        return self._chosen.encode(index, row, max_bytes)

    def _request(self, messages: Sequence[judging_pb2.Pair]) -> judging_pb2.CompareRequest:
        chosen = self._chosen
        return judging_pb2.CompareRequest(
            pairs=messages, parameters=chosen.parameters, priority=PRIORITIES[chosen.priority]
        )

    async def _exchange(self, chunk: Chunk[judging_pb2.Pair]) -> list[Comparison]:
        request = self._request(chunk.messages)
        reply = await until_answered(
            lambda: self._transport.unary(COMPARE, request, timeout_s=self._deadline.remaining_s()),
            Retries(self._deadline.left_s),
        )
        self._provenance = decode_one_provenance(self._chosen.compare, reply.provenance, self._provenance)
        if len(reply.pairs) != len(chunk.indices):
            raise ServerFault(f"the server answered {len(reply.pairs)} of {len(chunk.indices)} pairs: report it")
        return [
            decode_comparison(index, message.group, result, self._provenance)
            for index, message, result in zip(chunk.indices, chunk.messages, reply.pairs, strict=True)
        ]

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> Comparison:
        return _failed(index, identifier, failure)


class PairStream(RowStream[judging_pb2.Pair, Comparison, None]):
    """A running call of `compare_stream`.

    Args:
        transport: Carries it.
        chosen: How it compares.
        source: As `RowStream`.
        limits: As there.
        stall_s: As there.
    """

    def __init__(
        self,
        transport: Transport,
        chosen: ChosenComparison,
        source: AsyncIterable[PairLike],
        limits: Callable[[], Awaitable[Limits]],
        stall_s: float,
    ) -> None:
        super().__init__(source, limits, stall_s, "pair", READ_AHEAD_PAIRS)
        self._transport = transport
        self._chosen = chosen
        self._provenance: Provenance | None = None

    @property
    def _span_name(self) -> str:
        return CLIENT_COMPARE_STREAM

    @property
    def _accepted(self) -> bool:
        return self._provenance is not None

    def _encode(self, index: int, row: Any, max_bytes: int) -> judging_pb2.Pair | ItemProblem:
        return self._chosen.encode(index, row, max_bytes)

    def _failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> Comparison:
        return _failed(index, identifier, failure)

    def _config(self) -> judging_pb2.CompareStreamRequest:
        config = judging_pb2.CompareStreamConfig(parameters=self._chosen.parameters)
        return judging_pb2.CompareStreamRequest(config=config)

    def _rows(self, messages: Sequence[judging_pb2.Pair]) -> judging_pb2.CompareStreamRequest:
        return judging_pb2.CompareStreamRequest(pairs=judging_pb2.CompareStreamPairs(pairs=messages))

    def _start(
        self, requests: AsyncIterator[judging_pb2.CompareStreamRequest]
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        return self._transport.stream(COMPARE_STREAM, requests)

    def _read(self, reply: judging_pb2.CompareStreamResponse, connection: StreamAttempt) -> bool:
        if reply.HasField("provenance"):
            self._provenance = decode_one_provenance(self._chosen.compare, reply.provenance, self._provenance)
        for result in reply.pairs:
            index, waiting = self.waiting_for(connection, result.index)
            compared = decode_comparison(index, waiting.message.group, result, self._provenance)
            # A server cuts an id that is too long; the caller knows the whole one.
            self.answered(index, replace(compared, id=waiting.message.id))
        return bool(reply.pairs)


def _failed(index: int, identifier: str, failure: tuple[Status, str]) -> Comparison:
    status, message = failure
    return Comparison(winner=None, status=status, index=index, id=identifier, message=message)
