"""Encoder sessions on an NVIDIA GPU, with few input shapes, permanent buffers and CUDA graphs."""

import logging
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future  # noqa: TC003 - one way of importing types, everywhere
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.runtime import onnxruntime, without_plugin_warning
from gradewire_server.domain.items import Failure, Status
from gradewire_server.encoders.encoder import RunOutput
from gradewire_server.encoders.gpu_shapes import MAX_RUN_TOKENS, Bucket, Buckets, Part, measure, pad
from gradewire_server.encoders.gpu_watch import FIRST_RUN_HANGS_S, GpuLostError, GpuThread, gpu_thread
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

_log = logging.getLogger(__name__)

CUDA_PROVIDER: Final = "CUDAExecutionProvider"
CPU_PROVIDER: Final = "CPUExecutionProvider"

_INSTALL: Final = (
    "pip uninstall onnxruntime, then pip install 'gradewire[gpu]' and pip install --force-reinstall --no-deps "
    "onnxruntime-gpu (docs/operate/triton-and-gpu.md)"
)
_SMALLEST_GRAPH: Final = bytes.fromhex(
    "08093a370a100a017812017922084964656e746974791201675a0f0a0178120a0a08080112040a020801620f0a0179120a0a"
    "08080112040a02080142040a001014"
)
"""An ONNX graph with one Identity operator, to test whether a provider starts."""

_GRAPH_ID: Final = "gpu_graph_id"
_NO_GRAPH: Final = "-1"

_FEEDERS: Final = 2
"""The number of batches that are on their way to the GPU: one that it computes, and the next one."""
_RETRY_S: Final = 60.0
"""Seconds after which a shape is tried again that did not fit, because another program may have freed memory."""
_TOO_LONG: Final = Failure(
    Status.INVALID_INPUT, "the text is too long for the free memory of the server's GPU. Send a shorter text"
)
_MEMORY_FULL: Final = Failure(Status.UNAVAILABLE, "the memory of the server's GPU is full. Try again later")


class DeviceError(OSError):
    """Raised when the requested GPU cannot be used."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that runs models. If no GPU can be used, `index` is None and `problem` is the reason."""

    index: int | None
    problem: str = ""


def find_gpu(config: GpuConfig) -> Gpu:
    """Find the GPU that `config.device` requests. If ``auto`` finds no GPU, log the reason.

    The search takes about a second.

    Raises:
        DeviceError: The settings require a GPU that cannot be used.
    """
    if config.device == "cpu":
        return Gpu(None, "device is cpu")
    problem = _problem(config.index)
    if not problem:
        return Gpu(config.index)
    if config.required:
        raise DeviceError(f"device {config.device} cannot be used: {problem}")
    _log.info("encoders run on the CPU, because device is auto and no GPU can be used: %s", problem)
    return Gpu(None, problem)


def _problem(index: int) -> str:
    if CUDA_PROVIDER not in onnxruntime.get_available_providers():
        return f"the installed onnxruntime ({onnxruntime.__version__}) has no {CUDA_PROVIDER}. Run: {_INSTALL}"
    onnxruntime.preload_dlls()  # CUDA and cuDNN from NVIDIA's wheels are not on the search path for libraries
    try:
        with without_plugin_warning():
            session = onnxruntime.InferenceSession(
                _SMALLEST_GRAPH, providers=[(CUDA_PROVIDER, {"device_id": str(index)})], enable_fallback=0
            )
    except Exception as error:  # noqa: BLE001 - the provider has no error class of its own
        return f"{CUDA_PROVIDER} does not start on GPU {index}: {' '.join(str(error).split())}. Check nvidia-smi"
    if CUDA_PROVIDER not in session.get_providers():
        # If a provider's libraries do not load, ONNX Runtime drops the provider and logs the missing library.
        return (
            f"{CUDA_PROVIDER} does not load: NVIDIA's driver, CUDA or cuDNN is missing or has the wrong version (see "
            "onnxruntime's message above). Run: pip install 'onnxruntime-gpu[cuda,cudnn]', and check nvidia-smi"
        )
    return ""


