"""An encoder on a GPU: runs of any texts, cut into the shapes that it knows."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.local.cuda.bound import BoundSession, Place, is_out_of_memory
from gradewire_server.encoders.local.cuda.buckets import Bucket, Buckets, Part, pad
from gradewire_server.encoders.local.cuda.device import CPU_PROVIDER, CUDA_PROVIDER
from gradewire_server.encoders.local.cuda.provider_options import provider_options
from gradewire_server.encoders.run_reader import RunOutput
from gradewire_server.settings.compute import ComputeConfig, GpuConfig

_FEEDERS: Final = 2
"""Workers that tokenize, pad and read results: while the GPU computes for one, the other gets the next run ready."""
_RUN_OVERHEAD_TOKENS: Final = 512
"""A guess, not measured: the tokens that a GPU computes in the time in which it starts a run's kernels."""

_log = logging.getLogger(__name__)


class BoundRuns(Protocol):
    """What computes one batch; see `BoundSession`."""

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """See `BoundSession.run`."""

    def forget(self, shape: Bucket) -> None:
        """See `BoundSession.forget`."""


def gpu_compute(compute: ComputeConfig, config: GpuConfig) -> ComputeConfig:
    """How batches are cut for a GPU: few and large."""
    return replace(
        compute,
        workers=_FEEDERS,
        pin_workers=False,
        max_batch_tokens=config.batch_tokens,
        max_batch_texts=max(compute.max_batch_texts, config.batch_tokens // 8),
        run_overhead_tokens=_RUN_OVERHEAD_TOKENS,
    )


@cache
def gpu_thread(index: int) -> ThreadPoolExecutor:
    """The one thread of this process that talks to a GPU, for all of its models, also while one is loaded.

    ONNX Runtime records CUDA graphs in the capture mode "global": whatever allocates or copies on another thread at
    that moment fails, and so does the recording.
    """
    return ThreadPoolExecutor(1, thread_name_prefix=f"gpu-{index}")


def open_bound(model: BuiltModel, config: GpuConfig, index: int, buckets: Buckets) -> BoundSession:
    """Loads a model's graph onto a GPU.

    Args:
        model: With a numeric class that ends in ``-cuda``.
        config: What users set.
        index: Number of the GPU, from 0.
        buckets: Its shapes.

    Raises:
        RuntimeError: ONNX Runtime cannot load it there.
    """
    precision = model.numeric_class.partition("-")[0]
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False  # shapes are many for the few runs that are not recorded
    options.intra_op_num_threads = 1  # the CPU computes shapes alone; the default is a thread for every core
    providers = [(CUDA_PROVIDER, provider_options(config, index, precision=precision)), CPU_PROVIDER]
    session = onnxruntime.InferenceSession(model.onnx_path, options, providers=providers, enable_fallback=0)
    return BoundSession(
        session,
        Place("cuda", index),
        sentence_output=model.sentence_output,
        dims=model.dims,
        shapes=buckets.shapes,
        graphs=config.cuda_graphs,
    )


class BucketSession:
    """Runs texts of any lengths in the shapes of `Buckets`. Called from worker threads, several at a time.

    All of them share one session, one stream and one thread that talks to it: a GPU computes one large run sooner than
    two of half the size beside each other, and recorded CUDA graphs may not be started from several threads.

    Args:
        bound: What computes a batch.
        model: Whose graph it is.
        buckets: Its shapes.
        thread: On which `bound` is called.
    """

    def __init__(self, bound: BoundRuns, model: BuiltModel, buckets: Buckets, thread: ThreadPoolExecutor) -> None:
        self._bound = bound
        self._model = model
        self._buckets = buckets
        self._thread = thread
        self._too_large: set[Bucket] = set()

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """See `EncoderSession.run`; a batch that does not fit into the GPU's memory runs in smaller ones.

        Raises:
            RuntimeError: As ONNX Runtime raises it, also where a single text does not fit.
        """
        del exclusive  # there is one way to run
        names = [self._model.token_output(layer) for layer in layers]
        lengths = [len(text) for text in ids]
        longest = max(lengths)
        sentences = np.empty((len(ids), self._model.dims), np.float32)
        tokens = [np.zeros((len(ids), longest, self._model.dims), np.float32) for _ in layers]
        waiting = list(self._buckets.cover(lengths))
        while waiting:
            part = waiting.pop()
            if part.bucket in self._too_large and len(part.places) > 1:
                waiting += self._buckets.halves(part, lengths)
                continue
            batch = pad(ids, part)
            try:
                found, found_tokens = self._thread.submit(self._bound.run, *batch, names).result()
            except Exception as error:
                if not is_out_of_memory(error) or len(part.places) == 1:
                    raise
                self._give_up(part)
                waiting.append(part)
                continue
            places = list(part.places)
            sentences[places] = found[: len(places)]
            width = min(longest, part.bucket.tokens)
            for whole, of_part in zip(tokens, found_tokens, strict=True):
                whole[places, :width] = of_part[: len(places), :width]
        return RunOutput(sentences, dict(zip(layers, tokens, strict=True)))

    def _give_up(self, part: Part) -> None:
        self._too_large.add(part.bucket)
        self._thread.submit(self._bound.forget, part.bucket).result()
        _log.warning(
            "runs of %d x %d tokens do not fit into the GPU's memory: smaller ones from now on (gpu_batch_tokens, "
            "gpu_memory_limit)",
            *part.bucket,
        )
