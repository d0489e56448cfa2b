"""Measure parity and speed; each step yields rows of a table, or raises an error with the reason."""

import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.gpu.calling import call_for, serving
from benchmarks.gpu.judging import START_S, JudgeChoice, judged_per_s, vllm_command, vllm_serving
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.roofline import MINILM, Card, least, token_flops
from numpy.typing import NDArray

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.local import EncoderSession, Session, open_session
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

Row = dict[str, Any]
SEED: Final = 20261125
PARITY_TEXTS: Final = 200
VOCABULARY: Final = 30_000
CPU_SHAPES: Final = ((1, 8), (32, 8), (16, 64), (4, 256))
GPU_SHAPES: Final = ((1, 8), (64, 8), (256, 16), (256, 64), (64, 256))
GPU_SERVING: Final = ((1, 1), (1, 8), (1, 32), (2, 32), (4, 32))
"""Pairs of server processes and concurrent calls; two encoder workers always feed a GPU."""
CALLS_AT_A_TIME: Final = 8
_CALLS_A_CLIENT: Final = 8
_JUDGE_OPTIONS: Final = "--judge-url URL and --judge-model NAME (an OpenAI-compatible server, such as vLLM)"
_JUDGE_TAIL_S: Final = 90.0
"""Seconds of the judge's step besides vLLM's start and the measurement."""


class NotRunError(Exception):
    """An error for a step that this machine cannot run; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The seconds for each measurement (half for rows through gRPC), and the run's end in `time.monotonic` seconds."""

    seconds: float
    ends_s: float


