"""A stub whose judge metrics answer as a server's do, and a prompt file of one's own."""

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import answer

from gradewire.metrics import METRIC_TYPES
from gradewire.testing import StubTransport
from gradewire.transport import Q, R, RpcMethod
from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2

ROWS = [{"id": f"r{index}", "references": ["a"], "prediction": "x" * (index % 9 + 1)} for index in range(30)]
PROMPT = """
format = 1
name = "mine"
version = 3
metric = "lave"
"""


def prompt_file(directory: Path, text: str = PROMPT, *, name: str = "mine.toml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def judged(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    """As `answer`, with the parts of a judge: rating 3 with three quarters of a mass of 0.9; "rule" is ruled."""
    reply = answer(request)
    for item, answered in zip(request.items, reply.items, strict=True):
        for spec, result in zip(request.metrics, answered.results, strict=True):
            name = spec.WhichOneof("metric") or ""
            if not METRIC_TYPES[name].needs_judge or result.status != types_pb2.STATUS_OK:
                continue
            ruled = item.prediction.startswith("rule")
            parts = types_pb2.JudgeParts(decided_by="rule", value=3.0)
            if not ruled:
                parts = types_pb2.JudgeParts(
                    value=3.0,
                    labels=["1", "2", "3"],
                    probabilities=[0.125, 0.125, 0.75],
                    label_mass=0.9,
                    reason="Both say the same.",
                    decided_by="judge",
                    demonstrations="short",
                    prompt_tokens=800,
                    generated_tokens=20,
                )
                result.cache_hits.computed = 1
                result.timing.inference_s, result.timing.queue_s = 0.5, 0.25
            result.judge.CopyFrom(parts)
            result.correct = True
    return reply


class JudgingStub(StubTransport):
    """Remembers its requests.

    Args:
        answer: As `StubTransport`.
    """

    def __init__(self, answer: Callable[[scoring_pb2.ScoreRequest], scoring_pb2.ScoreResponse] = judged) -> None:
        super().__init__(answer, models=listing())
        self.requests: list[scoring_pb2.ScoreRequest] = []

    async def unary(self, method: RpcMethod[Q, R], request: Q, *, timeout_s: float) -> R:
        if isinstance(request, scoring_pb2.ScoreRequest):
            self.requests.append(request)
        return await super().unary(method, request, timeout_s=timeout_s)

    @property
    def sizes(self) -> list[int]:
        """Items of each request that had any."""
        return [len(request.items) for request in self.requests if request.items]


def listing() -> models_pb2.ListModelsResponse:
    """A server with two judges, and advice about one metric."""
    return models_pb2.ListModelsResponse(
        server_version="stub",
        metrics=[
            models_pb2.Metric(name=name, available=True, needs_judge=kind.needs_judge)
            if name != "lave"
            else models_pb2.Metric(name=name, available=True, needs_judge=True, advice="smile agrees more with people")
            for name, kind in METRIC_TYPES.items()
        ],
        models=[
            models_pb2.Model(name="tiny", kind="encoder", is_default=True, remarks=["of an encoder"]),
            models_pb2.Model(name="good", kind="judge", is_default=True, remarks=["reads English best"]),
            models_pb2.Model(name="toy", kind="judge", remarks=["for tests only", "judges by chance"]),
        ],
    )
