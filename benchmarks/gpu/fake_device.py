"""Run `gradewire` with a simulated GPU: each run sleeps as long as an H100 takes for its shape.

`python -m benchmarks.gpu.fake_device serve ...` takes the arguments of `gradewire`. Everything but the card is the
product's: tokenizers, queues, shapes and their measurement, the GPU's thread, caches. The encoder's description is
that of the CPU model, under the name of its GPU variant. Vectors are drawn, and depend only on the text. With
`FAKE_GPU_FAULT=lost:FILE` or `hang:FILE`, the card fails, or never ends its next run, as soon as the file exists.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_cli import main as run_command
from gradewire_models.repository.built import BuiltModel, list_built, load_built
from gradewire_server.encoders import cuda, local
from gradewire_server.encoders.gpu_shapes import Bucket, Buckets, ShapeTimes
from gradewire_server.settings.engine import GpuConfig

FAULT_VARIABLE: Final = "FAKE_GPU_FAULT"
BASE: Final = "all-MiniLM-L6-v2"
NAME: Final = f"{BASE}-fp16-cuda"
H100_TOKENS_PER_S: Final[Mapping[Bucket, float]] = {
    Bucket(1, 8): 20e3,
    Bucket(64, 8): 583e3,
    Bucket(256, 16): 1.70e6,
    Bucket(256, 64): 3.27e6,
    Bucket(64, 256): 2.93e6,
}
"""Measured speed of all-MiniLM-L6-v2 in fp16 with CUDA graphs on an H100 80 GB (driver 580, ONNX Runtime 1.31.1)."""
H100_TIMES: Final = ShapeTimes({shape: shape.size / speed for shape, speed in H100_TOKENS_PER_S.items()})
_DRAWN_ROWS: Final = 1 << 12


class FakeCard:
    """A model on a simulated card, in the place of `cuda.BoundSession`.

    Attributes:
        runs: Number of runs.
        rows: Number of rows of all runs, with rows that hold no text.
    """

    def __init__(self, model: BuiltModel, *, times: ShapeTimes = H100_TIMES, fault: str = "") -> None:
        drawn = np.random.default_rng(0).standard_normal((_DRAWN_ROWS, model.dims)).astype(np.float32)
        self._drawn = drawn if model.kind == "grader" else drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        self._factors = np.random.default_rng(1).integers(1, 1 << 40, 1 << 10)
        self._times = times
        self._fault, _, file = fault.partition(":")
        self._fault_file = Path(file)
        self.runs = self.rows = 0

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], token_outputs: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Return drawn vectors like `cuda.BoundSession.run`, after the time that an H100 takes."""
        self.runs += 1
        self.rows += len(ids)
        if self._fault and self._fault_file.exists():
            if self._fault == "hang":
                threading.Event().wait()
            raise RuntimeError("CUDA failure 719: unspecified launch failure ; GPU=0")
        time.sleep(self._times.seconds(Bucket(*ids.shape)))
        factors = self._factors[: ids.shape[1]]
        texts = (ids * mask * factors).sum(axis=1) % _DRAWN_ROWS
        return self._drawn[texts], [self._drawn[(ids * factors) % _DRAWN_ROWS] for _ in token_outputs]

    def forget(self, shape: Bucket) -> None:
        """Do nothing, because a simulated card has no buffers."""


def gpu_variant(model: BuiltModel) -> BuiltModel:
    """Return the description of an encoder for CPUs as that of its GPU variant."""
    return replace(model, name=f"{model.name}-fp16-cuda", base=model.name, numeric_class="fp16-cuda")


@cache
def _variant(repository: Path) -> BuiltModel:
    return gpu_variant(load_built(repository, BASE))


def load_variant(repository: Path, name: str) -> BuiltModel:
    """Load a model's description like `load_built`; the simulated card's encoder is always there."""
    return _variant(repository) if name == NAME else load_built(repository, name)


def list_with_variant(repository: Path) -> list[BuiltModel]:
    """List all models like `list_built`, with the simulated card's encoder."""
    return [*list_built(repository), load_variant(repository, NAME)]


def open_fake(model: BuiltModel, config: GpuConfig, index: int, buckets: Buckets) -> Any:
    """Open a model on the simulated card, in the place of `cuda.open_bound`."""
    del config, index, buckets
    return FakeCard(model, fault=os.environ.get(FAULT_VARIABLE, ""))


def find_fake(config: GpuConfig) -> cuda.Gpu:
    """Find the simulated card, in the place of `cuda.find_gpu`."""
    return cuda.Gpu(config.index)


def install() -> Callable[[], None]:
    """Replace the GPU by the simulated card in this process. Return a function that undoes this."""
    undoing = ExitStack()
    for module, name, fake in (
        (cuda, "find_gpu", find_fake),
        (cuda, "open_bound", open_fake),
        (local, "load_built", load_variant),
        (local, "list_built", list_with_variant),
    ):
        undoing.callback(setattr, module, name, getattr(module, name))
        setattr(module, name, fake)
    return undoing.close


if __name__ == "__main__":
    undo = install()
    try:
        sys.exit(run_command())
    finally:
        undo()
