"""Runs a judge's graph, as far as checking it needs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.judges.opening import open_int8
from gradewire_models.runtime import cpu_session_options

Logits: TypeAlias = NDArray[np.float32]
States: TypeAlias = dict[str, NDArray[np.float32]]
"""Keys and values by name, ``keys_0`` to ``values_N``, each float32 [kv_heads, tokens, head_dim]."""

NO_PREFIX_BIAS = np.float32(-1e30)


class JudgeSession:
    """A judge's graph in onnxruntime, on one thread.

    Args:
        onnx_path: The graph, its weights beside it.
    """

    def __init__(self, onnx_path: Path) -> None:
        options = cpu_session_options(1)
        # The plan for it takes seconds (quadratic in the number of nodes) and saves neither time nor memory here.
        options.enable_mem_reuse = False
        self._session = open_int8(onnx_path, options)
        shapes = {value.name: value.shape for value in self._session.get_inputs()}
        self._names = [name.removeprefix("prefix_") for name in shapes if name.startswith(("prefix_k", "prefix_v"))]
        self._kv_heads, _, self._head_dim = shapes["prefix_keys_0"]

    def run(
        self,
        texts: Sequence[Sequence[int]],
        *,
        prefix: States | None = None,
        past: States | None = None,
        past_lengths: Sequence[int] = (),
    ) -> tuple[Logits, States]:
        """Runs a batch of texts.

        Args:
            texts: New tokens of each.
            prefix: Keys and values of a prefix that all share; None for none.
            past: Keys and values of what each had before, end to end; None for nothing.
            past_lengths: Tokens that each had before; all 0 unless given.

        Returns:
            Logits of each text's last token, float32 [texts, vocabulary], and keys and values of each text, past and
            new, end to end.
        """
        lengths = [len(text) for text in texts]
        before = list(past_lengths) or [0] * len(lengths)
        start = 0 if prefix is None else prefix["keys_0"].shape[1]
        places = [np.arange(start + own, start + own + new) for own, new in zip(before, lengths, strict=True)]
        inputs = {
            "ids": np.concatenate([np.asarray(text, np.int64) for text in texts]),
            "positions": np.concatenate(places).astype(np.int64),
            "lengths": np.array(lengths, np.int64),
            "past_lengths": np.array(before, np.int64),
            "prefix_bias": np.array([NO_PREFIX_BIAS if prefix is None else 0], np.float32),
        }
        # A prefix of one token of zeros stands for none: the bias takes all its weight.
        inputs |= {f"prefix_{name}": array for name, array in (prefix or self._blank(1)).items()}
        inputs |= {f"own_past_{name}": array for name, array in (past or self._blank(0)).items()}
        logits, *states = self._session.run(["logits", *(f"own_{name}" for name in self._names)], inputs)
        return logits, dict(zip(self._names, states, strict=True))

    def _blank(self, tokens: int) -> States:
        blank = np.zeros((self._kv_heads, tokens, self._head_dim), np.float32)
        return dict.fromkeys(self._names, blank)
