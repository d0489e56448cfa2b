"""Run `gradewire serve` with encoders and graders whose runs cost nothing: they return vectors that were drawn before.

All other code is the product's: tokenizers, queues, batches, caches and stores. With `COSTLESS_BATCHES=gpu`, batches
are as large as those for a GPU. With `COSTLESS_RUN_MS`, a run waits, as for a GPU, so that more texts come together.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_cli import main as run_command
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders import local
from gradewire_server.encoders.cuda import Gpu, gpu_compute
from gradewire_server.encoders.encoder import RunOutput
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

BATCHES_VARIABLE: Final = "COSTLESS_BATCHES"
RUN_VARIABLE: Final = "COSTLESS_RUN_MS"
_GPU_OVERHEAD_TOKENS: Final = 512
_DRAWN_ROWS: Final = 1 << 14


class CostlessSession:
    """A session that returns slices of one drawn table. Threads share it."""

    def __init__(self, model: BuiltModel) -> None:
        drawn = np.random.default_rng(0).standard_normal((_DRAWN_ROWS, 1 if model.kind == "grader" else model.dims))
        self._rows = drawn.astype(np.float32)
        if model.kind != "grader":
            self._rows /= np.linalg.norm(self._rows, axis=1, keepdims=True)
        self._next = 0
        self._run_s = float(os.environ.get(RUN_VARIABLE, "0")) / 1000

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        """Return the table's next rows. Token vectors start at the same row for each text of a run."""
        del exclusive
        time.sleep(self._run_s)
        width = max(map(len, ids))
        start = self._next if self._next + max(len(ids), width) <= _DRAWN_ROWS else 0
        self._next = start + len(ids)
        tokens = np.broadcast_to(self._rows[start : start + width], (len(ids), width, self._rows.shape[1]))
        return RunOutput(self._rows[start : start + len(ids)], dict.fromkeys(layers, tokens))


def open_costless(model: BuiltModel, compute: ComputeConfig, config: GpuConfig, gpu: Gpu) -> local.OpenSession:
    """Return a costless session with the batch settings of the CPU or of a GPU."""
    del gpu
    settings = compute
    if os.environ.get(BATCHES_VARIABLE) == "gpu":
        settings = replace(gpu_compute(compute, config), run_overhead_tokens=_GPU_OVERHEAD_TOKENS)
    return local.OpenSession(CostlessSession(model), settings)


if __name__ == "__main__":
    local.open_session = open_costless
    sys.exit(run_command())
