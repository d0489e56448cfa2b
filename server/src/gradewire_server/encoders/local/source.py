"""Models that run in this process, over ONNX Runtime."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from gradewire_models.bf16 import BF16_CLASS
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_server.encoders.batcher import Batcher, lower_priority
from gradewire_server.encoders.encoder import Encoded, Encoder, LoadedParts, ModelSource, RoughEncoder
from gradewire_server.encoders.local.cuda import Gpu
from gradewire_server.encoders.local.rough import RoughSession, open_rough
from gradewire_server.encoders.local.session import Session, described_for_caches, open_session
from gradewire_server.encoders.outputs import RunReader, open_tokenizer, run_reader, token_ids, warm_up_ids
from gradewire_server.encoders.pending import PendingText
from gradewire_server.encoders.prometheus import EncoderTelemetry, ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.settings.engine import ComputeConfig, GpuConfig
from gradewire_server.storage.keys import ModelSpaces


class _Opened(NamedTuple):
    """A model that is ready to run; `rough` makes approximate vectors of it, or says why nothing does though asked."""

    model: BuiltModel
    tokenizer: TextTokenizer
    session: Session
    compute: ComputeConfig
    rough: RoughSession | str | None


class SessionSource(ModelSource):
    """Models as sessions in this process.

    Args:
        repository: Directory of built models.
        compute: How they are run.
        gpu_config: What users set of GPUs.
        gpu: The one that models for GPUs run on.
        telemetry: Where runs are counted.
    """

    def __init__(
        self, repository: Path, compute: ComputeConfig, gpu_config: GpuConfig, gpu: Gpu, telemetry: EncoderTelemetry
    ) -> None:
        self._repository = repository
        self._compute = compute
        self._gpu_config = gpu_config
        self._gpu = gpu
        self._telemetry = telemetry

    @override
    def listed(self) -> Sequence[BuiltModel]:
        return list_built(self._repository)

    @override
    def describe(self, name: str) -> BuiltModel:
        return load_built(self._repository, name)

    @override
    async def open(self, name: str, *, namespace: str) -> Encoder:
        loop = asyncio.get_running_loop()
        # A thread of its own: ONNX Runtime's threads are started by it, and have its priority.
        opening = ThreadPoolExecutor(1, initializer=lower_priority, initargs=(self._compute.nice,))
        try:
            opened = await loop.run_in_executor(opening, self._open, name)
        finally:
            opening.shutdown(wait=False)
        return self._encoder(opened, namespace)

    def _encoder(self, opened: _Opened, namespace: str) -> Encoder:
        model, rough = opened.model, opened.rough
        spaces = ModelSpaces.of_model(namespace, model)
        if model.numeric_class == BF16_CLASS:
            spaces = ModelSpaces.of_model(namespace, described_for_caches(model, "vectors"))
        parts = self._parts(opened, opened.session, spaces, name=f"{model.name}-{model.numeric_class}")
        if isinstance(rough, str):
            return Encoder(parts, degraded=rough)
        if rough is None:
            return Encoder(parts)
        spaces = ModelSpaces.of_model(namespace, described_for_caches(model, "to choose windows"))
        remark = f"windows are chosen in bf16, with cosines off by about {rough.cosine_error:.1e}"
        approximate = Encoder(self._parts(opened, rough.session, spaces, name=f"{model.name}-{BF16_CLASS}"))
        return Encoder(parts, rough=RoughEncoder(approximate, rough.cosine_error, remark))

    def _parts(self, opened: _Opened, session: Session, spaces: ModelSpaces, *, name: str) -> LoadedParts:
        model, tokenizer = opened.model, opened.tokenizer
        telemetry = ModelTelemetry(self._telemetry, model.name)
        runs = _SessionRuns(session, run_reader(model, tokenizer, telemetry))
        queue = Batcher(runs, opened.compute, name=name)
        return LoadedParts(model, tokenizer, spaces, queue, telemetry)

    @override
    def trouble(self, name: str) -> str:
        return ""

    @override
    async def close(self) -> None:
        return

    def _open(self, name: str) -> _Opened:
        model = load_built(self._repository, name)
        tokenizer = open_tokenizer(model)
        opened = open_session(model, self._compute, self._gpu_config, self._gpu)
        # Warm-up: the first runs of a session allocate and pack; a short and a longer shape take that out of the way.
        for ids in warm_up_ids(model, tokenizer):
            for exclusive in (False, True):
                opened.session.run([ids], layers=model.token_layers, exclusive=exclusive)
        rough = open_rough(model, self._compute, opened.session, tokenizer)
        return _Opened(model, tokenizer, opened.session, opened.compute, rough)


class _SessionRuns:
    """A model's runs on a session, in worker threads."""

    def __init__(self, session: Session, reader: RunReader) -> None:
        self._session = session
        self._reader = reader

    def __call__(self, texts: Sequence[PendingText], /, *, exclusive: bool) -> list[Encoded]:
        """Computes one run."""
        started_s = time.perf_counter()
        output = self._session.run(token_ids(texts), layers=self._reader.layers_for(texts), exclusive=exclusive)
        return self._reader.read(texts, output, started_s)
