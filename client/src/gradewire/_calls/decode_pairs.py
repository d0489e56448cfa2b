"""Turns messages about pairs into typed comparisons."""

import math
import re
from collections.abc import Mapping
from typing import Final, Literal

from gradewire._calls.decode import decode_status, decode_warnings
from gradewire.pairs.comparison import Comparison, OrderVerdict, Winner
from gradewire.results import CacheHits, Provenance, Status, Timing
from gradewire_proto.v1 import judging_pb2

_WHOLE_PAIR: Final = re.compile(r"^pair:")
_WINNERS: Final[Mapping[int, Winner]] = {
    judging_pb2.WINNER_A: "a",
    judging_pb2.WINNER_B: "b",
    judging_pb2.WINNER_TIE: "tie",
}
_FIRST: Final[Mapping[int, Literal["a", "b"]]] = {judging_pb2.PAIR_ANSWER_A: "a", judging_pb2.PAIR_ANSWER_B: "b"}


def decode_comparison(
    index: int, group: str, result: judging_pb2.PairResult, provenance: Provenance | None
) -> Comparison:
    """The comparison of pairs[index].

    Whatever the server says, a winner is there exactly when the status is OK: OK without one becomes INTERNAL.
    """
    status, winner = decode_status(result.status), _WINNERS.get(result.winner)
    # A server names the fields of a pair; which pair it is, only the call knows.
    message = _WHOLE_PAIR.sub(f"pairs[{index}]:", result.message)
    if status is Status.OK and winner is None:
        status, message = Status.INTERNAL, f"pairs[{index}]: the server said OK and named no winner: report it"
    hits, timing = result.cache_hits, result.timing
    a, b, tie = _probabilities(result)
    late = result.retry_after_s if result.HasField("retry_after_s") and status is not Status.OK else None
    return Comparison(
        winner=winner if status is Status.OK else None,
        status=status,
        probability_a=a,
        probability_b=b,
        probability_tie=tie,
        orders=tuple(_order(order) for order in result.orders if order.first in _FIRST),
        index=index,
        id=result.id,
        group=group,
        message=message,
        warnings=decode_warnings(result.warnings),
        decided_by=result.decided_by,
        prompt_tokens=result.prompt_tokens,
        generated_tokens=result.generated_tokens,
        cache_hits=CacheHits(hits.memory, hits.disk, hits.redis, hits.joined, hits.computed),
        timing=Timing(timing.queue_s, timing.cache_s, timing.tokenize_s, timing.inference_s),
        provenance=provenance,
        retry_after_s=late if late is not None and late >= 0 and math.isfinite(late) else None,
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
    said: judging_pb2.PairResult | judging_pb2.OrderVerdict,
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Of answer A, answer B and a tie; all of them or none."""
    if not (said.HasField("probability_a") and said.HasField("probability_b") and said.HasField("probability_tie")):
        return None, None, None
    told = said.probability_a, said.probability_b, said.probability_tie
    return told if all(map(math.isfinite, told)) else (None, None, None)
