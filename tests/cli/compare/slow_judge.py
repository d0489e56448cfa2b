"""`python slow_judge.py ARGUMENTS`: the command over a judge that takes its time, to be killed in the middle."""

import asyncio
import sys

from gradewire.testing import StubTransport, echo_comparisons, echo_scores
from gradewire_cli.group import gradewire
from gradewire_proto.v1 import judging_pb2, scoring_pb2

PAUSE_S = 0.2


async def slowly(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
    if any(pair.id for pair in request.pairs):
        await asyncio.sleep(PAUSE_S)
    return longer(request)


def longer(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
    """The longer answer wins; of equally long ones what stands first, which is no winner."""

    def winner(pair: judging_pb2.Pair) -> "str | None":
        apart = len(pair.answer_a) - len(pair.answer_b)
        return "a" if apart > 0 else "b" if apart < 0 else None

    return echo_comparisons(request, winner=winner)  # type: ignore[arg-type]


def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    return echo_scores(request, score=lambda item: len(item.prediction) / 100)


if __name__ == "__main__":
    gradewire(sys.argv[1:], obj=StubTransport(score, compare=slowly))
