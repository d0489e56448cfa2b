"""Find an encoder's BERTScore settings: the layer that agrees best with annotators, and baselines.

The input is JSON lines with question, references, prediction, label (0 or 1), dataset and model. A baseline is the mean
over pairs of predictions to different questions, like the random sentences in Zhang et al. 2020 (section 5). Prints the
lines for catalog.toml.
"""

import argparse
import asyncio
import hashlib
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.common.rows import Row, read_rows, sample_rows
from prometheus_client import CollectorRegistry

from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure
from gradewire_server.domain.needs import Tier, TokenVectors
from gradewire_server.metrics.encoder.bertscore import match
from gradewire_server.settings.engine import EngineConfig

_TEXTS_AT_ONCE = 200
_ROWS_AT_ONCE = 20
_SEED = 0


Vectors = dict[int, dict[str, TokenVectors]]
"""Token vectors by layer and text."""


async def vectors_of(engine: Backends, texts: Sequence[str], layers: Sequence[int]) -> Vectors:
    """Return all layers' token vectors for the distinct texts, from a single pass."""
    found: Vectors = {layer: {} for layer in layers}
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        asked = (
            engine.ports.embeddings.embed_tokens("", some, [Tier.WINDOW] * len(some), layer=layer) for layer in layers
        )
        for layer, reply in zip(layers, await asyncio.gather(*asked), strict=True):
            for text, item in zip(some, reply.items, strict=True):
                if isinstance(item, Failure):
                    raise SystemExit(item.message)
                found[layer][text] = item
    return found


async def agreement(engine: Backends, rows: Sequence[Row], layers: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return Pearson's correlation of the best reference's F1 with the label, by layer and cell (dataset, model)."""
    values: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        texts = dict.fromkeys(text for row in some for text in (row["prediction"], *row["references"]))
        for layer, vectors in (await vectors_of(engine, list(texts), layers)).items():
            for row in some:
                scores = match(vectors[row["prediction"]], [vectors[each] for each in row["references"]], None, 0)
                values[layer, f"{row['dataset']}-{row['model']}"].append((float(scores[:, 2].max()), row["label"]))
    found: dict[int, dict[str, float]] = {layer: {} for layer in layers}
    for (layer, cell), pairs in values.items():
        found[layer][cell] = float(np.corrcoef(np.array(pairs).T)[0, 1])
    return found


async def baselines(engine: Backends, rows: Sequence[Row], layers: Sequence[int], pairs: int) -> dict[int, list[float]]:
    """Return mean precision, recall and F1 by layer, over pairs of predictions to different questions."""
    draw = random.Random(_SEED)  # noqa: S311 - no secret
    drawn: list[tuple[str, str]] = []
    while len(drawn) < pairs:
        one, other = draw.sample(rows, 2)
        if one["question"] != other["question"]:
            drawn.append((one["prediction"], other["prediction"]))
    vectors = await vectors_of(engine, list(dict.fromkeys(row["prediction"] for row in rows)), layers)
    return {
        layer: np.mean([match(own[one], [own[other]], None, 0)[0] for one, other in drawn], axis=0).tolist()
        for layer, own in vectors.items()
    }


async def main() -> None:
    """Print each layer's agreement and baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--repository", type=Path, default=Path("model_repo/models"))
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--judged", default="gpt35,gpt4", help="models under test whose rows are used")
    parser.add_argument("--rows-per-cell", type=int, default=250)
    parser.add_argument("--pairs", type=int, default=5000)
    given = parser.parse_args()
    cells = defaultdict(list)
    for row in read_rows(given.rows, tuple(given.judged.split(","))):
        if row["prediction"].strip():
            cells[row["dataset"], row["model"]].append(row)
    rows = [
        row
        for _, each in sorted(cells.items())
        for row in sample_rows(each, min(given.rows_per_cell, len(each)), _SEED)
    ]
    engine = await Backends.open(EngineConfig(given.repository, default_model=given.model), CollectorRegistry())
    status = engine.ports.encoders.status("")
    assert not isinstance(status, Failure), status
    layers = [layer.number for layer in status.metadata.token_layers]
    base = await baselines(engine, rows, layers, given.pairs)
    for layer, by_cell in (await agreement(engine, rows, layers)).items():
        shown = ", ".join(f"{cell} {value:.3f}" for cell, value in by_cell.items())
        baseline = ", ".join(f"{value:.4f}" for value in base[layer])
        print(f"layer {layer}: mean {np.mean(list(by_cell.values())):.4f} ({shown}); baseline [{baseline}]", flush=True)
    digest = hashlib.sha256(given.rows.read_bytes()).hexdigest()
    print(f"{len(rows)} rows of {digest[:12]}, {given.pairs} pairs, seed {_SEED}")
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main())
