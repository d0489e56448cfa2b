"""Models in this process, which run on ONNX Runtime or OpenVINO."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_models.bf16 import BF16_CLASS, Bf16Graph, Bf16UnavailableError, arithmetic
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.repository.window_graphs import CHECKED_TEXTS, COSINE_ERROR, WINDOW_CLASS, WRITER_VERSION
from gradewire_models.runtime import cpu_session_options, onnxruntime
from gradewire_server.encoders.batcher import ENCODER_NICE, Batcher, JobQueue, lower_priority
from gradewire_server.encoders.cuda import BucketSession, Gpu, gpu_compute, open_on_gpu
from gradewire_server.encoders.encoder import (
    Encoded,
    Encoder,
    RoughEncoder,
    RunOutput,
    open_tokenizer,
    pad,
    run_reader,
    token_ids,
    warm_up_ids,
)
from gradewire_server.encoders.gpu_batcher import EncoderRuns, GpuBatcher
from gradewire_server.encoders.library import ModelSource, UnusableError
from gradewire_server.encoders.pending import PendingText
from gradewire_server.encoders.prometheus import EncoderTelemetry, ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.window_graphs import provide_graph, reason_without_graph
from gradewire_server.settings.engine import ComputeConfig, GpuConfig
from gradewire_server.storage.codec import ModelSpaces

_log = logging.getLogger(__name__)

_PADDING_COST: Final = 0.15
"""The cost of a padding token, relative to a real token, if only attention layers compute padding
(docs/research/encoders.md).
"""

_MARGIN: Final = 1.5
"""The factor by which real texts' errors may exceed the largest measured error (docs/research/encoders.md)."""
_LARGEST_ERROR: Final = 0.12
"""With a larger measured error, so many windows are embedded again that 8 bits save nothing."""
_LONGEST_WINDOW: Final = 4
_TEXTS_A_RUN: Final = 32
_SENTENCES: Final = (
    "The capital of Australia is Canberra, although many people believe that it is Sydney",
    "In 1969 Neil Armstrong became the first person to walk on the moon",
    "Two brown dogs and a striped kitten are asleep on the old red sofa",
    "William Shakespeare wrote Hamlet, Macbeth and King Lear around 1600",
    "Water boils at 100 degrees Celsius, that is 212 degrees Fahrenheit, at sea level",
    "The mitochondria produce most of the chemical energy of a eukaryotic cell",
    "No, the photograph shows a woman with an umbrella waiting for the tram",
    "Dmitri Mendeleev arranged sixty three elements by their atomic weight",
    "The Treaty of Versailles was signed by Germany and the Allied Powers in June",
    "Zinedine Zidane scored twice against Brazil and France won three goals to nil",
    "Johann Sebastian Bach composed the Brandenburg Concertos for the margrave Christian Ludwig",
    "It depends on the interest rate, the term of the loan and the monthly payment",
)
"""Ordinary answers, on which the error bound is measured. A change in these sentences changes the bound."""


class EncoderSession:
    """One model's loaded graph.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.*: This version of ONNX Runtime cannot run the file.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._session = _open(model, threads=1)
        threads = compute.lone_thread_count
        self._exclusive_session = _open(model, threads=threads) if threads > 1 else self._session
        self._model = model

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run at least one text, and return token vectors for `layers` (from the model's `token_layers`).

        If `exclusive` is True, no other run is active, so that this run may use all cores.
        """
        session = self._exclusive_session if exclusive else self._session
        names = [self._model.sentence_output, *map(self._model.token_output, layers)]
        padded, mask = pad(ids)
        sentences, *tokens = session.run(names, {INPUT_IDS: padded, ATTENTION_MASK: mask})
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))


def _open(model: BuiltModel, *, threads: int) -> onnxruntime.InferenceSession:
    options = cpu_session_options(threads)
    # With this option, ONNX Runtime would keep a memory plan for each of many small input shapes.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(model.onnx_path, options, providers=["CPUExecutionProvider"])


