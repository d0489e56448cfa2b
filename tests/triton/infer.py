"""Requests to a Triton server, and the same in this process."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tritonclient.grpc
from numpy.typing import NDArray
from tests.support.models.tiny_models import WORDS

from gradewire_models.repository.built import load_built
from gradewire_models.runtime import onnxruntime

Arrays = dict[str, NDArray[np.generic]]


def batch(lengths: Sequence[int], *, seed: int = 0) -> Arrays:
    """Random texts of the tiny vocabulary, padded to the longest."""
    source = np.random.default_rng(seed)
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    return {"input_ids": source.integers(2, len(WORDS), mask.shape) * mask, "attention_mask": mask}


def in_process(repository: Path, model: str, inputs: Arrays, outputs: Sequence[str]) -> list[NDArray[np.float32]]:
    session = onnxruntime.InferenceSession(load_built(repository, model).onnx_path, providers=["CPUExecutionProvider"])
    found: list[NDArray[np.float32]] = session.run(list(outputs), inputs)
    return found


def tensors(inputs: Arrays) -> list[tritonclient.grpc.InferInput]:
    made = []
    for name, array in inputs.items():
        tensor = tritonclient.grpc.InferInput(name, array.shape, "INT64")
        tensor.set_data_from_numpy(array)
        made.append(tensor)
    return made


def wanted(outputs: Sequence[str]) -> list[tritonclient.grpc.InferRequestedOutput]:
    return [tritonclient.grpc.InferRequestedOutput(name) for name in outputs]
