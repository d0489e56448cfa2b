"""Labelled rows and a stub whose scores and verdicts the tests can work out themselves."""

from __future__ import annotations

import random
from typing import Any

from tests.cli.conftest import answer

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

# Verdict of the stub: right from 8 letters on.
CUT_LETTERS = 8


def rows_of(count: int, *, seed: int = 0, **columns: Any) -> list[dict[str, Any]]:
    """Rows whose predictions are 1 to 20 letters long, with a label that goes along with the length, mostly."""
    generator = random.Random(seed)  # noqa: S311 - test data
    rows = []
    for index in range(count):
        letters = generator.randint(1, 20)
        rows.append(
            {
                "id": f"row-{index}",
                "question": f"question {index // 2}",
                "references": ["a"],
                "prediction": "x" * letters,
                "label": int(letters + generator.randint(-6, 6) > 10),
                "dataset": "nq" if index % 4 < 2 else "tq",
                "model": "big" if index % 2 else "small",
                **columns,
            }
        )
    return rows


def judging_stub(*without_verdicts: str) -> StubTransport:
    """Every metric scores by length; all but some call an answer right from `CUT_LETTERS` letters on.

    Those without verdicts are sbert, or the named ones.
    """
    silent = without_verdicts or ("sbert",)

    def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for item in reply.items:
            for result in item.results:
                name = request.metrics[result.metric_index].WhichOneof("metric")
                if result.status == types_pb2.STATUS_OK and name not in silent:
                    result.correct = result.score * 100 >= CUT_LETTERS
        return reply

    return StubTransport(judge)
