"""A core that runs a judge's fp16 or int4 graph in padded batches, on a GPU or, for tests, on a CPU."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_models.judges.cores.rows import Core, CoreError, CoreLimits, DeviceError, Row, RowResult, Run
from gradewire_models.runtime import cpu_session_options, onnxruntime, without_plugin_warning

CUDA_PROVIDER: Final = "CUDAExecutionProvider"
_CPU_PROVIDER: Final = "CPUExecutionProvider"
_NO_PREFIX_BIAS: Final = -1e30
_ROUNDED_TOKENS: Final = 8
"""Rows of more than this many tokens are padded to a multiple of it, so that fewer shapes occur."""

Blocks = list[Any]
"""Keys and values of all layers on the device, as onnxruntime.OrtValue."""


class PaddedCore(Core):
    """A judge's graph with padded batches, whose keys and values stay on the device.

    On a GPU, a row's result may depend on the batch in the last digits, because matrix products of different sizes sum
    in different orders.

    Args:
        session: The opened graph (see `gradewire_models.judges.build.padded_graph`).
        device: The device's type ("cuda" or "cpu") and index.

    Raises:
        CoreError: The file is not such a graph.
    """

    def __init__(self, session: onnxruntime.InferenceSession, device: tuple[str, int]) -> None:
        self._session = session
        self._device = device
        shapes = {each.name: each.shape for each in session.get_inputs()}
        layers = sum(name.startswith("prefix_keys_") for name in shapes)
        if not layers or "seen" not in shapes:
            raise CoreError("the file is not a judge's graph for padded batches")
        self._heads, _, self._dims = shapes["prefix_keys_0"]
        names = [f"{kind}_{layer}" for layer in range(layers) for kind in ("keys", "values")]
        self._prefix_names = [f"prefix_{name}" for name in names]
        self._past_names = [f"past_{name}" for name in names]
        self._own_names = [f"own_{name}" for name in names]
        self._states: dict[int, _State] = {}
        # The graph needs at least one prefix token. The bias removes this token's weight.
        nothing = self._on_device(np.zeros((self._heads, 1, self._dims), np.float16))
        self._no_prefix: Blocks = [nothing] * len(names)

    @property
    def limits(self) -> CoreLimits:
        """See `Core`."""
        return CoreLimits(max_row_tokens=512, max_rows=64, max_growing=64, max_prefixes=64)

    def run(self, run: Run) -> list[RowResult]:
        """See `Core`."""
        for dropped in run.drop:
            self._states.pop(dropped, None)
        prefix = None if run.prefix is None else self._states[run.prefix]
        begin = 0 if prefix is None else prefix.end
        pasts = [self._states.get(row.state) for row in run.rows]
        starts = [begin if past is None else past.end for past in pasts]
        blocks, valid = self._past(pasts)
        inputs, filled = _inputs(run.rows, starts, valid)
        inputs["prefix_bias"] = np.array([0.0 if prefix else _NO_PREFIX_BIAS], np.float32)
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        self._bind(binding, self._prefix_names, self._prefix_blocks(prefix) if prefix else self._no_prefix)
        self._bind(binding, self._past_names, blocks)
        results = ["label_logits", "log_total", "next_ids"] if any(map(_wants_logits, run.rows)) else []
        keeps = any(row.keep for row in run.rows) or not results
        for name in results:
            binding.bind_output(name, "cpu")
        for name in self._own_names if keeps else ():
            binding.bind_output(name, *self._device)
        self._session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
        self._store(run.rows, pasts, starts, _Batch(outputs[len(results) :], np.concatenate([valid, filled], axis=1)))
        if not results:
            return [RowResult() for _ in run.rows]
        return _read(run.rows, *(output.numpy() for output in outputs[: len(results)]))

    def _store(
        self, rows: Sequence[Row], pasts: Sequence["_State | None"], starts: Sequence[int], batch: "_Batch"
    ) -> None:
        for place, (row, past, start) in enumerate(zip(rows, pasts, starts, strict=True)):
            if row.keep:
                begin = start if past is None else past.begin
                self._states[row.state] = _State(batch, place, begin, start + len(row.ids))
            else:
                self._states.pop(row.state, None)
        # A state that leaves its batch is packed again anyway. Copy it now, or it would keep the whole batch in memory.
        live = Counter(id(state.batch) for state in self._states.values())
        for number, state in self._states.items():
            if live[id(state.batch)] < state.batch.rows:
                self._states[number] = state.copied_out()

    def _past(self, pasts: Sequence["_State | None"]) -> tuple[Blocks, NDArray[np.bool_]]:
        """Return the past keys and values of a batch, and which of their slots are filled, bool [rows, slots]."""
        first = pasts[0]
        if first is not None and first.batch.blocks and first.batch.rows == len(pasts):
            same = all(
                past is not None and past.batch is first.batch and past.place == place
                for place, past in enumerate(pasts)
            )
            if same:
                return first.batch.blocks, first.batch.valid
        counts = [0 if past is None else past.end - past.begin for past in pasts]
        # A size of at least 1 avoids tensors without elements, which some operators do not accept on a GPU.
        slots = max(1, *counts)
        valid = np.arange(slots) < np.array(counts)[:, None]
        blocks = []
        for number in range(len(self._past_names)):
            packed = np.zeros((len(pasts), self._heads, slots, self._dims), np.float16)
            for place, past in enumerate(pasts):
                if past is not None:
                    packed[place, :, : counts[place]] = past.block(number)
            blocks.append(self._on_device(packed))
        return blocks, valid

    def _prefix_blocks(self, state: "_State") -> Blocks:
        """Return a state's keys and values as a prefix, without empty slots."""
        if not state.as_prefix:
            state.as_prefix += [self._on_device(state.block(number)) for number in range(len(self._prefix_names))]
        return state.as_prefix

    def _bind(self, binding: Any, names: Sequence[str], blocks: Blocks) -> None:
        for name, block in zip(names, blocks, strict=True):
            binding.bind_ortvalue_input(name, block)

    def _on_device(self, values: NDArray[np.float16]) -> Any:
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(values), *self._device)


