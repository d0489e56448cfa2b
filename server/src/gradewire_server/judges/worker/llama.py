"""A core that runs a GGUF model on llama.cpp. This core is slower than the int8 graph, but runs on any processor.

llama.cpp's results depend on how tokens are split into evaluations, and on the prompt that a slot computed last. An
answer must depend only on its own prompt, so this module always computes the same pieces. First come the prefix's rows,
from an empty slot. Then comes the prefix's last token once more, because llama.cpp also computes this token again when
it returns to a prefix. Last come the item's rows.
"""

import math
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import xllamacpp
from typing_extensions import override

from gradewire_models.judges.cores.rows import Core, CoreError, CoreLimits, Row, RowResult, Run

_MAX_ROW_TOKENS: Final = 512
_MAX_SLOTS: Final = 6
"""The maximum number of slots. Each slot reserves memory for a whole context."""

_TOP: Final = 64
_BIAS: Final = 100.0

Rows: TypeAlias = tuple[tuple[int, ...], ...]


class LlamaCore(Core):
    """A model on llama.cpp. Each slot contains a prefix, followed by one state.

    Raises:
        CoreError: The file cannot be opened.
    """

    def __init__(self, path: Path, *, threads: int, context_tokens: int, max_states: int) -> None:
        slots = max(1, min(max_states, _MAX_SLOTS))
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = slots
        params.n_ctx = slots * context_tokens
        params.n_batch = params.n_ubatch = _MAX_ROW_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cpuparams.poll = params.cpuparams_batch.poll = 0
        params.cache_ram_mib = 0
        params.cache_idle_slots = False
        params.verbosity = 1  # errors
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        # The library always listens on the loopback interface, so require a random key.
        params.api_keys = [secrets.token_hex(32)]
        try:
            self._server = xllamacpp.Server(params)
        except Exception as error:  # the library's errors have no common base below Exception
            raise CoreError(f"cannot open {path.name}: {error}") from error
        self._states: dict[int, Rows] = {}
        self._slots: OrderedDict[int, _Held] = OrderedDict((slot, _Held()) for slot in range(slots))

    @property
    @override
    def limits(self) -> CoreLimits:
        return CoreLimits(max_row_tokens=_MAX_ROW_TOKENS, max_rows=1, max_growing=1, max_prefixes=len(self._slots))

    @override
    def run(self, run: Run) -> list[RowResult]:
        for state in run.drop:
            self._release(self._states.pop(state, ()))
        prefix = () if run.prefix is None else self._states[run.prefix]
        return [self._row(prefix, row) for row in run.rows]

    def _row(self, prefix: Rows, row: Row) -> RowResult:
        past = self._states.pop(row.state, ())
        slot = self._slot_at(prefix, past)
        if row.labels:
            return self._choose(slot, row)
        token = self._evaluate(slot, row.ids)[0][0]
        if row.keep:
            self._states[row.state] = (*past, row.ids)
        elif not prefix:
            self._release((*past, row.ids))
        return RowResult(next_token=token) if row.next_token else RowResult()

    def _choose(self, slot: int, row: Row) -> RowResult:
        weights = dict(self._evaluate(slot, row.ids, only=row.labels))
        chosen = [weights.get(label, 0.0) for label in row.labels]
        # The bias towards labels hides the labels' mass, so compute one token again without a bias.
        held = self._slots[slot]
        free = dict(self._complete(slot, held.tokens, n_probs=_TOP))
        # The last token was now computed alone. Rows are never split like this, so no row may continue from here.
        self._slots[slot] = _Held(held.prefix, (*held.past, ()))
        if not held.prefix:
            self._slots.move_to_end(slot, last=False)
        mass = sum(free.get(label, 0.0) for label in row.labels)
        return RowResult(tuple(each / sum(chosen) for each in chosen), min(mass, 1.0))

    def _slot_at(self, prefix: Rows, past: Rows) -> int:
        """Return a slot that contains exactly these rows."""
        slot = self._find(_Held(prefix, past))
        if slot is not None:
            return slot
        slot = next((each for each, held in self._slots.items() if prefix and held.prefix == prefix), None)
        if slot is None:
            # A slot may still contain the prefix as a separate state.
            slot = self._find(_Held((), prefix)) if prefix else None
        if slot is None:
            slot = next(iter(self._slots))
            self._slots[slot] = _Held()
            for ids in prefix:
                self._evaluate(slot, ids)
        self._slots.move_to_end(slot)
        self._slots[slot] = _Held(prefix)
        if prefix:
            self._complete(slot, self._slots[slot].tokens)
        for ids in past:
            self._evaluate(slot, ids)
        return slot

    def _release(self, rows: Rows) -> None:
        """Free the slot whose prefix (or state, without a prefix) consists of these rows; reuse this slot first."""
        for slot, held in self._slots.items():
            if rows and (held.prefix or held.past) == rows:
                self._slots[slot] = _Held()
                self._slots.move_to_end(slot, last=False)
                return

    def _find(self, wanted: "_Held") -> int | None:
        slot = next((each for each, held in self._slots.items() if held == wanted and wanted.tokens), None)
        if slot is not None:
            self._slots.move_to_end(slot)
        return slot

    def _evaluate(self, slot: int, ids: tuple[int, ...], *, only: tuple[int, ...] = ()) -> list[tuple[int, float]]:
        held = self._slots[slot]
        self._slots[slot] = _Held(held.prefix, (*held.past, ids))
        bias = [[token, _BIAS] for token in only]
        return self._complete(
            slot, self._slots[slot].tokens, n_probs=max(len(only), 1), logit_bias=bias, cache_prompt=bool(held.tokens)
        )

    def _complete(self, slot: int, tokens: list[int], **options: Any) -> list[tuple[int, float]]:
        """Return the most probable next tokens with their probabilities, most probable first."""
        request = {
            "prompt": tokens,
            "id_slot": slot,
            "max_tokens": 1,
            "temperature": 1.0,
            "samplers": ["temperature"],
            "seed": 0,
            "n_probs": 1,
            "post_sampling_probs": True,
            "cache_prompt": True,
            **options,
        }
        answer = self._server.handle_completions(request)
        try:
            top = answer["choices"][0]["logprobs"]["content"][0]["top_probs"]
            found = [(int(each["id"]), float(each["prob"])) for each in top]
        except (KeyError, IndexError, TypeError) as error:
            raise CoreError(f"llama.cpp returned no probabilities: {str(answer)[:500]}") from error
        if not found or not all(math.isfinite(probability) for _, probability in found):
            raise CoreError("the model's probabilities are not finite")
        return found


@dataclass(frozen=True, slots=True)
class _Held:
    prefix: Rows = ()
    past: Rows = ()

    @property
    def tokens(self) -> list[int]:
        return [token for ids in (*self.prefix, *self.past) for token in ids]
