"""The default engine: encoders in this process over ONNX Runtime."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Self

from prometheus_client import CollectorRegistry

from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_server.encoders.batching.batcher import Batcher
from gradewire_server.encoders.encoder import Encoder, EncoderParts, RunResult, token_ids
from gradewire_server.encoders.local.session import EncoderSession
from gradewire_server.encoders.pending import Flight
from gradewire_server.encoders.source import UnusableError
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.vector_engine import VectorEngine
from gradewire_server.judges.opening import open_judges
from gradewire_server.settings.compute import ComputeConfig
from gradewire_server.settings.engine import EngineConfig
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.storage.opening import open_stores
from gradewire_server.storage.telemetry import EngineTelemetry


class EmbeddedEngine(VectorEngine):
    """Cache, batcher and encoders in one process. Made by `open`, lives on the event loop it was opened on."""

    @classmethod
    async def open(cls, config: EngineConfig, registry: CollectorRegistry) -> Self:
        """Opens stores and preloads models.

        A store that cannot be opened is left out with a warning, a model that cannot be loaded is shown by `health`.

        Args:
            config: See `EngineConfig`.
            registry: Where the engine registers its metrics; one engine per registry.
        """
        telemetry = EngineTelemetry(registry)
        source = SessionSource(config.model_repository, config.compute)
        stores = await open_stores(config.cache, telemetry)
        engine = cls(config, stores, telemetry, source, partial(open_judges, config.judge, registry))
        await engine.preload()
        return engine


class SessionSource:
    """Models as sessions in this process; see `ModelSource`.

    Args:
        repository: Directory of built models.
        compute: How they are run.
    """

    def __init__(self, repository: Path, compute: ComputeConfig) -> None:
        self._repository = repository
        self._compute = compute

    def listed(self) -> Sequence[BuiltModel]:
        """See `ModelSource.listed`."""
        return list_built(self._repository)

    def describe(self, name: str) -> BuiltModel:
        """See `ModelSource.describe`."""
        return load_built(self._repository, name)

    async def open(self, name: str, *, namespace: str) -> EncoderParts:
        """See `ModelSource.open`."""
        return await asyncio.to_thread(self._open, name, namespace)

    def trouble(self, name: str) -> str:
        """See `ModelSource.trouble`."""
        del name
        return ""

    async def close(self) -> None:
        """See `ModelSource.close`."""

    def _open(self, name: str, namespace: str) -> EncoderParts:
        model = load_built(self._repository, name)
        if not model.on_cpu:
            # Its digest stands for vectors that a GPU made; the same graph on a CPU gives others.
            raise UnusableError(
                f"model {name!r} is for GPUs ({model.numeric_class}): serve it with --backend triton, or use "
                f"{model.base or 'another one'} here"
            )
        tokenizer = TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix)
        session = EncoderSession(model, self._compute)
        # Warm-up: the first runs of a session allocate and pack; a short and a longer shape take that out of the way.
        for text in ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it"):
            for lone in (False, True):
                session.run([tokenizer.encode([text])[0].ids], layers=model.token_layers, lone=lone)
        spaces = ModelSpaces(namespace=namespace, digest=model.digest, prefix=model.prefix, dims=model.dims)

        def dispatcher(encoder: Encoder) -> Batcher[Flight, RunResult]:
            return Batcher(_SessionRuns(encoder, session), self._compute, name=model.name)

        return EncoderParts(model, tokenizer, spaces, dispatcher)


class _SessionRuns:
    """An encoder's runs on a session; see `BatchHandler`."""

    def __init__(self, encoder: Encoder, session: EncoderSession) -> None:
        self._encoder = encoder
        self._session = session
        self.done = encoder.done
        self.failed = encoder.failed
        self.dropped = encoder.dropped

    def run(self, jobs: Sequence[Flight], *, lone: bool) -> RunResult:
        """Computes one run, in a worker thread."""
        started_s = time.perf_counter()
        output = self._session.run(token_ids(jobs), layers=self._encoder.layers_for(jobs), lone=lone)
        return self._encoder.read(jobs, output, started_s)
