"""What runs a model in this process: one place decides."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import BF16_CLASS, Bf16UnavailableError
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.local.bf16_session import Bf16Session
from gradewire_server.encoders.local.cuda.buckets import Buckets
from gradewire_server.encoders.local.cuda.device import Gpu
from gradewire_server.encoders.local.cuda.session import BucketSession, gpu_compute, gpu_thread, open_bound
from gradewire_server.encoders.local.session import EncoderSession
from gradewire_server.encoders.run_reader import RunOutput
from gradewire_server.encoders.source import UnusableError
from gradewire_server.settings.compute import ComputeConfig, GpuConfig

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