class WindowSession:
    """One model's loaded 8-bit graph, which computes only approximate sentence vectors.

    Attributes:
        cosine_error: Largest error of a cosine that the graph's writer measured.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.*: This version of ONNX Runtime cannot run the file.
        KeyError: The file has no measured error.
    """

    def __init__(self, model: BuiltModel, graph: Path) -> None:
        # A second session with more threads would need the memory of the weights again.
        self._session = _open(replace(model, onnx_path=graph), threads=1)
        self._output = model.sentence_output
        self.cosine_error = float(self._session.get_modelmeta().custom_metadata_map[COSINE_ERROR])

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run texts like `EncoderSession.run`; there are no token vectors."""
        del layers, exclusive
        padded, mask = pad(ids)
        (sentences,) = self._session.run([self._output], {INPUT_IDS: padded, ATTENTION_MASK: mask})
        return RunOutput(sentences, {})


class Bf16Session:
    """One model's compiled graph.

    Raises:
        Bf16UnavailableError: OpenVINO is not installed or cannot compile the graph, or the processor has no bf16
            instructions.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._graph = Bf16Graph(model.onnx_path, runs_at_once=compute.worker_count)
        self._model = model

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run texts like `EncoderSession.run`."""
        del exclusive
        names = [self._model.sentence_output, *map(self._model.token_output, layers)]
        sentences, *tokens = self._graph.run(names, ids)
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))


def described_for_caches(model: BuiltModel, use: str) -> BuiltModel:
    """Return a copy of the model, with a digest that depends on `use`, the processor and the OpenVINO version.

    Between processors and OpenVINO versions, vectors' components differ by up to 1e-3.

    Raises:
        Bf16UnavailableError: The model cannot run in bf16 here.
    """
    digest = hashlib.sha256(f"bf16 {use}\n{arithmetic()}\n{model.digest}".encode()).hexdigest()
    return replace(model, digest=digest, numeric_class=BF16_CLASS)


class Session(Protocol):
    """A loaded model. Thread-safe."""

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run texts; see `EncoderSession.run`."""


class OpenSession(NamedTuple):
    """A loaded model and its batch settings."""

    session: Session
    compute: ComputeConfig


def open_session(model: BuiltModel, compute: ComputeConfig, config: GpuConfig, gpu: Gpu) -> OpenSession:
    """Load a model on the device and in the precision that the model's digest requires.

    Raises:
        UnusableError: The model needs TensorRT, a GPU or bf16, which is not available here.
        RuntimeError: ONNX Runtime cannot load the model.
    """
    if model.numeric_class == BF16_CLASS:
        try:
            # `Bf16Graph` groups a run's texts by padded length, so batches need not avoid padding.
            return OpenSession(Bf16Session(model, compute), replace(compute, padding_cost=0.0))
        except Bf16UnavailableError as error:
            _log.warning("cannot load model %s: %s", model.name, error, exc_info=error)
            # Do not use fp32 instead, because the digest stands for vectors in bf16.
            raise UnusableError(
                f"model {model.name!r} needs bf16, which is not available: {error}. Use {model.base} instead"
            ) from error
    if model.on_cpu:
        # Graphs from `gradewire models build` compute padding only in attention layers. Other graphs compute padding in
        # all layers.
        built_here = model.adapter is not None or model.name in load_catalog()
        cost = _PADDING_COST if built_here else compute.padding_cost
        return OpenSession(EncoderSession(model, compute), replace(compute, padding_cost=cost))
    if not model.numeric_class.endswith("-cuda") or gpu.index is None:
        # Do not use the CPU instead, because the digest stands for vectors from a GPU.
        why = f" ({gpu.problem})" if model.numeric_class.endswith("-cuda") else ""
        raise UnusableError(
            f"model {model.name!r} is for GPUs ({model.numeric_class}) and cannot run in this process{why}. Serve this "
            f"model with --backend triton, or use {model.base or 'another model'}"
        )
    session = open_on_gpu(model, config, gpu.index)
    return OpenSession(session, gpu_compute(compute, replace(config, batch_tokens=session.buckets.max_run_tokens)))


