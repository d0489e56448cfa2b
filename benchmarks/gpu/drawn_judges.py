"""Measure a judge's graphs for GPUs with drawn weights, which cost the same to compute as real ones.

The drawn weights repeat one block of random numbers, so that gigabytes are written within seconds.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from benchmarks.gpu.judge_sizes import LARGE, SMALL, TINY
from numpy.typing import NDArray

from gradewire_models.judges.build.padded_graph import write_padded_graph
from gradewire_models.judges.build.padded_layers import WeightForm
from gradewire_models.judges.build.shapes import LayerWeights, Matrix, Sizes, WeightSource
from gradewire_models.judges.cores.opening import open_core
from gradewire_models.judges.cores.rows import Core, Row, RowResult, Run
from gradewire_models.judges.description import graph_file

SEED: Final = 20261128
PREFIX_TOKENS: Final = 560
ITEM_TOKENS: Final = 48
"""The tokens of a `lave` prompt's fixed turns, and of a row of EVOUNA."""
BATCHES: Final = (1, 16, 64)
LABELS: Final = (100, 200, 300)
_BLOCK: Final = 1 << 20
_HEAD_ROWS: Final = 8192
_PREFIX: Final = 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A judge to measure."""

    name: str
    sizes: Sizes
    form: WeightForm
    tied: bool

    @property
    def gigabytes(self) -> float:
        """The size of the weights, to check the disk's free space."""
        sizes = self.sizes
        widths = sizes.dims + 2 * sizes.kv_heads * sizes.head_dim + sizes.dims + 3 * sizes.feed_forward_dims
        layers = sizes.layers * sizes.dims * widths * (2.0 if self.form == "fp16" else 0.5625)
        return (layers + (2 if self.tied else 4) * sizes.vocabulary * sizes.dims) / 1e9


SHAPES: Final = (
    Shape("1.5 B", SMALL, "fp16", tied=True),
    Shape("1.5 B", SMALL, "int4", tied=True),
    Shape("7 B", LARGE, "fp16", tied=False),
    Shape("7 B", LARGE, "int4", tied=False),
)

TINY_SHAPES: Final = (Shape("tiny", TINY, "fp16", tied=True), Shape("tiny", TINY, "int4", tied=True))


class DrawnWeights(WeightSource):
    """Weights of a shape, drawn at random."""

    def __init__(self, sizes: Sizes, *, tied: bool) -> None:
        self.sizes = sizes
        self._tied = tied
        self._block = np.random.default_rng(SEED).standard_normal(_BLOCK).astype(np.float32)

    @property
    def head_name(self) -> str:
        """See `WeightSource`."""
        return "token_embd.weight" if self._tied else "output.weight"

    def tensor(self, name: str, *shape: int) -> Matrix:
        """See `WeightSource`. The scale of a normalisation is 1."""
        del name
        return np.ones(shape, np.float32)

    def row_blocks(self, name: str) -> Iterator[Matrix]:
        """See `WeightSource`."""
        del name
        for start in range(0, self.sizes.vocabulary, _HEAD_ROWS):
            yield self._drawn(min(_HEAD_ROWS, self.sizes.vocabulary - start), self.sizes.dims, first=start)

    def layer(self, index: int) -> LayerWeights:
        """See `WeightSource`."""
        sizes = self.sizes
        queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        dims, wide = sizes.dims, sizes.feed_forward_dims
        return LayerWeights(
            attention_norm=np.ones(dims, np.float32),
            query_key=self._drawn(queries + keys, dims, first=index),
            query_key_bias=self._drawn(1, queries + keys, first=index)[0],
            value=self._drawn(keys, dims, first=index + 1),
            value_bias=self._drawn(1, keys, first=index)[0],
            attention_out=self._drawn(dims, queries, first=index + 2),
            feed_forward_norm=np.ones(dims, np.float32),
            gate=self._drawn(wide, dims, first=index + 3),
            up=self._drawn(wide, dims, first=index + 4),
            down=self._drawn(dims, wide, first=index + 5),
        )

    def _drawn(self, rows: int, width: int, *, first: int) -> Matrix:
        # The scale of each product keeps the values' size, as in a trained model.
        return np.resize(np.roll(self._block, -7919 * first), (rows, width)) / np.float32(np.sqrt(max(width, 64)))


