"""One ONNX Runtime session: token ids in, vectors out. Called from worker threads, several at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import cpu_session_options, onnxruntime
from gradewire_server.encoders.run_reader import RunOutput
from gradewire_server.settings.compute import ComputeConfig


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