class RoughSession(NamedTuple):
    """A model's session for approximate vectors, or the reason why there is no such session.

    Attributes:
        described: The model with the digest of the approximate vectors.
        note: A message for users about the session.
        problem: A message for users about a setting that has no effect here, or "".
    """

    session: Session | None = None
    described: BuiltModel | None = None
    cosine_error: float = 0.0
    note: str = ""
    problem: str = ""


def open_rough(
    model: BuiltModel, compute: ComputeConfig, exact: Session, tokenizer: TextTokenizer, graphs: Path | None
) -> RoughSession:
    """Open a session for approximate vectors, if the settings request one and the model can have one.

    `graphs` is the folder for 8-bit graphs, or None without a disk store.
    """
    if model.kind == "grader" or compute.window_choice == "fp32":
        return RoughSession()
    if compute.window_choice == "auto":
        return _open_window_graph(model, exact, tokenizer, graphs)
    if not model.on_cpu or model.numeric_class == BF16_CLASS:
        return RoughSession()
    try:
        session = Bf16Session(model, compute)
        bound = measured_cosine_error(exact, session, tokenizer)
        described = described_for_caches(model, "to choose windows")
    except (Bf16UnavailableError, RuntimeError) as error:
        # Messages from OpenVINO and ONNX Runtime contain paths.
        known = isinstance(error, Bf16UnavailableError)
        why = str(error) if known else "the first run failed (see the server's log)"
        problem = f"windows of {model.name} are chosen in fp32, not in bf16: {why}"
        _log.warning("%s", problem, exc_info=error)
        return RoughSession(problem=problem)
    return RoughSession(session, described, bound, f"windows are chosen in bf16, with cosines off by about {bound:.1e}")


def _open_window_graph(
    model: BuiltModel, exact: Session, tokenizer: TextTokenizer, graphs: Path | None
) -> RoughSession:
    """Open the model's 8-bit graph. Without one, windows are chosen in fp32, and only the log says so."""
    why = reason_without_graph(model, graphs)
    if why or graphs is None:
        _log.info("windows of %s are chosen in fp32: %s", model.name, why)
        return RoughSession()
    try:
        session = WindowSession(model, provide_graph(model, graphs))
        bound = _MARGIN * session.cosine_error
        found = _cosine_error(exact, session, tokenizer, CHECKED_TEXTS)
    except Exception as error:  # noqa: BLE001 - ONNX Runtime may raise any error, and fp32 gives the same scores
        _log.warning("windows of %s are chosen in fp32: its 8-bit graph cannot be used", model.name, exc_info=error)
        return RoughSession()
    measured = session.cosine_error
    off, most = (measured, _LARGEST_ERROR) if measured > _LARGEST_ERROR else (found, bound)
    if not off <= most:  # also if the error is not a number
        _log.warning(
            "windows of %s are chosen in fp32: cosines of its 8-bit graph are off by %.3f, more than %.3f",
            *(model.name, off, most),
        )
        return RoughSession()
    digest = hashlib.sha256(f"{WINDOW_CLASS} {WRITER_VERSION}\n{model.digest}".encode()).hexdigest()
    note = f"windows are chosen in 8 bits, with cosines off by at most {bound:.3f}"
    return RoughSession(session, replace(model, digest=digest, numeric_class=WINDOW_CLASS), bound, note)


def measured_cosine_error(exact: Session, rough: Session, tokenizer: TextTokenizer) -> float:
    """Return an error bound for the cosines of approximate vectors, measured on fixed texts."""
    texts = [
        " ".join(words[begin : begin + length])
        for words in (sentence.lower().replace(",", "").split() for sentence in _SENTENCES)
        for length in range(1, _LONGEST_WINDOW + 1)
        for begin in range(len(words) - length + 1)
    ]
    return _MARGIN * _cosine_error(exact, rough, tokenizer, [*_SENTENCES, *texts])


