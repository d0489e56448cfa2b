"""Compute SMILE in one of several ways, as a worker of `smile_vs_sentence_transformers`.

A worker reads blocks of rows, one JSON line per block, and writes a line of results for each block. Workers differ in
the texts that they embed and in the embedding program.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.common.rows import Row, items_of
from numpy.typing import NDArray

from gradewire_models.catalog.loading import default_model
from gradewire_models.repository.built import default_repository, load_built
from gradewire_server.metrics.smile.texts import smile_texts
from gradewire_server.metrics.text.normalise import Normalised, normalise

Answer = dict[str, Any]


def window_texts(prediction: Normalised, reference: Normalised) -> list[str]:
    """Return all windows of the prediction that are as long as the reference (SMILE's keyword term)."""
    words, n = prediction.words, len(reference.words)
    if len(words) <= n:
        return [" ".join(words)]
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def row_texts(row: Row) -> list[str]:
    """Return every text that SMILE's definition embeds for a row, with repeats."""
    prediction = normalise(row["prediction"])
    texts = [row["prediction"]]
    for raw in row["references"]:
        reference = normalise(raw)
        texts += [raw, reference.text, *window_texts(prediction, reference)]
    return texts


def texts_that_matter(row: Row) -> list[str]:
    """Return the texts that `v1` embeds; no windows if the answer contains a reference (docs/adr/0007)."""
    texts = smile_texts(row["prediction"], tuple(row["references"]), tuple(row["references"]))
    if texts.held:
        return [texts.prediction, *texts.sentences]
    windows = chain.from_iterable(texts.candidates.values())
    return [texts.prediction, *texts.sentences, *texts.open_keywords, *windows]


def smile_v1(row: Row, vectors: NDArray[np.float32]) -> float:
    """Compute SMILE `v1` directly by its definition, from the vectors of `row_texts(row)`."""
    prediction = normalise(row["prediction"])
    present, best, position = set(prediction.words), 0.0, 1
    for raw in row["references"]:
        reference = normalise(raw)
        count = len(window_texts(prediction, reference))
        sentence = (1 + float(vectors[0] @ vectors[position])) / 2
        keyword = (1 + float((vectors[position + 2 : position + 2 + count] @ vectors[position + 1]).max())) / 2
        distinct = set(reference.words)
        exact = len(distinct & present) / len(distinct)
        best = max(best, 0.3 * sentence + 0.7 * (exact + keyword) / 2)
        position += 2 + count
    return best


def sentence_transformers_worker(checkpoint: Path, backend: str, threads: int) -> Callable[[list[Row]], Answer]:
    """Return a worker that embeds each block with one `encode()`."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    if backend == "onnx":
        from gradewire_models.runtime import cpu_session_options

        kwargs: dict[str, Any] = {
            "export": True,
            "provider": "CPUExecutionProvider",
            "session_options": cpu_session_options(threads),
        }
        model = SentenceTransformer(str(checkpoint), device="cpu", backend="onnx", model_kwargs=kwargs)
    else:
        model = SentenceTransformer(str(checkpoint), device="cpu")

    def run(rows: list[Row]) -> Answer:
        started = time.perf_counter()
        per_row = [row_texts(row) for row in rows]
        texts = [text for row in per_row for text in row]
        vectors = model.encode(texts, normalize_embeddings=True)
        scores, position = [], 0
        for row, own in zip(rows, per_row, strict=True):
            scores.append(smile_v1(row, vectors[position : position + len(own)]))
            position += len(own)
        seconds = time.perf_counter() - started
        tokens = sum(len(ids) for ids in model.tokenizer(texts, truncation=True)["input_ids"])
        return {
            "seconds": seconds,
            "texts": len(texts),
            "tokens": tokens,
            "calls": -(-len(texts) // 32),
            "scores": scores,
        }

    return run


def bare_session_worker(threads: int, runs_at_once: int) -> Callable[[list[Row]], Answer]:
    """Return a worker that times only `session.run` for `v1`'s unique texts, sorted by length."""
    from benchmarks.latency.payloads import open_session, padded
    from tokenizers import Tokenizer

    built = load_built(default_repository(), default_model().name)
    session = open_session(built.onnx_path, max(1, threads // runs_at_once))
    tokenizer = Tokenizer.from_file(str(built.tokenizer_path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(built.max_tokens)
    pool, seen = ThreadPoolExecutor(runs_at_once), set[str]()

    def forward(batch: list[list[int]]) -> None:
        session.run([built.sentence_output], padded(batch))

    def run(rows: list[Row]) -> Answer:
        texts = [
            text for text in dict.fromkeys(text for row in rows for text in texts_that_matter(row)) if text not in seen
        ]
        seen.update(texts)
        encoded = sorted((encoding.ids for encoding in tokenizer.encode_batch(texts)), key=len)
        batches = [encoded[start : start + 64] for start in range(0, len(encoded), 64)]
        started = time.perf_counter()
        list(pool.map(forward, batches))
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "texts": len(texts), "tokens": sum(map(len, encoded)), "calls": len(batches)}

    return run


def gradewire_worker(stack: ExitStack, metric: str, *, prepared: bool, threads: int) -> Callable[[list[Row]], Answer]:
    """Return a worker that scores each block with a server and the Python client, first cold, then warm.

    With `prepared`, references are prepared before the timing. `threads` is the number of concurrent encoder runs.
    """
    from benchmarks.common.servers import start_engine

    from gradewire import Client

    cache = stack.enter_context(tempfile.TemporaryDirectory())
    options = {"disk-directory": cache, "workers": str(threads)}
    server = stack.enter_context(start_engine("embedded", options))
    client = stack.enter_context(Client(server.address, deadline_s=600))

    def counters() -> dict[str, float]:
        """Return the encoder's number of texts, tokens (with padding) and runs so far."""
        return {
            "texts": server.metric("gradewire_engine_batch_texts_sum"),
            "tokens": server.metric("gradewire_engine_batch_tokens_sum"),
            "calls": server.metric("gradewire_engine_batch_texts_count"),
        }

    def run(rows: list[Row]) -> Answer:
        items = items_of(rows)
        if prepared:
            client.prepare([{key: item[key] for key in ("question", "references")} for item in items], metric)
        before = counters()
        started = time.perf_counter()
        cold = client.score(items, metric)
        seconds = time.perf_counter() - started
        after = counters()
        started = time.perf_counter()
        client.score(items, metric)
        warm_seconds = time.perf_counter() - started
        return {
            "seconds": seconds,
            "warm_seconds": warm_seconds,
            **{name: after[name] - before[name] for name in after},
            "warm_texts": counters()["texts"] - after["texts"],
            "scores": [next(iter(item.scores.values())).score for item in cold],
        }

    return run


def main() -> None:
    """Process blocks until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["torch", "onnx", "bare", "v1", "fast", "fast-prepared"])
    parser.add_argument("--checkpoint", type=Path, help="the encoder as a Hugging Face folder (torch, onnx)")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    kind, threads = arguments.kind, arguments.threads
    with ExitStack() as stack:
        if kind in {"torch", "onnx"}:
            run = sentence_transformers_worker(arguments.checkpoint, kind, threads)
        elif kind == "bare":
            run = bare_session_worker(threads, runs_at_once=threads)
        else:
            metric = f"smile:{kind.split('-')[0]}"
            run = gradewire_worker(stack, metric, prepared=kind.endswith("prepared"), threads=threads)
        for line in sys.stdin:
            sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
