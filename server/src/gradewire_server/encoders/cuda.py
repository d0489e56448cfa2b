"""Encoder sessions on an NVIDIA GPU, with few input shapes, permanent buffers and CUDA graphs."""

import itertools
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.encoder import RunOutput
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

_log = logging.getLogger(__name__)

TOKENS: Final = (8, 16, 32, 64, 128, 256, 512)
ROWS: Final = (1, 4, 16, 64, 256)
"""The shapes' row counts. `benchmarks/gpu/buckets.py` found no five counts with less padding for real texts."""

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
"""The number of worker threads: one thread prepares a run while the other thread waits for the GPU."""
_RUN_OVERHEAD_TOKENS: Final = 512
"""The number of tokens that a GPU computes in the time that the start of a run takes. This is a guess."""


class Bucket(NamedTuple):
    """A run's input shape."""

    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Part:
    """Texts that run together, padded to one shape. `places` are the texts' positions in the input."""

    places: tuple[int, ...]
    bucket: Bucket


class Buckets:
    """The shapes of one model.

    Args:
        max_tokens: The model's maximum text length in tokens, which is also the longest shape's length.
        max_run_tokens: The maximum of rows x tokens for shapes with more than one row.
        tokens: The shapes' lengths in ascending order.
        rows: The shapes' row counts in ascending order, including 1.
    """

    def __init__(
        self, max_tokens: int, max_run_tokens: int, *, tokens: Sequence[int] = TOKENS, rows: Sequence[int] = ROWS
    ) -> None:
        self._tokens = (*(length for length in tokens if length < max_tokens), max_tokens)
        self._rows = {
            length: tuple(count for count in rows if count == 1 or count * length <= max_run_tokens)
            for length in self._tokens
        }

    @property
    def shapes(self) -> list[Bucket]:
        """All shapes. A shape's index in this list is the ID of its CUDA graph."""
        return [Bucket(count, length) for length in self._tokens for count in self._rows[length]]

    def cover(self, lengths: Sequence[int]) -> Iterator[Part]:
        """Split texts into parts with one shape each, the longest texts first. `lengths` are 1 to `max_tokens`."""
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        at = 0
        while at < len(order):
            length = self._length_for(lengths[order[at]])
            # Only texts that need this length determine the row count. Shorter texts fill the remaining rows.
            fitting = sum(1 for place in order[at:] if lengths[place] > self._shorter(length))
            count = _rows_for(fitting, self._rows[length])
            taken = order[at : at + count]
            yield Part(tuple(taken), Bucket(count, length))
            at += len(taken)

    def halves(self, part: Part, lengths: Sequence[int]) -> list[Part]:
        """Split a part that did not fit into memory into two smaller parts."""
        middle = len(part.places) // 2
        halves = []
        for places in (part.places[:middle], part.places[middle:]):
            length = self._length_for(max(lengths[place] for place in places))
            count = next(each for each in self._rows[length] if each >= len(places))
            halves.append(Part(places, Bucket(count, length)))
        return halves

    def _length_for(self, tokens: int) -> int:
        return next(each for each in self._tokens if each >= tokens)

    def _shorter(self, length: int) -> int:
        return max((each for each in self._tokens if each < length), default=0)


def _rows_for(texts: int, rows: Sequence[int]) -> int:
    """Return the largest row count that the texts fill. Return the next larger count if the texts fill half of it."""
    for smaller, larger in itertools.pairwise(rows):
        if texts < larger:
            return larger if 2 * texts >= larger else smaller
    return rows[-1]


def pad(ids: Sequence[NDArray[np.int32]], part: Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a part's token IDs and attention mask, both int64[rows, tokens].

    An empty row has one token, because an all-zero mask would make its vector NaN.
    """
    padded = np.zeros(part.bucket, np.int64)
    mask = np.zeros(part.bucket, np.int64)
    mask[len(part.places) :, 0] = 1
    for row, place in enumerate(part.places):
        text = ids[place]
        padded[row, : len(text)], mask[row, : len(text)] = text, 1
    return padded, mask


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
        device: The device's type ("cuda", or "cpu" to run without a GPU) and index.
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
        self._graph_ids = {shape: str(number) if graphs else _NO_GRAPH for number, shape in enumerate(shapes)}
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
        """Free a shape's buffers."""
        self._buffers.pop(shape, None)

    def _allocate(self, shape: Bucket) -> _Buffers:
        ids, mask = (self._empty(shape, np.int64) for _ in range(2))
        sentences = self._empty((shape.rows, self._model.dims), np.float32)
        binding = self._session.io_binding()
        self._bind_inputs(binding, ids, mask)
        binding.bind_ortvalue_output(self._model.sentence_output, sentences)
        return _Buffers(binding, ids, mask, sentences, _run_options(self._graph_ids[shape]))

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
    """Return the process's only thread for this GPU, on which all models load and run.

    ONNX Runtime records CUDA graphs in the capture mode "global". If another thread allocates or copies memory during
    a recording, both the other thread's operation and the recording fail.
    """
    return ThreadPoolExecutor(1, thread_name_prefix=f"gpu-{index}")


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
    session = onnxruntime.InferenceSession(model.onnx_path, options, providers=providers, enable_fallback=0)
    return BoundSession(session, model, buckets.shapes, device=("cuda", index), graphs=config.cuda_graphs)


class BucketSession:
    """A session that pads texts of any length to the shapes in `buckets`. Thread-safe.

    All runs share one thread, because only the thread that recorded a CUDA graph may start this graph.
    """

    def __init__(self, bound: BoundSession, model: BuiltModel, buckets: Buckets, thread: ThreadPoolExecutor) -> None:
        self._bound = bound
        self._model = model
        self._buckets = buckets
        self._thread = thread
        self._too_large: set[Bucket] = set()

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Run texts as `EncoderSession.run` does, but split batches that do not fit into the GPU's memory.

        Raises:
            RuntimeError: ONNX Runtime failed, for example because a single text does not fit.
        """
        del exclusive  # each run has the whole GPU
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
            "batches of %d x %d tokens do not fit into the GPU's memory, so batches are smaller from now on. To avoid "
            "this, decrease gpu_batch_tokens or increase gpu_memory_limit",
            *part.bucket,
        )