def _cosine_error(exact: Session, rough: Session, tokenizer: TextTokenizer, texts: Sequence[str]) -> float:
    ids = sorted((text.ids for text in tokenizer.encode(texts)), key=len)
    vectors = _vectors(exact, ids)
    return float(np.abs((_vectors(rough, ids) - vectors) @ vectors.T).max())


def _vectors(session: Session, ids: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
    parts = (ids[start : start + _TEXTS_A_RUN] for start in range(0, len(ids), _TEXTS_A_RUN))
    return np.concatenate([session.run(part, layers=(), exclusive=False).sentences for part in parts])


class SessionSource(ModelSource):
    """A source that opens models as sessions in this process."""

    def __init__(  # noqa: PLR0913 - two settings by name
        self,
        repository: Path,
        compute: ComputeConfig,
        telemetry: EncoderTelemetry,
        *,
        gpu_config: GpuConfig,
        gpu: Gpu,
        window_graphs: Path | None,
    ) -> None:
        self._repository = repository
        self._compute = compute
        self._gpu_config = gpu_config
        self._gpu = gpu
        self._telemetry = telemetry
        self._window_graphs = window_graphs

    @override
    def listed(self) -> Sequence[BuiltModel]:
        return list_built(self._repository)

    @override
    def describe(self, name: str) -> BuiltModel:
        return load_built(self._repository, name)

    @override
    async def open(self, name: str, *, namespace: str) -> Encoder:
        loop = asyncio.get_running_loop()
        # Use a separate thread, because ONNX Runtime's threads inherit the priority of the thread that starts them.
        opening = ThreadPoolExecutor(1, initializer=lower_priority, initargs=(ENCODER_NICE,))
        try:
            model, tokenizer, opened, rough = await loop.run_in_executor(opening, self._open, name)
        finally:
            opening.shutdown(wait=False)
        telemetry = ModelTelemetry(self._telemetry, model.name)
        reader = run_reader(model, tokenizer, telemetry)

        def batcher(session: Session, numeric_class: str) -> JobQueue[PendingText, Encoded]:
            if isinstance(session, BucketSession):
                runs = EncoderRuns(session, reader, telemetry)
                return GpuBatcher(runs, opened.compute, name=f"{model.name}-{numeric_class}")

            def run(texts: Sequence[PendingText], /, *, exclusive: bool) -> list[Encoded]:
                started_s = time.perf_counter()
                output = session.run(token_ids(texts), layers=reader.layers_for(texts), exclusive=exclusive)
                return reader.read(texts, output, started_s)

            return Batcher(run, opened.compute, name=f"{model.name}-{numeric_class}")

        approximate = None
        if rough.session is not None and rough.described is not None:
            spaces = ModelSpaces.of_model(namespace, rough.described)
            rough_queue = batcher(rough.session, rough.described.numeric_class)
            rough_encoder = Encoder(model, tokenizer, spaces, rough_queue, telemetry)
            approximate = RoughEncoder(rough_encoder, rough.cosine_error, rough.note)
        shown = described_for_caches(model, "vectors") if model.numeric_class == BF16_CLASS else model
        spaces = ModelSpaces.of_model(namespace, shown)
        queue = batcher(opened.session, model.numeric_class)
        return Encoder(model, tokenizer, spaces, queue, telemetry, rough=approximate, degraded=rough.problem)

    def _open(self, name: str) -> tuple[BuiltModel, TextTokenizer, OpenSession, RoughSession]:
        model = load_built(self._repository, name)
        tokenizer = open_tokenizer(model)
        opened = open_session(model, self._compute, self._gpu_config, self._gpu)
        # Warm up, because a session's first runs allocate memory.
        for ids in warm_up_ids(model, tokenizer):
            for exclusive in (False, True):
                opened.session.run([ids], layers=model.token_layers, exclusive=exclusive)
        rough = open_rough(model, self._compute, opened.session, tokenizer, self._window_graphs)
        return model, tokenizer, opened, rough
