"""Models that run in NVIDIA Triton: the same cache, keys and scores as those in this process."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.errors import ModelBrokenError, ModelError
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_models.repository.grader_input import MAX_PIECES
from gradewire_server.encoders.batching.dispatcher import AsyncDispatcher, DispatchLimits
from gradewire_server.encoders.encoder import Encoder, LoadedParts
from gradewire_server.encoders.reading import open_tokenizer, run_reader, warm_up_ids
from gradewire_server.encoders.source import ModelSource, NotNowError
from gradewire_server.encoders.telemetry import EncoderTelemetry, ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.triton.check import check_arithmetic, check_catalog, check_served, wrong_graph
from gradewire_server.encoders.triton.model import ModelCallbacks, TritonModel
from gradewire_server.encoders.triton.runs import TritonRuns
from gradewire_server.encoders.triton.telemetry import TritonTelemetry
from gradewire_server.settings.compute import ComputeConfig
from gradewire_server.settings.triton import TritonConfig
from gradewire_server.storage.keys import ModelSpaces
from gradewire_server.triton.client import TritonClient
from gradewire_server.triton.errors import Fault, TritonError

_REPLACING_S: Final = 0.2
_RUN_OVERHEAD_TOKENS: Final = 24
_MOST_PROBES: Final = 8
_PROBE_STEP_TOKENS: Final = 8


class Looks(Protocol):
    """Who looks after the models."""

    def follow(self, name: str) -> None:
        """A model was asked for: looks after it from now on."""

    def wake(self, name: str) -> None:
        """A model should be looked at now."""

    def flawed(self, name: str) -> None:
        """A run failed and went well when it was sent again."""


class TritonSource(ModelSource):
    """Models as Triton runs them. Description and tokenizer come from the repository here; see `supervise`.

    Args:
        repository: Directory of built models; their graphs need not be in it.
        compute: Limits of batches and of the queue.
        config: Where Triton is.
        telemetry: Where runs are counted.
        triton_telemetry: Where it is counted what Triton did.
    """

    def __init__(
        self,
        repository: Path,
        compute: ComputeConfig,
        config: TritonConfig,
        telemetry: EncoderTelemetry,
        triton_telemetry: TritonTelemetry,
    ) -> None:
        self._repository = repository
        self._compute = compute
        self._config = config
        self._telemetry = telemetry
        self._triton_telemetry = triton_telemetry
        self._models: dict[str, TritonModel] = {}
        self._opening_errors: dict[str, TritonError] = {}
        self.client = TritonClient(config)
        self._supervisor: Looks | None = None

    def supervise(self, supervisor: Looks) -> None:
        """Tells `supervisor` of every model; to be called before the first is opened."""
        self._supervisor = supervisor

    def opened(self, name: str) -> TritonModel | None:
        """What a name was last opened as."""
        return self._models.get(name)

    def opening_error(self, name: str) -> TritonError | None:
        """What Triton said when the name was last opened in vain."""
        return self._opening_errors.get(name)

    @override
    def listed(self) -> Sequence[BuiltModel]:
        return list_built(self._repository, graphs=False)

    @override
    def describe(self, name: str) -> BuiltModel:
        return load_built(self._repository, name, graph=False)

    @override
    async def open(self, name: str, *, namespace: str) -> Encoder:
        looks = self._supervisor
        if looks is None:
            raise ValueError("nobody looks after the models")
        try:
            model, tokenizer = await asyncio.to_thread(self._read, name)
        except ModelBrokenError:
            looks.follow(name)  # whoever mends it does not have to tell us
            raise
        looks.follow(name)
        check_arithmetic(model)
        check_catalog(model)
        warm_up = warm_up_ids(model, tokenizer)
        self._opening_errors.pop(name, None)
        try:
            served = await self.client.served(name)
            check_served(model, served)
            parallel = max(1, served.instances)
            runner = TritonModel(
                self.client,
                model,
                probes=_probes(warm_up[0], model.max_tokens, min(parallel + 1, _MOST_PROBES)),
                telemetry=self._triton_telemetry,
                callbacks=ModelCallbacks(doubted=lambda: looks.wake(name), flawed=lambda: looks.flawed(name)),
            )
            for ids in warm_up:
                await runner.infer([ids], layers=model.token_layers)
        except TritonError as error:
            self._opening_errors[name] = error
            if error.kind is Fault.REPLACED:
                raise wrong_graph(model, error) from error
            raise NotNowError(model, error.meaning.failure) from error
        self._models[name] = runner
        limits = DispatchLimits(
            max_in_flight=self._config.max_in_flight or parallel + 1,
            parallel_runs=parallel,
            max_run_tokens=self._config.max_run_tokens,
            max_run_texts=min(self._compute.max_batch_texts, served.max_batch_size // _most_rows(model)),
            run_overhead_tokens=_RUN_OVERHEAD_TOKENS,
            max_queue_tokens=self._compute.max_queue_tokens,
        )
        telemetry = ModelTelemetry(self._telemetry, model.name)
        reader = run_reader(model, tokenizer, telemetry)
        runs = TritonRuns(reader, runner, self._triton_telemetry, timeout_s=self._config.timeout_s)
        spaces = ModelSpaces.of_model(namespace, model)
        return Encoder(LoadedParts(model, tokenizer, spaces, AsyncDispatcher(runs, limits), telemetry))

    @override
    def trouble(self, name: str) -> str:
        model = self._models.get(name)
        return "" if model is None else model.trouble

    @override
    async def close(self) -> None:
        await self.client.close()

    def _read(self, name: str) -> tuple[BuiltModel, TextTokenizer]:
        try:
            model = self.describe(name)
        except ModelError:
            # A build that replaces a model takes the old one away a moment before the new one stands there.
            time.sleep(_REPLACING_S)
            model = self.describe(name)
        return model, open_tokenizer(model)


def _most_rows(model: BuiltModel) -> int:
    """Rows of a batch that one text may take."""
    return MAX_PIECES if model.kind == "grader" else 1


def _probes(ids: NDArray[np.int32], max_tokens: int, count: int) -> list[NDArray[np.int32]]:
    """Variations of a short text, each in another step of lengths as long as the model takes it."""
    return [
        np.concatenate([ids[:-1], np.repeat(ids[1], _PROBE_STEP_TOKENS * number), ids[-1:]])[:max_tokens]
        for number in range(count)
    ]
