"""The engine whose encoders run in NVIDIA Triton: the same cache, keys and scores as the embedded one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from gradewire_models.errors import ModelBrokenError, ModelError
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_server.encoders.batching.dispatcher import AsyncDispatcher, DispatchLimits
from gradewire_server.encoders.encoder import Encoder, EncoderParts, RunResult
from gradewire_server.encoders.library import ModelLibrary
from gradewire_server.encoders.pending import Flight
from gradewire_server.encoders.source import NotNowError
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.triton.check import check_catalog, check_served, wrong_graph
from gradewire_server.encoders.triton.model import TritonModel, Watch
from gradewire_server.encoders.triton.runs import TritonRuns
from gradewire_server.encoders.triton.supervisor import TritonKeeper
from gradewire_server.encoders.vector_engine import VectorEngine
from gradewire_server.judges.opening import open_judges
from gradewire_server.judges.service import JudgeService
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.settings.groups import ComputeConfig, EngineConfig, TritonConfig
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.storage.opening import Stores, open_stores
from gradewire_server.storage.telemetry import EngineTelemetry
from gradewire_server.triton.client import TritonLink
from gradewire_server.triton.errors import Kind, TritonError
from gradewire_server.triton.telemetry import TritonTelemetry

_REPLACING_S: Final = 0.2
_RUN_OVERHEAD_TOKENS: Final = 24
_MOST_PROBES: Final = 8
_PROBE_STEP_TOKENS: Final = 8
_WARM_UP: Final = ("warm", "one somewhat longer sentence to warm the encoder up before anyone waits for it")


class TritonSource:
    """Models as Triton runs them; see `ModelSource`. Description and tokenizer come from the repository here.

    Args:
        repository: Directory of built models; their graphs need not be in it.
        compute: Limits of batches and of the queue.
        config: Where Triton is.
        telemetry: Where it is counted.
    """

    def __init__(
        self, repository: Path, compute: ComputeConfig, config: TritonConfig, telemetry: TritonTelemetry
    ) -> None:
        self._repository = repository
        self._compute = compute
        self._config = config
        self._telemetry = telemetry
        self._models: dict[str, TritonModel] = {}
        self._opening_errors: dict[str, TritonError] = {}
        self.link = TritonLink(config)
        self.asked: Callable[[str], None] = _nobody
        self.doubted: Callable[[str], None] = _nobody
        self.flawed: Callable[[str], None] = _nobody

    def opened(self, name: str) -> TritonModel | None:
        """What a name was last opened as."""
        return self._models.get(name)

    def opening_error(self, name: str) -> TritonError | None:
        """What Triton said when the name was last opened in vain."""
        return self._opening_errors.get(name)

    def listed(self) -> Sequence[BuiltModel]:
        """See `ModelSource.listed`."""
        return list_built(self._repository, graphs=False)

    def describe(self, name: str) -> BuiltModel:
        """See `ModelSource.describe`."""
        return load_built(self._repository, name, graph=False)

    async def open(self, name: str, *, namespace: str) -> EncoderParts:
        """See `ModelSource.open`."""
        try:
            model, tokenizer = await asyncio.to_thread(self._read, name)
        except ModelBrokenError:
            self.asked(name)  # whoever mends it does not have to tell us
            raise
        self.asked(name)
        check_catalog(model)
        warm_up = [each.ids for each in tokenizer.encode(_WARM_UP)]
        self._opening_errors.pop(name, None)
        try:
            served = await self.link.served(name)
            check_served(model, served)
            parallel = max(1, served.instances)
            runner = TritonModel(
                self.link,
                model,
                probes=_probes(warm_up[0], model.max_tokens, min(parallel + 1, _MOST_PROBES)),
                telemetry=self._telemetry,
                watch=Watch(doubted=lambda: self.doubted(name), flawed=lambda: self.flawed(name)),
            )
            for ids in warm_up:
                await runner.infer([ids], layers=model.token_layers)
        except TritonError as error:
            self._opening_errors[name] = error
            if error.kind is Kind.REPLACED:
                raise wrong_graph(model, error) from error
            raise NotNowError(model, error.meaning.failure) from error
        self._models[name] = runner
        limits = DispatchLimits(
            max_in_flight=self._config.max_in_flight or parallel + 1,
            parallel_runs=parallel,
            max_run_tokens=self._config.max_run_tokens,
            max_run_texts=min(self._compute.max_batch_texts, served.max_batch_size),
            run_overhead_tokens=_RUN_OVERHEAD_TOKENS,
            max_queue_tokens=self._compute.max_queue_tokens,
        )

        def dispatcher(encoder: Encoder) -> AsyncDispatcher[Flight, RunResult]:
            runs = TritonRuns(encoder, runner, self._telemetry, timeout_s=self._config.timeout_s)
            return AsyncDispatcher(runs, limits)

        spaces = ModelSpaces(namespace=namespace, digest=model.digest, prefix=model.prefix, dims=model.dims)
        return EncoderParts(model, tokenizer, spaces, dispatcher)

    def trouble(self, name: str) -> str:
        """See `ModelSource.trouble`."""
        model = self._models.get(name)
        return "" if model is None else model.trouble

    async def close(self) -> None:
        """See `ModelSource.close`."""
        await self.link.close()

    def _read(self, name: str) -> tuple[BuiltModel, TextTokenizer]:
        try:
            model = self.describe(name)
        except ModelError:
            # A build that replaces a model takes the old one away a moment before the new one stands there.
            time.sleep(_REPLACING_S)
            model = self.describe(name)
        return model, TextTokenizer(model.tokenizer_path, max_tokens=model.max_tokens, prefix=model.prefix)


class TritonEngine(VectorEngine):
    """Cache here, encoders in Triton. Made by `open`, lives on the event loop it was opened on.

    Args:
        config: See `EngineConfig`.
        stores: What stands behind the cache.
        telemetry: Where it is counted.
        source: Where models come from.
        judges: As for `VectorEngine`.
        keep: Makes what keeps an eye on the models, for a library.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - independent parts, put together in `open` alone
        self,
        config: EngineConfig,
        stores: Stores,
        telemetry: EngineTelemetry,
        source: TritonSource,
        judges: Callable[[VerdictCache], JudgeService],
        keep: Callable[[ModelLibrary], TritonKeeper],
    ) -> None:
        super().__init__(config, stores, telemetry, source, judges)
        self._keeper = keep(self._library)
        source.asked, source.doubted, source.flawed = self._keeper.follow, self._keeper.wake, self._keeper.flawed

    @classmethod
    async def open(cls, config: EngineConfig, registry: CollectorRegistry) -> Self:
        """Opens stores, and preloads models where Triton has them; the others are waited for.

        Args:
            config: See `EngineConfig`; its `triton` is set.
            registry: Where the engine registers its metrics; one engine per registry.

        Raises:
            OSError: A certificate cannot be read.
        """
        triton = config.triton
        if triton is None:
            raise ValueError("the configuration does not say where Triton is")
        telemetry, counters = EngineTelemetry(registry), TritonTelemetry(registry)
        source = TritonSource(config.model_repository, config.compute, triton, counters)
        engine = cls(
            config,
            await open_stores(config.cache, telemetry),
            telemetry,
            source,
            partial(open_judges, config.judge, registry),
            lambda library: TritonKeeper(library, source, triton, counters),
        )
        await engine.preload()
        return engine

    async def close(self) -> None:
        """See `VectorEngine.close`."""
        await self._keeper.close()
        await super().close()


def _probes(ids: NDArray[np.int32], max_tokens: int, count: int) -> list[NDArray[np.int32]]:
    """Variations of a short text, each in another step of lengths as long as the model takes it."""
    return [
        np.concatenate([ids[:-1], np.repeat(ids[1], _PROBE_STEP_TOKENS * number), ids[-1:]])[:max_tokens]
        for number in range(count)
    ]


def _nobody(name: str) -> None:
    """Stands where a keeper will be."""
    del name