@dataclass(slots=True)
class _Batch:
    """The keys and values of a run's rows, and which slots are filled, bool [rows, slots].

    A row that was copied out of its batch has only `copies`, in the computer's memory.
    """

    blocks: Blocks
    valid: NDArray[np.bool_]
    copies: dict[int, NDArray[np.float16]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.valid)

    def copied(self, number: int) -> NDArray[np.float16]:
        """Return a block, copied from the device once."""
        if number not in self.copies:
            self.copies[number] = self.blocks[number].numpy()
        return self.copies[number]


@dataclass(slots=True)
class _State:
    """The tokens at the positions from `begin` to `end`, in a row of a batch."""

    batch: _Batch
    place: int
    begin: int
    end: int
    as_prefix: Blocks = field(default_factory=list)

    def block(self, number: int) -> NDArray[np.float16]:
        """Return the filled slots of a block, float16 [kv_heads, tokens, head_dim]."""
        block: NDArray[np.float16] = self.batch.copied(number)[self.place][:, self.batch.valid[self.place]]
        return block

    def copied_out(self) -> "_State":
        """Return the same state with a batch of its own, which holds only the filled slots."""
        copies = {number: np.ascontiguousarray(self.block(number))[None] for number in range(len(self.batch.blocks))}
        alone = _Batch([], np.ones((1, self.end - self.begin), np.bool_), copies)
        return replace(self, batch=alone, place=0)


def _wants_logits(row: Row) -> bool:
    return bool(row.labels) or row.next_token


