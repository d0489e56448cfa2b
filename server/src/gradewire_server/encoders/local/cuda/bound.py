"""A session whose inputs and outputs stay where they are: a set of buffers for each shape, on the session's device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.local.cuda.buckets import Bucket

_GRAPH_ID: Final = "gpu_graph_id"
_NO_GRAPH: Final = "-1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where buffers are.

    Attributes:
        kind: ``"cuda"``, or ``"cpu"`` to run the same code without a GPU.
        index: Number of the device, from 0.
    """

    kind: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class _Buffers:
    binding: Any
    ids: Any
    mask: Any
    sentences: Any
    options: Any


class BoundSession:
    """Runs one graph in buffers. Called from one thread only: recorded CUDA graphs belong to the thread that made them.

    Args:
        session: The graph, loaded.
        place: Where the session's device keeps memory.
        sentence_output: Name of the output that every run gives, float32[rows, dims].
        dims: Its length.
        shapes: All that runs can have.
        graphs: Whether the session records CUDA graphs.
    """

    def __init__(  # noqa: PLR0913 - five of one session, by name
        self,
        session: onnxruntime.InferenceSession,
        place: Place,
        *,
        sentence_output: str,
        dims: int,
        shapes: Sequence[Bucket],
        graphs: bool,
    ) -> None:
        self._session = session
        self._place = place
        self._sentence_output = sentence_output
        self._dims = dims
        self._graph_ids = {shape: str(number) if graphs else _NO_GRAPH for number, shape in enumerate(shapes)}
        self._buffers: dict[Bucket, _Buffers] = {}

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Computes one batch; copies in, computes, copies out once.

        Args:
            ids: Token ids, [rows, tokens] of one of the shapes.
            mask: 1 on a text's tokens, then 0; of the same shape.
            token_outputs: Names of outputs with token vectors, which a run without a CUDA graph gives.

        Returns:
            Sentence vectors, float32[rows, dims], and float32[rows, tokens, dims] for each of `token_outputs`. Arrays
            of the caller's own.

        Raises:
            RuntimeError: As ONNX Runtime raises it; `is_out_of_memory` tells what for.
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
        # Token vectors are large and seldom: their memory is the run's, and goes back to the arena with the binding.
        binding = self._session.io_binding()
        self._bind_inputs(binding, buffers.ids, buffers.mask)
        for name in (self._sentence_output, *token_outputs):
            binding.bind_output(name, self._place.kind, self._place.index)
        self._session.run_with_iobinding(binding, _run_options(_NO_GRAPH))
        sentences, *tokens = binding.copy_outputs_to_cpu()
        return sentences, tokens

    def forget(self, shape: Bucket) -> None:
        """Gives the buffers of a shape back, where they are there."""
        self._buffers.pop(shape, None)

    def _allocate(self, shape: Bucket) -> _Buffers:
        ids, mask = (self._empty(shape, np.int64) for _ in range(2))
        sentences = self._empty((shape.rows, self._dims), np.float32)
        binding = self._session.io_binding()
        self._bind_inputs(binding, ids, mask)
        binding.bind_ortvalue_output(self._sentence_output, sentences)
        return _Buffers(binding, ids, mask, sentences, _run_options(self._graph_ids[shape]))

    def _bind_inputs(self, binding: Any, ids: Any, mask: Any) -> None:
        binding.bind_ortvalue_input(INPUT_IDS, ids)
        binding.bind_ortvalue_input(ATTENTION_MASK, mask)

    def _empty(self, shape: Sequence[int], kind: type) -> Any:
        return onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), kind, self._place.kind, self._place.index)


def _run_options(graph_id: str) -> Any:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_GRAPH_ID, graph_id)
    return options


def is_out_of_memory(error: Exception) -> bool:
    """Whether a run failed for want of memory: ONNX Runtime and CUDA say so in words alone."""
    said = str(error).lower()
    return any(sign in said for sign in ("failed to allocate memory", "out of memory", "alloc_failed"))
