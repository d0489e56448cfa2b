"""Measure a built encoder's best and median tokens per second: `python -m benchmarks.latency.batch_shapes`.

All settings run in every round, so that the machine's load affects them alike.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gradewire_models.catalog.loading import default_model
from gradewire_models.repository.built import BuiltModel, default_repository, load_built
from gradewire_models.runtime import cpu_session_options, onnxruntime

ROUNDS = 6
TOKENS_A_ROUND = 1000
SHAPES = ((1, 7), (1, 40), (1, 90), (8, 7), (32, 7), (64, 7), (128, 7), (256, 7), (16, 40))
Inputs = dict[str, Any]


def main() -> None:
    """Print a table with a line for each batch shape and a column for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=default_model().name, help="a built encoder (default: %(default)s)")
    model = load_built(default_repository(), parser.parse_args().model)
    one, two = open_session(model, threads=1), open_session(model, threads=2)

    with ThreadPoolExecutor(2) as pool:
        settings: dict[str, Callable[[list[Inputs]], None]] = {
            "1 run x 1 thread": lambda batches: consume(map(runner(one), batches)),
            "1 run x 2 threads": lambda batches: consume(map(runner(two), batches)),
            "2 runs x 1 thread": lambda batches: consume(pool.map(runner(one), batches)),
        }
        print(f"{model.name}, tokens/s: best (median) of {ROUNDS}")
        print(f"{'texts x tokens':>16}" + "".join(f"{name:>22}" for name in settings))
        rng = np.random.default_rng(0)
        for texts, tokens in SHAPES:
            runs = 2 * max(1, TOKENS_A_ROUND // (2 * texts * tokens))
            batches = [draw(rng, texts, tokens) for _ in range(runs)]
            seconds: dict[str, list[float]] = {name: [] for name in settings}
            for _ in range(ROUNDS):
                for name, run in settings.items():
                    start = time.perf_counter()
                    run(batches)
                    seconds[name].append(time.perf_counter() - start)
            total = runs * texts * tokens
            cells = (f"{total / min(row):.0f} ({total / statistics.median(row):.0f})" for row in seconds.values())
            print(f"{f'{texts} x {tokens}':>16}" + "".join(f"{cell:>22}" for cell in cells))


def open_session(model: BuiltModel, *, threads: int) -> Any:
    """Open the graph on the CPU, with threads that do not spin."""
    options = cpu_session_options(threads)
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(model.onnx_path, options, providers=["CPUExecutionProvider"])


def runner(session: Any) -> Callable[[Inputs], Any]:
    """Return a function that computes a batch's sentence vectors."""
    return lambda batch: session.run(["sentence_embedding"], batch)


def consume(results: Iterable[Any]) -> None:
    """Wait for all results and drop them."""
    for _ in results:
        pass


def draw(rng: np.random.Generator, texts: int, tokens: int) -> Inputs:
    """Return a batch of random texts with the same length."""
    ids = rng.integers(1000, 20_000, (texts, tokens))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


if __name__ == "__main__":
    main()
