"""The measurements: each gives rows of a table, or says why it cannot run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.gpu.flops import MINILM, token_flops
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.serving import items_per_s
from numpy.typing import NDArray

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.local.choosing import Session, open_session
from gradewire_server.encoders.local.cuda.device import Gpu
from gradewire_server.encoders.local.session import EncoderSession
from gradewire_server.settings.compute import ComputeConfig, GpuConfig

Row = dict[str, Any]
SEED: Final = 20261125
PARITY_TEXTS: Final = 200
VOCABULARY: Final = 30_000
CPU_SHAPES: Final = ((1, 8), (32, 8), (16, 64), (4, 256))
GPU_SHAPES: Final = ((1, 8), (64, 8), (256, 16), (256, 64), (64, 256))


class NotRunError(Exception):
    """Why a step cannot run on this machine."""


class Steps:
    """The steps over one repository.

    Args:
        machine: What there is.
        repository: Of built models.
        names: The encoder for CPUs, and its variant for GPUs.
        seconds: Of each measurement.
    """

    def __init__(self, machine: Machine, repository: Path, names: tuple[str, str], seconds: float) -> None:
        self._machine = machine
        self._repository = repository
        self._cpu, self._gpu = (load_built(repository, name) for name in names)
        self._seconds = seconds

    def all(self) -> dict[str, Callable[[], Iterator[Row]]]:
        """By title, in the order in which they run."""
        return {
            "Parity of the GPU with the CPU": self.parity,
            "Tokens a second on the CPU": self.cpu_tokens,
            "Tokens a second on the GPU, against its peak": self.gpu_tokens,
            "Items a second through gRPC, on the CPU by workers": self.cpu_serving,
            "Items a second through gRPC, on the GPU": self.gpu_serving,
            "Judge items a second": self.judge,
        }

    def parity(self) -> Iterator[Row]:
        """Cosines between the GPU's vectors and the CPU's, the same texts in batches and alone."""
        on_gpu = self._on_gpu()
        on_cpu = EncoderSession(self._cpu, ComputeConfig())
        texts = _texts(np.random.default_rng(SEED).integers(3, self._cpu.max_tokens, PARITY_TEXTS))
        expected = on_cpu.run(texts, layers=(), exclusive=True).sentences
        together = on_gpu.run(texts, layers=(), exclusive=False).sentences
        alone = np.concatenate([on_gpu.run([text], layers=(), exclusive=False).sentences for text in texts])
        pairs = expected @ expected.T
        yield {
            "texts": len(texts),
            "least cosine to the CPU's": float(np.einsum("ij,ij->i", expected, together).min()),
            "largest change of a cosine between texts": float(np.abs(together @ together.T - pairs).max()),
            "largest change of a component, alone against in a batch": float(np.abs(together - alone).max()),
        }

    def cpu_tokens(self) -> Iterator[Row]:
        """Of one run on all cores."""
        compute = replace(ComputeConfig(), workers=1, intra_op_threads=self._machine.cores)
        yield from self._tokens(EncoderSession(self._cpu, compute), CPU_SHAPES, 0.0)

    def gpu_tokens(self) -> Iterator[Row]:
        """Of one run at a time on the GPU, with and without CUDA graphs."""
        for graphs in (True, False):
            for row in self._tokens(self._on_gpu(cuda_graphs=graphs), GPU_SHAPES, self._machine.peak_flops):
                yield {"CUDA graphs": graphs, **row}

    def cpu_serving(self) -> Iterator[Row]:
        """Distinct answers, so that no cache helps, by workers."""
        workers = 1
        while workers <= self._machine.cores:
            flags = {"workers": str(workers), "device": "cpu", "default-model": self._cpu.name}
            yield {"workers": workers, **items_per_s(self._repository, flags, self._seconds)}
            workers *= 2

    def gpu_serving(self) -> Iterator[Row]:
        """As on the CPU."""
        self._need_gpu()
        flags = {"device": "cuda", "default-model": self._gpu.name}
        yield items_per_s(self._repository, flags, self._seconds)

    def judge(self) -> Iterator[Row]:
        """Never runs in a pack of 64 MB."""
        raise NotRunError(
            "no judge fits: the smallest has 94 MB of weights, its engine 34 MB; judges on GPUs run on vLLM "
            "(docs/operate/judge-servers.md)"
        )

    def _need_gpu(self) -> int:
        index = self._machine.gpu.index
        if index is None:
            raise NotRunError(self._machine.gpu.problem)
        return index

    def _on_gpu(self, *, cuda_graphs: bool = True) -> Session:
        config = GpuConfig(cuda_graphs=cuda_graphs)
        return open_session(self._gpu, ComputeConfig(), config, Gpu(self._need_gpu())).session

    def _tokens(self, session: Session, shapes: Sequence[tuple[int, int]], peak_flops: float) -> Iterator[Row]:
        for texts, tokens in shapes:
            length = min(tokens, self._cpu.max_tokens)
            batch = _texts(np.full(texts, length))
            for _ in range(3):  # a graph is recorded at its third run at the latest
                session.run(batch, layers=(), exclusive=True)
            began_s, runs = time.perf_counter(), 0
            while time.perf_counter() - began_s < self._seconds / len(shapes):
                session.run(batch, layers=(), exclusive=True)
                runs += 1
            per_s = runs * texts * length / (time.perf_counter() - began_s)
            flops = per_s * token_flops(MINILM, length)
            row: Row = {"texts": texts, "tokens each": length, "tokens/s": round(per_s), "TFLOP/s": flops / 1e12}
            if peak_flops:
                row["share of the card's peak"] = flops / peak_flops
            yield row


def _texts(lengths: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    rng = np.random.default_rng(SEED)
    return [rng.integers(1_000, VOCABULARY, length).astype(np.int32) for length in lengths]


def run_step(step: Callable[[], Iterator[Row]]) -> tuple[list[Row], str]:
    """Rows of a step, and why there are no more; whatever goes wrong in it stays in it."""
    rows: list[Row] = []
    try:
        rows.extend(step())
    except NotRunError as error:
        return rows, f"not run: {error}"
    except Exception as error:  # noqa: BLE001 - a step that fails is a finding, and the next ones still run
        return rows, f"failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}"
    return rows, ""
