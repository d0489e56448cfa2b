"""ONNX Runtime on the CPU, as benchmarks run encoders beside the server."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradewire_models.runtime import cpu_session_options, onnxruntime


def open_session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """Opens a graph that runs on `threads` threads."""
    return onnxruntime.InferenceSession(path, cpu_session_options(threads), providers=["CPUExecutionProvider"])


def padded(texts: Sequence[Sequence[int]]) -> dict[str, NDArray[np.int64]]:
    """Token ids as an encoder's inputs, both int64 [texts, longest], with zeros behind shorter texts."""
    ids = np.zeros((len(texts), max(map(len, texts))), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return {"input_ids": ids, "attention_mask": mask}
