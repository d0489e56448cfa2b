"""Runs an encoder's graph on the CPU, as far as checking needs it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.runtime import onnxruntime

Ids: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.float32]

ERRORS_ONLY = 3
"""Severity of onnxruntime's log for graphs that somebody else's exporter wrote."""


def open_session(path: Path, *, severity: int | None = None) -> onnxruntime.InferenceSession:
    """Opens a graph with two threads that do not spin; `severity` is what onnxruntime logs, its own choice if None."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if severity is not None:
        options.log_severity_level = severity
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def pad(texts: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Token ids and mask, each [texts, longest text], of texts of [tokens] each; both are 0 where a text has ended."""
    ids = np.zeros((len(texts), max(map(len, texts))), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return ids, mask


def run(session: onnxruntime.InferenceSession, outputs: Sequence[str], ids: Ids, mask: Ids) -> list[Rows]:
    """Computes `outputs` for one batch as `pad` makes it."""
    found: list[Rows] = session.run(outputs, {INPUT_IDS: ids, ATTENTION_MASK: mask})
    return found
