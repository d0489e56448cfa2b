"""Runs an encoder's graph on the CPU, as far as checking needs it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.bf16 import BF16_CLASS, Bf16Graph, Bf16UnavailableError, arithmetic, bf16_instruction
from gradewire_models.errors import BuildError
from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS
from gradewire_models.runtime import cpu_session_options, onnxruntime

Ids: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.float32]

ERRORS_ONLY = 3
"""Severity of onnxruntime's log for graphs that somebody else's exporter wrote."""


def open_session(path: Path, *, severity: int | None = None) -> onnxruntime.InferenceSession:
    """Opens a graph with two threads that do not spin; `severity` is what onnxruntime logs, its own choice if None."""
    options = cpu_session_options(2)
    if severity is not None:
        options.log_severity_level = severity
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Computes(Protocol):
    """What computes a graph's outputs, as ONNX Runtime's session does."""

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Ids], /) -> list[Rows]:
        """The outputs of one batch, by `pad`."""


class _Bf16Session:
    """Computes as `Bf16Graph` does; the batch's own padding is taken off."""

    def __init__(self, graph: Bf16Graph) -> None:
        self._graph = graph

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Ids], /) -> list[Rows]:
        lengths = inputs[ATTENTION_MASK].sum(axis=1)
        return self._graph.run(outputs, [row[:length] for row, length in zip(inputs[INPUT_IDS], lengths, strict=True)])


def open_computing(model: BuiltModel) -> Computes:
    """Opens what computes a model's vectors, as nearly as this machine can; `computed_how` says how nearly.

    Raises:
        BuildError: It computes in bf16, which this machine has, and OpenVINO cannot compile its graph.
    """
    if model.numeric_class != BF16_CLASS or not _has_bf16():
        session: Computes = open_session(model.onnx_path)
        return session
    try:
        return _Bf16Session(Bf16Graph(model.onnx_path))
    except Bf16UnavailableError as error:
        raise BuildError(f"{model.name}: {error}: {error.__cause__}") from error


def computed_how(model: BuiltModel) -> str:
    """How `open_computing` computes, where that has to be said; else empty."""
    if model.numeric_class != BF16_CLASS:
        return "" if model.on_cpu else "computed on the CPU, which says little about the GPU it is for"
    try:
        return f"computed in bf16 ({arithmetic()})"
    except Bf16UnavailableError as error:
        return f"computed in fp32, which says nothing about bf16: {error}"


def _has_bf16() -> bool:
    try:
        bf16_instruction()
    except Bf16UnavailableError:
        return False
    return True


def pad(texts: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Token ids and mask, each [texts, longest text], of texts of [tokens] each; both are 0 where a text has ended."""
    ids = np.zeros((len(texts), max(map(len, texts))), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return ids, mask


def run(session: Computes, outputs: Sequence[str], ids: Ids, mask: Ids) -> list[Rows]:
    """Computes `outputs` for one batch as `pad` makes it."""
    found: list[Rows] = session.run(outputs, {INPUT_IDS: ids, ATTENTION_MASK: mask})
    return found
