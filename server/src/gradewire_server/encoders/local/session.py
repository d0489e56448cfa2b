"""Sessions of this process: token ids in, vectors out, on ONNX Runtime or OpenVINO; one place decides which."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import BF16_CLASS, Bf16Graph, Bf16UnavailableError, arithmetic
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import cpu_session_options, onnxruntime
from gradewire_server.encoders.encoder import UnusableError
from gradewire_server.encoders.local.cuda import Buckets, BucketSession, Gpu, gpu_compute, gpu_thread, open_bound
from gradewire_server.encoders.outputs import RunOutput
from gradewire_server.settings.engine import ComputeConfig, GpuConfig


class EncoderSession:
    """The graph of one model, loaded.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.*: The file is no graph that this version can run.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._session = _open(model, compute, threads=compute.intra_op_threads)
        exclusive_threads = compute.lone_thread_count
        self._exclusive_session = (
            _open(model, compute, threads=exclusive_threads)
            if exclusive_threads > compute.intra_op_threads
            else self._session
        )
        self._model = model

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Runs texts of any lengths, padded to the longest.

        Args:
            ids: Token ids of each text, at least one.
            layers: Whose token vectors are wanted, of the model's `token_layers`.
            exclusive: Whether no other run is at work, so that this one may use all cores.
        """
        session = self._exclusive_session if exclusive else self._session
        names = [self._model.sentence_output, *map(self._model.token_output, layers)]
        sentences, *tokens = session.run(names, _inputs(ids))
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))


def _open(model: BuiltModel, compute: ComputeConfig, *, threads: int) -> onnxruntime.InferenceSession:
    options = cpu_session_options(threads, allow_spinning=compute.allow_spinning)
    # A memory plan per input shape would be kept for every shape ever seen; shapes here are many and small.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(model.onnx_path, options, providers=["CPUExecutionProvider"])


def _inputs(ids: Sequence[NDArray[np.int32]]) -> dict[str, Any]:
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    mask = np.arange(lengths.max()) < lengths[:, None]
    padded = np.zeros(mask.shape, np.int64)  # what stands under a zero of the mask is never read
    padded[mask] = np.concatenate(ids)
    return {"input_ids": padded, "attention_mask": mask.astype(np.int64)}


class Bf16Session:
    """The graph of one model, compiled.

    Raises:
        Bf16UnavailableError: OpenVINO is not installed, the processor has no instruction for bf16, or OpenVINO cannot
            compile the graph.
    """

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._graph = Bf16Graph(model.onnx_path, runs_at_once=compute.worker_count)
        self._model = model

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Runs texts of any lengths; as `EncoderSession.run`.

        Args:
            ids: Token ids of each text, at least one.
            layers: Whose token vectors are wanted, of the model's `token_layers`.
            exclusive: Makes no difference.
        """
        del exclusive
        names = [self._model.sentence_output, *map(self._model.token_output, layers)]
        sentences, *tokens = self._graph.run(names, ids)
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))


def described_for_caches(model: BuiltModel, use: str) -> BuiltModel:
    """The same model under a digest that names of entries in caches follow from.

    Another processor or another OpenVINO gives other bits, up to 1e-3 of a component: they share no entries.

    Args:
        model: What is run.
        use: What its vectors are for.

    Raises:
        Bf16UnavailableError: As `Bf16Session`.
    """
    digest = hashlib.sha256(f"bf16 {use}\n{arithmetic()}\n{model.digest}".encode()).hexdigest()
    return replace(model, digest=digest)


_PADDING_COST: Final = 0.15
"""Of a token of padding in a graph that has it in attention only (docs/research/encoders.md)."""

_log = logging.getLogger(__name__)


class Session(Protocol):
    """A model that is loaded; called from worker threads, several at a time."""

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """See `EncoderSession.run`."""


class Opened(NamedTuple):
    """A loaded model, and how its batches are cut."""

    session: Session
    compute: ComputeConfig


def open_session(model: BuiltModel, compute: ComputeConfig, config: GpuConfig, gpu: Gpu) -> Opened:
    """Loads a model where its digest says that its vectors are made.

    Args:
        model: Of the repository.
        compute: How runs are cut and run on the CPU.
        config: What users set of GPUs.
        gpu: The one there is.

    Raises:
        UnusableError: It is for a GPU, and there is none, or for TensorRT; or for bf16, which cannot be had here.
        RuntimeError: ONNX Runtime cannot load it.
    """
    if model.numeric_class == BF16_CLASS:
        # It cuts runs by padded length itself.
        return Opened(_open_bf16(model, compute), replace(compute, padding_cost=0.0))
    if model.on_cpu:
        cost = _PADDING_COST if _takes_padding_out(model) else compute.padding_cost
        return Opened(EncoderSession(model, compute), replace(compute, padding_cost=cost))
    if not model.numeric_class.endswith("-cuda") or gpu.index is None:
        # Its digest stands for vectors that a GPU made; the same graph on a CPU gives others.
        why = f" ({gpu.problem})" if model.numeric_class.endswith("-cuda") else ""
        raise UnusableError(
            f"model {model.name!r} is for GPUs ({model.numeric_class}) and cannot run in this process{why}: serve it "
            f"with --backend triton, or use {model.base or 'another one'} here"
        )
    buckets = Buckets(model.max_tokens, config.batch_tokens)
    thread = gpu_thread(gpu.index)
    bound = thread.submit(open_bound, model, config, gpu.index, buckets).result()
    return Opened(BucketSession(bound, model, buckets, thread), gpu_compute(compute, config))


def _takes_padding_out(model: BuiltModel) -> bool:
    """Whether its graph is one of `gradewire models build`; exported ones keep padding in all layers."""
    return model.adapter is not None or model.name in load_catalog()


def _open_bf16(model: BuiltModel, compute: ComputeConfig) -> Bf16Session:
    try:
        return Bf16Session(model, compute)
    except Bf16UnavailableError as error:
        _log.warning("model %s cannot be loaded: %s", model.name, error, exc_info=error)
        # Its digest stands for vectors in bf16; the same graph in fp32 gives others.
        raise UnusableError(
            f"model {model.name!r} computes in bf16, which cannot be had here: {error}; use {model.base} here"
        ) from error
