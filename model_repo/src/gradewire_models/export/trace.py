"""Exports an encoder with torch's own exporter: for what optimum does not know, or where it cannot be installed."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx
import torch

from gradewire_models.errors import ExportError
from gradewire_models.export.encoder import BareEncoder
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS

# As the graphs that gradewire writes itself: GELU is one operator from opset 20 on, and older runtimes stay in.
_OPSET = 20

# Texts of unequal length, so that nothing in the trace can depend on there being no padding.
_EXAMPLE_LENGTHS = (11, 5, 2)


def trace(model: Any, outputs: Sequence[str], max_tokens: int) -> onnx.ModelProto:
    """Traces `model` with torch's own exporter; equal weights and versions give equal bytes.

    Args:
        model: As `load_encoder` gave it.
        outputs: Names of outputs, of those that `gradewire_models.export.completed` reads.
        max_tokens: Most tokens of a text.

    Returns:
        The bare encoder: inputs ``input_ids`` and ``attention_mask``, int64 [batch, tokens], and `outputs`.

    Raises:
        ExportError: torch cannot express the model as ONNX.
    """
    encoder = BareEncoder(model, outputs)
    tokens = min(max(_EXAMPLE_LENGTHS), max_tokens)
    ids = torch.ones((len(_EXAMPLE_LENGTHS), tokens), dtype=torch.int64)
    mask = torch.stack([(torch.arange(tokens) < length).to(torch.int64) for length in _EXAMPLE_LENGTHS])
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=max_tokens)}
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                encoder,
                (ids, mask),
                input_names=[INPUT_IDS, ATTENTION_MASK],
                output_names=list(outputs),
                dynamic_shapes=(dims, dims),
                opset_version=_OPSET,
                external_data=False,
                verbose=False,
                dynamo=True,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise ExportError(f"torch {torch.__version__} cannot write this model as ONNX: {error}") from error
    model_proto: onnx.ModelProto = program.model_proto
    return model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    # The exporter tells its own developers a lot.
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