def provider_options(config: GpuConfig, index: int, *, precision: str) -> dict[str, str]:
    """Return a session's provider options."""
    options = {
        "device_id": str(index),
        # Shapes are few and known, so grow memory by exactly the requested size, not to the next power of two.
        "arena_extend_strategy": "kSameAsRequested",
        # Use one stream for copies and kernels, so that a run never reads inputs that are still being copied.
        "do_copy_in_default_stream": "1",
        # TensorFloat-32 keeps only 10 of a float's 23 mantissa bits, so it is not fp32.
        "use_tf32": "0" if precision == "fp32" else "1",
        "enable_cuda_graph": str(int(config.cuda_graphs)),
    }
    if config.memory_limit_bytes:
        options["gpu_mem_limit"] = str(config.memory_limit_bytes)
    return options


@dataclass(frozen=True, slots=True)
class _Buffers:
    binding: Any
    ids: Any
    mask: Any
    sentences: Any
    options: Any


class BoundSession:
    """A model's graph with permanent buffers. For one thread only, which records and starts the CUDA graphs.

    Args:
        session: The loaded graph.
        model: The model's description.
        shapes: The shapes whose runs are recorded as CUDA graphs.
        device: The device's type ("cuda", or "cpu" to run without a GPU) and index.
        graphs: False to record no CUDA graphs.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        model: BuiltModel,
        shapes: Sequence[Bucket],
        *,
        device: tuple[str, int],
        graphs: bool,
    ) -> None:
        self._session = session
        self._model = model
        self._device = device
        self._recorded = frozenset(shapes if graphs else ())
        self._next_graph = count()
        self._buffers: dict[Bucket, _Buffers] = {}

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Compute one batch.

        Args:
            ids: Token IDs in one of the shapes, int64[rows, tokens].
            mask: 1 for a token, 0 for padding, int64[rows, tokens].
            token_outputs: Names of outputs with token vectors. If there are any, the run uses no CUDA graph.

        Returns:
            Sentence vectors, float32[rows, dims], and each token output's vectors, float32[rows, tokens, dims]. The
            caller owns the arrays.

        Raises:
            RuntimeError: ONNX Runtime failed; see `is_out_of_memory`.
        """
        shape = Bucket(*ids.shape)
        buffers = self._buffers.get(shape)
        if buffers is None:
            buffers = self._buffers[shape] = self._allocate(shape)
        buffers.ids.update_inplace(ids)
        buffers.mask.update_inplace(mask)
        if not token_outputs:
            self._session.run_with_iobinding(buffers.binding, buffers.options)
            return np.array(buffers.sentences.numpy()), []
        # Token vectors are large and rare, so their memory is only in use during the run.
        binding = self._session.io_binding()
        self._bind_inputs(binding, buffers.ids, buffers.mask)
        for name in (self._model.sentence_output, *token_outputs):
            binding.bind_output(name, *self._device)
        self._session.run_with_iobinding(binding, _run_options(_NO_GRAPH))
        sentences, *tokens = binding.copy_outputs_to_cpu()
        return sentences, tokens

    def forget(self, shape: Bucket) -> None:
        """Free a shape's buffers. The shape's next run records a new graph, because a graph keeps its addresses."""
        self._buffers.pop(shape, None)

    def _allocate(self, shape: Bucket) -> _Buffers:
        ids, mask = (self._empty(shape, np.int64) for _ in range(2))
        sentences = self._empty((shape.rows, self._model.dims), np.float32)
        binding = self._session.io_binding()
        self._bind_inputs(binding, ids, mask)
        binding.bind_ortvalue_output(self._model.sentence_output, sentences)
        graph = str(next(self._next_graph)) if shape in self._recorded else _NO_GRAPH
        return _Buffers(binding, ids, mask, sentences, _run_options(graph))

    def _bind_inputs(self, binding: Any, ids: Any, mask: Any) -> None:
        binding.bind_ortvalue_input(INPUT_IDS, ids)
        binding.bind_ortvalue_input(ATTENTION_MASK, mask)

    def _empty(self, shape: Sequence[int], kind: type) -> Any:
        return onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), kind, *self._device)


def _run_options(graph_id: str) -> Any:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_GRAPH_ID, graph_id)
    return options


def is_out_of_memory(error: Exception) -> bool:
    """Return True if a run ran out of memory. ONNX Runtime and CUDA report this only in the message."""
    said = str(error).lower()
    return any(sign in said for sign in ("failed to allocate memory", "out of memory", "alloc_failed"))