def _inputs(
    rows: Sequence[Row], starts: Sequence[int], valid: NDArray[np.bool_]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Return the inputs of a padded batch, and which of the new slots are filled, bool [rows, tokens]."""
    lengths = np.array([len(row.ids) for row in rows])
    longest = int(lengths.max())
    tokens = longest if longest <= _ROUNDED_TOKENS else longest + -longest % _ROUNDED_TOKENS
    ids = np.zeros((len(rows), tokens), np.int64)
    labels = np.zeros((len(rows), max(1, *(len(row.labels) for row in rows))), np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = row.ids
        labels[place, : len(row.labels)] = row.labels
    places = np.arange(tokens)
    filled = places < lengths[:, None]
    # Padding sees itself, because the shares of a token that sees nothing would not be numbers.
    seen_new = np.tri(tokens, dtype=bool) & (filled[:, None] | np.eye(tokens, dtype=bool))
    seen_past = np.broadcast_to(valid[:, None], (len(rows), tokens, valid.shape[1]))
    return {
        "ids": ids,
        # Padding has its row's last position, so that no position exceeds the graph's table.
        "positions": np.array(starts)[:, None] + np.minimum(places, lengths[:, None] - 1),
        "last": np.arange(len(rows)) * tokens + lengths - 1,
        "seen": np.concatenate([seen_past, seen_new], axis=2),
        "labels": labels,
    }, filled


def _read(
    rows: Sequence[Row],
    label_logits: NDArray[np.float32],
    log_totals: NDArray[np.float32],
    next_ids: NDArray[np.int64],
) -> list[RowResult]:
    results = []
    for row, logits, total, next_id in zip(rows, label_logits, log_totals, next_ids, strict=True):
        if not _wants_logits(row):
            results.append(RowResult())
            continue
        exact = logits[: len(row.labels)].astype(np.float64)
        if not (np.isfinite(total) and np.isfinite(exact).all()):
            raise CoreError("the model's logits are not finite")
        next_token = int(next_id) if row.next_token else -1
        if not row.labels:
            results.append(RowResult(next_token=next_token))
            continue
        weights = np.exp(exact - exact.max())
        mass = weights.sum() * np.exp(exact.max() - float(total))
        shares = tuple((weights / weights.sum()).tolist())
        results.append(RowResult(shares, min(float(mass), 1.0), next_token))
    return results


def open_padded(path: Path, *, threads: int, device: str) -> PaddedCore:
    """Open a graph on a device, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.

    Raises:
        DeviceError: The device cannot be used.
        CoreError: The file is not such a graph.
    """
    kind, _, index = device.partition(":")
    providers: list[Any] = [_CPU_PROVIDER]
    if kind == "cuda":
        if CUDA_PROVIDER not in onnxruntime.get_available_providers():
            raise DeviceError(
                f"the judge needs a GPU (device {device}), but the installed onnxruntime {onnxruntime.__version__} has "
                f"no {CUDA_PROVIDER}. Install onnxruntime-gpu (docs/operate/triton-and-gpu.md)"
            )
        onnxruntime.preload_dlls()  # CUDA and cuDNN from NVIDIA's wheels are not on the search path for libraries
        providers.insert(0, (CUDA_PROVIDER, cuda_options(int(index or 0))))
    options = cpu_session_options(threads)
    options.enable_mem_pattern = False  # avoid a memory plan for each input shape
    try:
        with without_plugin_warning():
            session = onnxruntime.InferenceSession(path, options, providers=providers, enable_fallback=0)
    except Exception as error:  # ONNX Runtime's errors have no common base below Exception
        raise CoreError(f"cannot open {path.name} on {device}: {error}") from error
    if kind == "cuda" and CUDA_PROVIDER not in session.get_providers():
        # If a provider's libraries do not load, ONNX Runtime drops the provider and logs the missing library.
        raise DeviceError(
            f"{CUDA_PROVIDER} does not load: NVIDIA's driver, CUDA or cuDNN is missing or has the wrong version. Run: "
            "pip install 'onnxruntime-gpu[cuda,cudnn]', and check nvidia-smi"
        )
    return PaddedCore(session, (kind, int(index or 0)))


def cuda_options(index: int) -> Mapping[str, str]:
    """Return the options of the CUDA provider."""
    # Use one stream for copies and kernels, so that a run never reads inputs that are still being copied.
    return {"device_id": str(index), "do_copy_in_default_stream": "1"}
