"""Steps that compute vectors without gRPC: parity of the GPU with the CPU, and tokens a second."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from benchmarks.gpu.calling import scores_of
from benchmarks.gpu.machine import SEED, Bench
from benchmarks.gpu.roofline import MINILM, least, token_flops
from benchmarks.gpu.step_processes import Row
from numpy.typing import NDArray

from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.local import EncoderSession, Session, open_session
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

PARITY_TEXTS: Final = 200
PARITY_ROWS: Final = 2_000
VOCABULARY: Final = 30_000
CPU_SHAPES: Final = ((1, 8), (32, 8), (16, 64), (4, 256))
GPU_SHAPES: Final = ((1, 8), (64, 8), (256, 16), (256, 64), (64, 256))
_TINY_SHAPES: Final = ((1, 8), (4, 16))


def parity(bench: Bench) -> Iterator[Row]:
    """Yield the cosines between GPU and CPU vectors for the same texts, in batches and alone."""
    on_gpu = session_on_gpu(bench)
    on_cpu = EncoderSession(bench.cpu, ComputeConfig())
    count = 8 if bench.rehearsal else PARITY_TEXTS
    texts = _texts(np.random.default_rng(SEED).integers(3, bench.cpu.max_tokens, count))
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


def smile_parity(bench: Bench) -> Iterator[Row]:
    """Yield the largest difference of a row's SMILE between a server on the GPU and one on the CPU."""
    bench.need_gpu()
    source, rows = bench.rows(PARITY_ROWS)
    with bench.server() as address:
        on_gpu = np.array(scores_of(address, rows, "smile"))
    with bench.cpu_server() as address:
        on_cpu = np.array(scores_of(address, rows, "smile"))
    yield {
        "rows": len(rows),
        "source": source,
        "largest change of `smile`": float(np.abs(on_gpu - on_cpu).max()),
        "mean change": float(np.abs(on_gpu - on_cpu).mean()),
    }


def gpu_tokens(bench: Bench) -> Iterator[Row]:
    """Yield the tokens per second of single runs on the GPU, with and without CUDA graphs."""
    for graphs in (True, False):
        session = session_on_gpu(bench, cuda_graphs=graphs)
        for row in _tokens(bench, session, GPU_SHAPES, on_card=True):
            yield {"CUDA graphs": graphs, **row}


def cpu_tokens(bench: Bench) -> Iterator[Row]:
    """Yield the tokens per second of single runs on all CPU cores."""
    compute = replace(ComputeConfig(), workers=bench.machine.cores)
    yield from _tokens(bench, EncoderSession(bench.cpu, compute), CPU_SHAPES, on_card=False)


def session_on_gpu(bench: Bench, *, cuda_graphs: bool = True) -> Session:
    """Open the encoder on the GPU; on the CPU in a rehearsal.

    Raises:
        NotRunError: No GPU can be used.
    """
    index = bench.need_gpu()
    if bench.rehearsal:
        return EncoderSession(bench.gpu, ComputeConfig())
    config = GpuConfig(cuda_graphs=cuda_graphs)
    return open_session(bench.gpu, ComputeConfig(), config, Gpu(index)).session


def _tokens(bench: Bench, session: Session, shapes: Sequence[tuple[int, int]], *, on_card: bool) -> Iterator[Row]:
    card = bench.machine.card if on_card else None
    for texts, tokens in _TINY_SHAPES if bench.rehearsal else shapes:
        length = min(tokens, bench.cpu.max_tokens)
        batch = _texts(np.full(texts, length))
        for _ in range(3):  # a graph is recorded by the third run
            session.run(batch, layers=(), exclusive=True)
        began_s, runs = time.perf_counter(), 0
        while time.perf_counter() - began_s < bench.seconds / 2 or not runs:
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


def _texts(lengths: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    rng = np.random.default_rng(SEED)
    return [rng.integers(1_000, VOCABULARY, length).astype(np.int32) for length in lengths]
