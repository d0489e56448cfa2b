"""Requests to a Triton server, and the same in this process."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc
from numpy.typing import NDArray
from tests.support.models.tiny_models import WORDS
from tests.support.servers.triton import TritonServer

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


@contextmanager
def busy_stubs(server: TritonServer) -> Iterator[None]:
    """Execute requests only after the block, in which they are sent."""
    with server.stopped_stubs():
        yield
        time.sleep(0.3)  # for the requests to arrive; one that came later would be one run more, no error


class Sent:
    """One request on its way."""

    def __init__(
        self, client: tritonclient.grpc.InferenceServerClient, model: str, inputs: Arrays, outputs: Sequence[str]
    ) -> None:
        self._ended: list[tuple[Any, Exception | None]] = []
        self.call = client.async_infer(
            model,
            tensors(inputs),
            lambda result, error: self._ended.append((result, error)),
            outputs=wanted(outputs),
        )

    def ended(self) -> tuple[Any, Exception | None]:
        give_up = time.monotonic() + 30
        while not self._ended:
            assert time.monotonic() < give_up, "no answer"
            time.sleep(0.01)
        return self._ended[0]
