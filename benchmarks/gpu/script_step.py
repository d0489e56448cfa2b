"""Measure SMILE by a script around sentence-transformers on the same card, untuned and tuned."""

import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from benchmarks.gpu.machine import Bench
from benchmarks.gpu.step_processes import NotRunError, Row
from benchmarks.peers.smile_workers import row_texts, smile_v1


@dataclass(frozen=True, slots=True)
class Way:
    """A way to write the script.

    Attributes:
        unique: True to embed each distinct text once.
        rows: Number of rows; a slow way gets fewer.
    """

    name: str
    half: bool
    batch: int
    unique: bool
    rows: int


TUNED: Final = "tuned"
WAYS: Final = (
    Way(TUNED, half=True, batch=1_024, unique=True, rows=2_000),
    Way("untuned", half=False, batch=32, unique=False, rows=500),
)


def script(bench: Bench) -> Iterator[Row]:
    """Yield the rows per second of the script, for each way.

    Raises:
        NotRunError: There is no GPU, no sentence-transformers or no folder of the encoder.
    """
    device = bench.device()
    # The machine's torch and sentence-transformers check the versions of packages that the pack has too.
    sys.path.sort(key=lambda path: ".gpu-pack" in path)
    for name in ("torch", "sentence_transformers"):
        if importlib.util.find_spec(name) is None:
            raise NotRunError(f"this Python lacks {name}. Use one that has it (PYTHON=…)")
    if not (bench.checkpoint / "modules.json").is_file():
        raise NotRunError(
            f"{bench.checkpoint} is not a folder for sentence-transformers. Make a pack with --pieces, or run: "
            f"python -m benchmarks.peers.checkpoint {bench.checkpoint}"
        )
    for way in WAYS:
        source, rows = bench.rows(way.rows)
        model = open_model(bench, way, device)
        score(model, rows[:8], way)
        began_s = time.perf_counter()
        scores = score(model, rows, way)
        took_s = time.perf_counter() - began_s
        yield {
            "script": way.name,
            "precision": "fp16" if way.half else "fp32",
            "texts a batch": way.batch,
            "unique texts": way.unique,
            "rows": f"{len(rows)} {source}",
            "rows/s": round(len(rows) / took_s, 1),
            "mean SMILE": round(float(np.mean(scores)), 4),
        }


def open_model(bench: Bench, way: Way, device: str) -> Any:
    """Load the encoder with sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bench.checkpoint), device=device)
    return model.half() if way.half and device != "cpu" else model


def score(model: Any, rows: Sequence[Row], way: Way) -> list[float]:
    """Return each row's SMILE; all texts of all rows are embedded by one `encode()`."""
    per_row = [row_texts(row) for row in rows]
    texts = [text for own in per_row for text in own]
    distinct = list(dict.fromkeys(texts)) if way.unique else texts
    vectors = np.asarray(model.encode(distinct, batch_size=way.batch, normalize_embeddings=True), np.float32)
    if way.unique:
        position_of = {text: position for position, text in enumerate(distinct)}
        vectors = vectors[[position_of[text] for text in texts]]
    scores, position = [], 0
    for row, own in zip(rows, per_row, strict=True):
        scores.append(smile_v1(row, vectors[position : position + len(own)]))
        position += len(own)
    return scores