class Steps:
    """The steps for one repository; `names` are the CPU encoder and its GPU variant."""

    def __init__(
        self, machine: Machine, repository: Path, names: tuple[str, str], budget: Budget, judge: JudgeChoice
    ) -> None:
        self._machine = machine
        self._repository = repository
        self._cpu, self._gpu = (load_built(repository, name) for name in names)
        self._seconds = budget.seconds
        self._ends_s = budget.ends_s
        self._judge = judge

    def all(self) -> dict[str, Callable[[], Iterator[Row]]]:
        """Return all steps by title, in running order."""
        return {
            "Parity of the GPU with the CPU": self.parity,
            "Tokens a second on the CPU": self.cpu_tokens,
            "Tokens a second on the GPU, against its roofline": self.gpu_tokens,
            "Items a second through gRPC, on the CPU by workers": self.cpu_serving,
            "Items a second through gRPC, on the GPU by server processes and calls at a time": self.gpu_serving,
            "Judge items a second": self.judge,
            "Parity of a drawn judge on the GPU with the CPU": self.judge_parity,
            "Items a second of drawn judges on the GPU, after a kept prefix": self.drawn_judges,
        }

    def parity(self) -> Iterator[Row]:
        """Yield the cosines between GPU and CPU vectors for the same texts, in batches and alone."""
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
        """Yield the tokens per second of single runs on all CPU cores."""
        compute = replace(ComputeConfig(), workers=self._machine.cores)
        yield from self._tokens(EncoderSession(self._cpu, compute), CPU_SHAPES, None)

    def gpu_tokens(self) -> Iterator[Row]:
        """Yield the tokens per second of single runs on the GPU, with and without CUDA graphs."""
        for graphs in (True, False):
            for row in self._tokens(self._on_gpu(cuda_graphs=graphs), GPU_SHAPES, self._machine.card):
                yield {"CUDA graphs": graphs, **row}

    def cpu_serving(self) -> Iterator[Row]:
        """Measure how many answers per second a server on the CPU scores, by number of workers."""
        workers = 1
        while workers <= self._machine.cores:
            flags = {"workers": str(workers), "device": "cpu", "default-model": self._cpu.name}
            yield {"workers": workers, **self._served(flags, CALLS_AT_A_TIME)}
            workers *= 2

    def gpu_serving(self) -> Iterator[Row]:
        """Measure how many answers per second a server on the GPU scores, by server processes and concurrent calls."""
        self._need_gpu()
        for processes, callers in GPU_SERVING:
            flags = {"processes": str(processes), "device": "cuda", "default-model": self._gpu.name}
            yield {"server processes": processes, **self._served(flags, callers)}

    def judge(self) -> Iterator[Row]:
        """Measure how many items per second the user's judge rates."""
        chosen, command = self._judge, vllm_command()
        if chosen.server is None and chosen.weights is None:
            there = "is" if command else "is not"
            raise NotRunError(
                f"no judge was given. Use {_JUDGE_OPTIONS}, or --judge-weights DIR for this machine's vLLM "
                f"(vLLM {there} installed)"
            )
        if chosen.server is None and not command:
            raise NotRunError(
                "--judge-weights needs vLLM, but neither the command nor the module vllm is installed. "
                f"Install it, or give {_JUDGE_OPTIONS}"
            )
        if importlib.util.find_spec("httpx2") is None:
            raise NotRunError(
                "this Python lacks httpx2 for calls to a judge's server. Run: pip install 'gradewire[judge]', "
                "or make a larger pack (--max-mb)"
            )
        if chosen.server is not None:
            yield judged_per_s(self._repository, self._cpu.name, chosen.server, self._seconds)
        elif chosen.weights is not None:
            start_s = min(START_S, self._ends_s - time.monotonic() - self._seconds - _JUDGE_TAIL_S)
            if start_s <= 0:
                raise NotRunError("no time is left to start vLLM. Use fewer --seconds")
            with vllm_serving(command, chosen.weights, start_s=start_s) as server:
                yield judged_per_s(self._repository, self._cpu.name, server, self._seconds)

    def judge_parity(self) -> Iterator[Row]:
        """Yield the differences between the GPU's and the CPU's probabilities of a small drawn judge."""
        device = f"cuda:{self._need_gpu()}"
        _need_graph_writer()
        from benchmarks.gpu.drawn_judges import parity

        yield from parity(device)

    def drawn_judges(self) -> Iterator[Row]:
        """Yield the items and tokens per second of judges with drawn weights in the shapes of 1.5 B and 7 B."""
        device = f"cuda:{self._need_gpu()}"
        _need_graph_writer()
        from benchmarks.gpu.drawn_judges import SHAPES, measured

        for shape in SHAPES:
            name = f"the judge of {shape.name} in {shape.form}"
            # The writing time was estimated for 16 cores: 2 s per gigabyte, and 8 s if the weights are rounded.
            needed_s = self._seconds + shape.gigabytes * (2 if shape.form == "fp16" else 8) + 10
            if time.monotonic() + needed_s > self._ends_s:
                raise NotRunError(f"no time is left for {name}. Use fewer --seconds")
            if shutil.disk_usage(tempfile.gettempdir()).free < 1.1e9 * shape.gigabytes:
                raise NotRunError(f"{name} needs {shape.gigabytes:.0f} GB of disk in {tempfile.gettempdir()}")
            yield from measured(shape, device, self._seconds)

    def _served(self, flags: dict[str, str], callers: int) -> Row:
        # Leave most cores to the server. A power of two divides `callers` evenly.
        clients = max(1, min(callers // _CALLS_A_CLIENT, self._machine.cores // 4))
        clients = 1 << (clients.bit_length() - 1)
        with serving(self._repository, flags) as address:
            return call_for(address, self._seconds / 2, callers=callers, clients=clients)

    def _need_gpu(self) -> int:
        index = self._machine.gpu.index
        if index is None:
            raise NotRunError(self._machine.gpu.problem)
        return index

    def _on_gpu(self, *, cuda_graphs: bool = True) -> Session:
        config = GpuConfig(cuda_graphs=cuda_graphs)
        return open_session(self._gpu, ComputeConfig(), config, Gpu(self._need_gpu())).session

    def _tokens(self, session: Session, shapes: Sequence[tuple[int, int]], card: Card | None) -> Iterator[Row]:
        for texts, tokens in shapes:
            length = min(tokens, self._cpu.max_tokens)
            batch = _texts(np.full(texts, length))
            for _ in range(3):  # a graph is recorded by the third run
                session.run(batch, layers=(), exclusive=True)
            began_s, runs = time.perf_counter(), 0
            while time.perf_counter() - began_s < self._seconds / len(shapes):
                session.run(batch, layers=(), exclusive=True)
                runs += 1
            took_s = time.perf_counter() - began_s
            per_s = runs * texts * length / took_s
            flops = per_s * token_flops(MINILM, length)
            row: Row = {"texts": texts, "tokens each": length, "tokens/s": round(per_s), "TFLOP/s": flops / 1e12}
            if card is not None:
                lower = least(MINILM, texts, length, card)
                row["share of the card's peak"] = flops / card.flops
                row["share of the roofline"] = lower.roofline_s * runs / took_s
                row["the roofline is of"] = lower.bound
            yield row


def _need_graph_writer() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise NotRunError(
            "this Python lacks onnx, which writes the drawn judge's graph. Run: pip install onnx safetensors, or make "
            "a larger pack (--max-mb)"
        )


def _texts(lengths: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    rng = np.random.default_rng(SEED)
    return [rng.integers(1_000, VOCABULARY, length).astype(np.int32) for length in lengths]


def run_step(step: Callable[[], Iterator[Row]]) -> tuple[list[Row], str]:
    """Return a step's rows, and the reason if it failed."""
    rows: list[Row] = []
    try:
        rows.extend(step())
    except NotRunError as error:
        return rows, f"not run: {error}"
    except Exception as error:  # noqa: BLE001 - a failed step is a result, and the next ones still run
        return rows, f"failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}"
    return rows, ""
