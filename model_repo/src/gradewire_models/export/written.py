"""The exported graph as it is served: an exporter's encoder, completed, in the arithmetic that was asked for."""

from typing import Any, Final

import onnx
from onnx import helper

from gradewire_models.errors import ExportError
from gradewire_models.export.completed import Completion, complete
from gradewire_models.export.encoder import padding_id
from gradewire_models.export.half import to_half
from gradewire_models.export.plan import CPU_CLASS, ExportPlan
from gradewire_models.export.through_optimum import export_through_optimum
from gradewire_models.export.trace import trace

EXPORTERS: Final = {"optimum": export_through_optimum, "torch": trace}
"""In the order in which they are tried: torch's own is for what optimum cannot export."""


def written_graph(model: Any, plan: ExportPlan, exporter: str) -> onnx.ModelProto:
    """Exports `model`; equal weights and versions give equal bytes.

    Args:
        model: As `gradewire_models.export.encoder.load_encoder` gave it.
        plan: What is wanted.
        exporter: Name of one of `EXPORTERS`.

    Returns:
        A graph of standard operators with its weights inside. Inputs ``input_ids`` and ``attention_mask``, int64
        [batch, tokens]; outputs ``sentence_embedding``, ``token_embeddings`` and ``token_embeddings_layer_N``, float32.

    Raises:
        ExportError: This exporter cannot export it.
    """
    completion = Completion(plan.pooling, plan.token_layers, int(model.config.hidden_size), padding_id(model))
    try:
        encoder = EXPORTERS[exporter](model, completion.needed, plan.max_tokens)
        if plan.numeric_class.startswith("fp16-"):
            encoder = to_half(encoder)
        graph = complete(encoder, completion)
    except (ValueError, onnx.checker.ValidationError) as error:
        raise ExportError(f"no valid graph comes of what {exporter} exports: {error}") from error
    if plan.numeric_class != CPU_CLASS:
        # One graph may run in two ways: the fingerprint has to tell them apart.
        helper.set_model_props(graph, {"numeric_class": plan.numeric_class})
    return graph
