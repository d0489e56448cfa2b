"""Encode the pairs of a `compare` call, and decode the server's replies."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from gradewire._calls.requests import PRIORITIES, OpenRow, Rows
from gradewire._calls.score import (
    decode_cache_hits,
    decode_call_provenance,
    decode_retry_after_s,
    decode_status,
    decode_timing,
    decode_warnings,
)
from gradewire.items import ItemProblem
from gradewire.options import CompareOptions, Priority, check_comparison, check_names, check_priority
from gradewire.pairs import Comparison, ListVerdict, OrderVerdict, Winner, encode_pair
from gradewire.results import Provenance, Status
from gradewire.transport import COMPARE, COMPARE_STREAM, RpcMethod
from gradewire_proto.tracing.spans import CLIENT_COMPARE_STREAM
from gradewire_proto.v1 import judging_pb2

CHUNK_PAIRS: Final = 16
"""Maximum number of pairs per request. The judge answers twice for each pair."""
READ_AHEAD_PAIRS: Final = 64
"""Number of pairs to read ahead: few enough that even a slow judge finishes them all before their deadline."""
_PREFIX: Final = re.compile(r"^pair:")
_WINNERS: Final[Mapping[int, Winner]] = {
    judging_pb2.WINNER_A: "a",
    judging_pb2.WINNER_B: "b",
    judging_pb2.WINNER_TIE: "tie",
}
_FIRST: Final[Mapping[int, Literal["a", "b"]]] = {judging_pb2.PAIR_ANSWER_A: "a", judging_pb2.PAIR_ANSWER_B: "b"}


class PairRows(Rows[judging_pb2.Pair, Comparison]):
    """The pairs of a call to `method` (CLASS.METHOD).

    Raises:
        TypeError: An option is unknown.
        InvalidRequest: An option has a wrong type, or `by` is not a comparison.
    """

    noun: ClassVar[str] = "pair"
    unary: ClassVar[RpcMethod[Any, Any]] = COMPARE
    stream: ClassVar[RpcMethod[Any, Any]] = COMPARE_STREAM
    span_name: ClassVar[str] = CLIENT_COMPARE_STREAM
    ahead: ClassVar[int] = READ_AHEAD_PAIRS
    chunk_rows = CHUNK_PAIRS

    def __init__(self, method: str, by: object, options: CompareOptions) -> None:
        super().__init__()
        check_names(method, options, CompareOptions)
        priority: Priority = options.get("priority") or "normal"
        check_priority(priority)
        self.deadline_s = options.get("deadline_s")
        self._compare = check_comparison(by, options.get("judge"))
        self._parameters = self._compare.to_spec().compare
        self._priority = PRIORITIES[priority]

    def encode(self, index: int, row: Any, max_bytes: int) -> judging_pb2.Pair | ItemProblem:
        return encode_pair(index, row, max_bytes=max_bytes, images=bool(self._compare.image))

    def failed(self, index: int, identifier: str, failure: tuple[Status, str]) -> Comparison:
        status, message = failure
        return Comparison(winner=None, status=status, index=index, id=identifier, message=message)

    def request(self, messages: Sequence[judging_pb2.Pair]) -> judging_pb2.CompareRequest:
        return judging_pb2.CompareRequest(pairs=messages, parameters=self._parameters, priority=self._priority)

    def stream_config(self) -> judging_pb2.CompareStreamRequest:
        config = judging_pb2.CompareStreamConfig(parameters=self._parameters)
        return judging_pb2.CompareStreamRequest(config=config)

    def stream_request(
        self,
        messages: Sequence[judging_pb2.Pair],
        deadline_s: float,  # noqa: ARG002 - a judge decides every pair
    ) -> judging_pb2.CompareStreamRequest:
        return judging_pb2.CompareStreamRequest(pairs=judging_pb2.CompareStreamPairs(pairs=messages))

    def received(self, reply: Any) -> Sequence[judging_pb2.PairResult]:
        if reply.HasField("provenance") or not self.provenance:
            metrics = {str(self._compare.name): self._compare}
            self.provenance = decode_call_provenance(metrics, [reply.provenance], self.provenance)
        results: Sequence[judging_pb2.PairResult] = reply.pairs
        return results

    def completed(self, index: int, row: OpenRow[judging_pb2.Pair], result: judging_pb2.PairResult) -> Comparison:
        return decode_comparison(index, row.message, result, self.provenance.get(self._compare.name))


def decode_comparison(
    index: int, pair: judging_pb2.Pair, result: judging_pb2.PairResult, provenance: Provenance | None
) -> Comparison:
    """Return the comparison of pairs[index]. If the server returns OK without a winner, set the status to INTERNAL."""
    status, winner = decode_status(result.status), _WINNERS.get(result.winner)
    # The server does not know the pair's index in the call.
    message = _PREFIX.sub(f"pairs[{index}]:", result.message)
    lists = tuple(ListVerdict(tuple(each.shown), tuple(each.ranks)) for each in result.lists)
    if status is Status.OK and winner is None and not lists:
        status, message = (
            Status.INTERNAL,
            f"pairs[{index}]: the server returned OK without a winner: report this defect",
        )
    a, b, tie = _probabilities(result)
    return Comparison(
        winner=winner if status is Status.OK else None,
        status=status,
        probability_a=a,
        probability_b=b,
        probability_tie=tie,
        orders=tuple(_order(order) for order in result.orders if order.first in _FIRST),
        index=index,
        id=pair.id,  # the server shortens a long id
        group=pair.group,
        message=message,
        warnings=decode_warnings(result.warnings),
        decided_by=result.decided_by,
        prompt_tokens=result.prompt_tokens,
        generated_tokens=result.generated_tokens,
        cache_hits=decode_cache_hits(result.cache_hits),
        timing=decode_timing(result.timing),
        provenance=provenance,
        retry_after_s=decode_retry_after_s(status, result),
        lists=lists,
    )


def _order(order: judging_pb2.OrderVerdict) -> OrderVerdict:
    a, b, tie = _probabilities(order)
    return OrderVerdict(
        first=_FIRST[order.first],
        winner=_WINNERS.get(order.winner),
        probability_a=a,
        probability_b=b,
        probability_tie=tie,
        reason=order.reason,
        extracted=order.extracted,
        label_mass=order.label_mass if order.HasField("label_mass") else None,
    )


def _probabilities(
    received: judging_pb2.PairResult | judging_pb2.OrderVerdict,
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the probabilities of answer A, answer B and a tie, or None three times if a probability is missing."""
    found = received.probability_a, received.probability_b, received.probability_tie
    is_known = received.HasField("probability_a") and received.HasField("probability_b")
    is_known = is_known and received.HasField("probability_tie")
    return found if is_known and all(map(math.isfinite, found)) else (None, None, None)
