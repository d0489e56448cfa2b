"""Runs `gradewire ARGUMENTS` with a stub that takes a while for each answer, for a test that kills it."""

import sys
import time

from tests.client.cli.conftest import answer

from gradewire.cli.group import gradewire
from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2


def slow(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    """Scores by the number of letters."""
    time.sleep(0.002 * len(request.items))
    return answer(request)


if __name__ == "__main__":
    gradewire.main(sys.argv[1:], obj=StubTransport(slow))