def gpu_compute(compute: ComputeConfig, config: GpuConfig) -> ComputeConfig:
    """Return a copy of `compute` for a GPU, which needs few threads and large batches."""
    batch_tokens = config.batch_tokens or MAX_RUN_TOKENS
    return replace(
        compute,
        workers=_FEEDERS,
        pin_workers=False,
        max_batch_tokens=batch_tokens,
        max_batch_texts=max(compute.max_batch_texts, batch_tokens // 8),
    )


def open_bound(model: BuiltModel, config: GpuConfig, index: int, buckets: Buckets) -> BoundSession:
    """Load a model's graph onto a GPU.

    Raises:
        RuntimeError: ONNX Runtime cannot load the graph.
    """
    precision = model.numeric_class.partition("-")[0]
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = False  # avoid a memory plan for each input shape
    options.intra_op_num_threads = 1  # the CPU computes almost nothing, but the default is one thread per core
    providers = [(CUDA_PROVIDER, provider_options(config, index, precision=precision)), CPU_PROVIDER]
    with without_plugin_warning():
        session = onnxruntime.InferenceSession(model.onnx_path, options, providers=providers, enable_fallback=0)
    return BoundSession(session, model, buckets.shapes, device=("cuda", index), graphs=config.cuda_graphs)


def open_on_gpu(model: BuiltModel, config: GpuConfig, index: int) -> "BucketSession":
    """Load a model onto a GPU, and measure its shapes for less than two seconds.

    If `config` sets no `batch_tokens`, the measured times determine the largest run.

    Raises:
        RuntimeError: ONNX Runtime cannot load or run the graph, or no run fits into the GPU's memory.
        GpuLostError: This process has lost the GPU.
    """
    thread = gpu_thread(index)
    buckets = Buckets(model.max_tokens, config.batch_tokens or MAX_RUN_TOKENS)
    bound = thread.run(partial(open_bound, model, config, index, buckets), hangs_s=FIRST_RUN_HANGS_S)
    session = BucketSession(bound, model, buckets, thread)
    try:
        times = measure(session.fits, buckets.shapes)
    except GpuLostError:
        raise
    except Exception as error:
        # A model may be unable to run, but if nothing else starts either, the CUDA context is broken.
        if problem := thread.run(partial(_problem, index)):
            thread.give_up(f"{' '.join(str(error).split())}; then {problem}")
            raise GpuLostError from error
        raise
    if all(map(math.isinf, times.measured.values())):
        raise RuntimeError(
            f"GPU {index} has no memory for a run of {model.name}. End other programs on the GPU, use fewer processes, "
            "or increase gpu_memory_limit"
        )
    most = config.batch_tokens or times.best_run_tokens()
    _log.info(
        "%s: the start of a run takes %.2f ms, and %d tokens a further ms; runs have up to %d tokens",
        model.name,
        times.start_s * 1e3,
        0 if not times.token_s else 1e-3 / times.token_s,
        most,
    )
    session.buckets = buckets.measured(times, most)
    return session


_PartVectors: TypeAlias = tuple[NDArray[np.float32], list[NDArray[np.float32]]]


@dataclass(frozen=True, slots=True)
class GpuOutput:
    """One batch's vectors.

    Attributes:
        padded_tokens: The number of tokens that the GPU computed, with padding.
        failures: The failures of rows that do not fit into the GPU's memory. Their vectors are NaN.
    """

    vectors: RunOutput
    padded_tokens: int
    failures: Mapping[int, Failure] = field(default_factory=dict)


class BucketSession:
    """A session that pads texts of any length to the shapes in `buckets`. Thread-safe.

    All runs share one thread, because only the thread that recorded a CUDA graph may start this graph.

    Attributes:
        buckets: The shapes.
        fitted: The shapes that have fitted into the GPU's memory, with at least one run each.
    """

    def __init__(self, bound: BoundSession, model: BuiltModel, buckets: Buckets, thread: GpuThread) -> None:
        self.buckets = buckets
        self.fitted: set[Bucket] = set()
        self._bound = bound
        self._model = model
        self._thread = thread
        self._too_large: dict[Bucket, float] = {}

    def end_if_hung(self, after_s: float, /) -> None:
        """Declare the GPU lost if its current run has taken longer than `after_s`."""
        self._thread.end_if_hung(after_s)

    def fits(self, shape: Bucket) -> bool:
        """Run a full batch of this shape. Return False if it does not fit into the GPU's memory."""
        batch = np.zeros(shape, np.int64), np.ones(shape, np.int64)
        try:
            self._thread.run(partial(self._bound.run, *batch, ()), hangs_s=FIRST_RUN_HANGS_S)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self._thread.run(partial(self._bound.forget, shape))
            return False
        self.fitted.add(shape)
        return True

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run texts as `EncoderSession.run` does, but split batches that do not fit into the GPU's memory.

        Raises:
            RuntimeError: ONNX Runtime failed, or a single text does not fit.
            GpuLostError: The GPU is lost.
        """
        del exclusive  # each run has the whole GPU
        output = self.run_in_turn(ids, layers=layers)
        if output.failures:
            raise RuntimeError(next(iter(output.failures.values())).message)
        return output.vectors

    def run_in_turn(
        self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], urgent: bool = False
    ) -> GpuOutput:
        """Run texts in the shapes that take the least time, and split batches that do not fit.

        Each part is queued on the GPU's thread before the part before it ends, so that the GPU need not wait.

        Args:
            ids: Token IDs of at least one text.
            layers: Layers whose token vectors to return.
            urgent: True if these runs go before waiting runs that are not urgent.

        Raises:
            RuntimeError: ONNX Runtime failed, but the GPU still works.
            GpuLostError: The GPU is lost.
        """
        names = [self._model.token_output(layer) for layer in layers]
        lengths = [len(text) for text in ids]
        longest = max(lengths)
        sentences = np.empty((len(ids), self._model.dims), np.float32)
        tokens = [np.zeros((len(ids), longest, self._model.dims), np.float32) for _ in layers]
        failures: dict[int, Failure] = {}
        padded_tokens = 0
        waiting = deque(self.buckets.cover(lengths))
        started: deque[tuple[Part, Future[_PartVectors]]] = deque()
        while waiting or started:
            while waiting and len(started) < _FEEDERS:
                part = waiting.popleft()
                if self._was_too_large(part):
                    waiting.extendleft(self.buckets.halves(part, lengths))
                    continue
                run = partial(self._bound.run, *pad(ids, part), names)
                started.append((part, self._thread.submit(run, urgent=urgent)))
            part, future = started.popleft()
            places = list(part.places)
            try:
                found, found_tokens = self._thread.wait(future)
            except GpuLostError:
                raise
            except Exception as error:
                if not is_out_of_memory(error):
                    self._check_gpu(error)
                    raise
                self._give_up(part.bucket)
                if len(places) > 1:
                    waiting.appendleft(part)
                    continue
                padded_tokens += part.bucket.size
                sentences[places] = np.nan
                # If such a run has fitted before, the text is not to blame, and it can be computed later.
                known = part.bucket in self.fitted or part.bucket == self.buckets.shapes[0]
                failures[places[0]] = _MEMORY_FULL if known else _TOO_LONG
                continue
            self.fitted.add(part.bucket)
            padded_tokens += part.bucket.size
            sentences[places] = found[: len(places)]
            width = min(longest, part.bucket.tokens)
            for whole, of_part in zip(tokens, found_tokens, strict=True):
                whole[places, :width] = of_part[: len(places), :width]
        return GpuOutput(RunOutput(sentences, dict(zip(layers, tokens, strict=True))), padded_tokens, failures)

    def _was_too_large(self, part: Part) -> bool:
        return len(part.places) > 1 and self._too_large.get(part.bucket, 0.0) > time.monotonic()

    def _give_up(self, shape: Bucket) -> None:
        self._too_large[shape] = time.monotonic() + _RETRY_S
        self._thread.run(partial(self._bound.forget, shape))
        _log.warning(
            "a run of %d x %d tokens did not fit into the GPU's memory, so such batches are split for %.0f s. To avoid "
            "this, decrease gpu_batch_tokens or increase gpu_memory_limit",
            *shape,
            _RETRY_S,
        )

    def _check_gpu(self, error: Exception) -> None:
        """Declare the GPU lost if it fails to run the smallest shape after this error.

        Codes in messages do not tell which errors break the CUDA context, but such a context fails every further run.
        """
        try:
            self.fits(self.buckets.shapes[0])
        except GpuLostError:
            raise
        except Exception as again:
            self._thread.give_up(
                f"{' '.join(str(error).split())}; then a known run failed: {' '.join(str(again).split())}"
            )
            raise GpuLostError from again