def open_drawn(shape: Shape, directory: Path, device: str) -> Core:
    """Write a judge's graph with drawn weights, and open it on a device."""
    path = directory / str(graph_file(shape.form))
    if not path.is_file():
        write_padded_graph(DrawnWeights(shape.sizes, tied=shape.tied), directory, shape.form, lambda _done: None)
    return open_core(path, shape.form, threads=1, device=device)


def items(sizes: Sizes, count: int, tokens: int = ITEM_TOKENS) -> list[Row]:
    """Return drawn items as rows of a run."""
    drawn = np.random.default_rng(SEED).integers(0, sizes.vocabulary, (count, tokens))
    return [Row(100 + place, tuple(ids), LABELS) for place, ids in enumerate(drawn.tolist())]


def keep_prefix(core: Core, sizes: Sizes, tokens: int = PREFIX_TOKENS) -> None:
    """Compute the prefix that all items share."""
    ids = np.random.default_rng(SEED + 1).integers(0, sizes.vocabulary, tokens).tolist()
    for start in range(0, tokens, core.limits.max_row_tokens):
        core.run(Run(None, (Row(_PREFIX, tuple(ids[start : start + core.limits.max_row_tokens]), keep=True),)))


def measured(shape: Shape, device: str, seconds: float, batches: Sequence[int] = BATCHES) -> Iterator[dict[str, Any]]:
    """Yield the items and tokens per second of a judge, by items in a batch."""
    with TemporaryDirectory() as directory:
        began_s = time.perf_counter()
        core = open_drawn(shape, Path(directory), device)
        made_s = time.perf_counter() - began_s
        keep_prefix(core, shape.sizes)
        for count in batches:
            rows = tuple(items(shape.sizes, count))
            for _ in range(2):  # the first runs allocate memory and choose kernels
                core.run(Run(_PREFIX, rows))
            began_s, runs = time.perf_counter(), 0
            while time.perf_counter() - began_s < seconds / len(batches) or not runs:
                core.run(Run(_PREFIX, rows))
                runs += 1
            took_s = time.perf_counter() - began_s
            yield {
                "judge": shape.name,
                "weights": shape.form,
                "items a batch": count,
                "items/s": round(runs * count / took_s, 1),
                "tokens of items/s": round(runs * count * ITEM_TOKENS / took_s),
                "ms a batch": round(1e3 * took_s / runs, 2),
                "s to write and load": round(made_s, 1),
            }


def parity(device: str, sizes: Sizes = TINY) -> Iterator[dict[str, Any]]:
    """Yield the largest differences of a label's probability between the CPU and a device, and within a batch."""
    for form in ("fp16", "int4"):
        shape = Shape("tiny", sizes, form, tied=True)
        with TemporaryDirectory() as directory:
            rows = items(sizes, 16, 24) + [replace_ids(row, count) for count, row in enumerate(items(sizes, 8, 24), 1)]
            here, there = (open_drawn(shape, Path(directory), name) for name in ("cpu", device))
            for core in (here, there):
                keep_prefix(core, sizes, 100)
            expected, found = (_shares(core.run(Run(_PREFIX, tuple(rows)))) for core in (here, there))
            alone = np.concatenate([_shares(there.run(Run(_PREFIX, (row,)))) for row in rows])
        yield {
            "weights": form,
            "items": len(rows),
            "largest change of a probability to the CPU's": float(np.abs(found - expected).max()),
            "alone against in a batch": float(np.abs(found - alone).max()),
        }


def replace_ids(row: Row, tokens: int) -> Row:
    """Return a row with only its first tokens, as a different state."""
    return row._replace(state=row.state + 1000, ids=row.ids[:tokens])


def _shares(results: Sequence[RowResult]) -> NDArray[np.float64]:
    return np.array([result.probabilities for result in results])
