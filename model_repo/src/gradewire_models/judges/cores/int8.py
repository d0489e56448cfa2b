"""A core that runs a judge's int8 graph on ONNX Runtime."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.judges.cores.rows import Core, CoreError, CoreLimits, Row, RowResult, Run
from gradewire_models.runtime import cpu_session_options, onnxruntime, open_int8


def read_logits(logits: NDArray[np.float32], row: Row) -> RowResult:
    """Return the values that `row` requests, computed in float64 at temperature 1.

    `logits` are the next token's logits, float32[vocabulary].

    Raises:
        CoreError: The logits contain NaN or infinity.
    """
    if not np.isfinite(logits).all():
        raise CoreError("the model's logits are not finite")
    next_token = int(logits.argmax()) if row.next_token else -1
    if not row.labels:
        return RowResult(next_token=next_token)
    exact = logits.astype(np.float64)
    labels = exact[list(row.labels)]
    # Scale each sum by its largest term. Otherwise, labels far below all other tokens would all become 0.
    weights = np.exp(labels - labels.max())
    everything = np.exp(exact - exact.max()).sum()
    mass = weights.sum() / everything * np.exp(labels.max() - exact.max())
    return RowResult(tuple((weights / weights.sum()).tolist()), min(float(mass), 1.0), next_token)


_MAX_ROW_TOKENS: Final = 256
"""The maximum length of a row. Longer rows would make runs longer, but not faster per token."""

_NO_PREFIX_BIAS: Final = -1e30

Block = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _State:
    """Keys and values for `length` tokens from position `start`, each float32[heads, length, dims]."""

    blocks: tuple[Block, ...]
    start: int
    length: int


class Int8Core(Core):
    """A judge's int8 graph on ONNX Runtime.

    Raises:
        CoreError: The file is not a judge's graph, or this version of ONNX Runtime cannot run the graph.
    """

    def __init__(self, path: Path, *, threads: int) -> None:
        self._session = _open(path, threads)
        shapes = {each.name: each.shape for each in self._session.get_inputs()}
        self._layers = sum(name.startswith("prefix_keys_") for name in shapes)
        if not self._layers or "own_past_keys_0" not in shapes:
            raise CoreError(f"{path} is not a judge's graph")
        heads, _, dims = shapes["prefix_keys_0"]
        kinds = [(kind, layer) for layer in range(self._layers) for kind in ("keys", "values")]
        self._prefix_names = [f"prefix_{kind}_{layer}" for kind, layer in kinds]
        self._past_names = [f"own_past_{kind}_{layer}" for kind, layer in kinds]
        self._own_names = [f"own_{kind}_{layer}" for kind, layer in kinds]
        self._states: dict[int, _State] = {}
        nothing = np.zeros((heads, 0, dims), np.float32)
        self._nothing = (nothing,) * len(kinds)
        # The graph needs at least one prefix token. The bias removes this token's weight.
        self._no_prefix = (np.zeros((heads, 1, dims), np.float32),) * len(kinds)

    @property
    def limits(self) -> CoreLimits:
        """See `Core`."""
        return CoreLimits(max_row_tokens=_MAX_ROW_TOKENS, max_rows=64, max_growing=64, max_prefixes=64)

    def run(self, run: Run) -> list[RowResult]:
        """See `Core`."""
        for state in run.drop:
            self._states.pop(state, None)
        prefix = None if run.prefix is None else self._states[run.prefix]
        begin = 0 if prefix is None else prefix.start + prefix.length
        fresh = _State(self._nothing, begin, 0)
        pasts = [self._states.get(row.state, fresh) for row in run.rows]
        wants_logits = any(row.labels or row.next_token for row in run.rows)
        keeps = any(row.keep for row in run.rows)
        names = ["logits"] * wants_logits + self._own_names * keeps
        outputs = self._session.run(names or ["logits"], self._inputs(run, pasts, prefix))
        if keeps:
            self._store(run, pasts, outputs[wants_logits:])
        if not wants_logits:
            return [RowResult() for _ in run.rows]
        return [
            read_logits(logits, row) if row.labels or row.next_token else RowResult()
            for logits, row in zip(outputs[0], run.rows, strict=True)
        ]

    def _inputs(self, run: Run, pasts: list[_State], prefix: _State | None) -> dict[str, Any]:
        lengths = [len(row.ids) for row in run.rows]
        starts = [past.start + past.length for past in pasts]
        inputs: dict[str, Any] = {
            "ids": np.concatenate([np.array(row.ids, np.int64) for row in run.rows]),
            "positions": np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)]),
            "lengths": np.array(lengths, np.int64),
            "past_lengths": np.array([past.length for past in pasts], np.int64),
            "prefix_bias": np.array([0.0 if prefix else _NO_PREFIX_BIAS], np.float32),
        }
        inputs.update(zip(self._prefix_names, prefix.blocks if prefix else self._no_prefix, strict=True))
        grown = [past.blocks for past in pasts if past.length] or [self._nothing]
        packed = (
            grown[0] if len(grown) == 1 else [np.concatenate(blocks, axis=1) for blocks in zip(*grown, strict=True)]
        )
        inputs.update(zip(self._past_names, packed, strict=True))
        return inputs

    def _store(self, run: Run, pasts: list[_State], packed: list[Block]) -> None:
        end = 0
        for row, past in zip(run.rows, pasts, strict=True):
            length = past.length + len(row.ids)
            begin, end = end, end + length
            if not row.keep:
                self._states.pop(row.state, None)
                continue
            # Copy a state that shares the run's memory, or this state would keep other states' memory alive.
            alone = len(run.rows) == 1
            blocks = tuple(block if alone else np.ascontiguousarray(block[:, begin:end]) for block in packed)
            self._states[row.state] = _State(blocks, past.start, length)


def _open(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = cpu_session_options(threads)
    # No two runs have the same shapes, so memory plans would only accumulate.
    options.enable_mem_pattern = False
    # Planning buffer reuse for thousands of nodes takes 2 s at every start, and saves nothing here.
    options.enable_mem_reuse = False
    try:
        return open_int8(path, options)
    except Exception as error:  # ONNX Runtime's errors have no common base below Exception
        raise CoreError(f"cannot open {path.name}: {error}") from error
