"""Runs `gradewire ARGUMENTS` with a stub that takes a while for each answer and pair, for a test that kills it."""

import sys
import time

from tests.cli.conftest import answer
from tests.cli.leaderboard.test_run_by_judge import verdict

from gradewire.testing import StubTransport, echo_comparisons
from gradewire_cli.group import gradewire
from gradewire_proto.v1 import judging_pb2, scoring_pb2


def slow_scores(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    """Scores by the number of letters."""
    time.sleep(0.002 * len(request.items))
    return answer(request)


def slow_verdicts(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
    """Verdicts that depend on the pair alone."""
    time.sleep(0.01 * len(request.pairs))
    return echo_comparisons(request, winner=verdict)


if __name__ == "__main__":
    gradewire.main(sys.argv[1:], obj=StubTransport(slow_scores, compare=slow_verdicts))
