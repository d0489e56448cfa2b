"""Turns a loaded encoder into an ONNX graph with the names and shapes of the model repository."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import onnx
import torch

from gradewire_models.errors import ExportError
from gradewire_models.export.encoder import PooledEncoder
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS, SENTENCE_OUTPUT, TOKENS_OUTPUT, layer_output

# As the graphs that gradewire writes itself: GELU is one operator from opset 20 on, and older runtimes stay in.
_OPSET = 20
_IR_VERSION = 9

# Texts of unequal length, so that nothing in the trace can depend on there being no padding.
_EXAMPLE_LENGTHS = (11, 5, 2)


def trace(encoder: PooledEncoder, max_tokens: int) -> onnx.ModelProto:
    """Traces `encoder` with torch's exporter; equal weights and versions give equal bytes.

    Args:
        encoder: What to trace.
        max_tokens: Most tokens of a text.

    Returns:
        A graph of standard operators with its weights inside. Inputs ``input_ids`` and ``attention_mask``, int64
        [batch, tokens]; outputs ``sentence_embedding``, ``token_embeddings`` and ``token_embeddings_layer_N``.

    Raises:
        ExportError: torch cannot express the model as ONNX.
    """
    tokens = min(max(_EXAMPLE_LENGTHS), max_tokens)
    ids = torch.ones((len(_EXAMPLE_LENGTHS), tokens), dtype=torch.int64)
    mask = torch.stack([(torch.arange(tokens) < length).to(torch.int64) for length in _EXAMPLE_LENGTHS])
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=max_tokens)}
    outputs = [SENTENCE_OUTPUT, TOKENS_OUTPUT, *(layer_output(layer) for layer in encoder.token_layers)]
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                encoder,
                (ids, mask),
                input_names=[INPUT_IDS, ATTENTION_MASK],
                output_names=outputs,
                dynamic_shapes=(dims, dims),
                opset_version=_OPSET,
                external_data=False,
                verbose=False,
                dynamo=True,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise ExportError(f"torch {torch.__version__} cannot write this model as ONNX: {error}") from error
    return _clean(program.model_proto)


def _clean(model: onnx.ModelProto) -> onnx.ModelProto:
    # Traces of the source, with paths of this machine, would make the bytes differ from one machine to the next.
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    graph = model.graph
    parts: list[Any] = [*graph.node, *graph.input, *graph.output, *graph.initializer]
    for part in parts:
        del part.metadata_props[:]
        part.doc_string = ""
    foreign = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    if foreign or model.functions:
        raise ExportError(f"the graph needs operators outside the standard: {sorted(foreign)}")
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model)
    return model


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
