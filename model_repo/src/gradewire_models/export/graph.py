"""Complete an exported graph with the repository's inputs, pooling and normalisation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx
from onnx import TensorProto, compose, helper

from gradewire_models.build.nodes import Nodes
from gradewire_models.errors import ExportError
from gradewire_models.export.weights_file import is_external
from gradewire_models.repository.config import ATTENTION_MASK, INPUT_IDS, SENTENCE_OUTPUT, TOKENS_OUTPUT, layer_output
from gradewire_models.runtime import onnxruntime as _  # noqa: F401 - turns telemetry off before ONNX Runtime's tools start it

LAST_HIDDEN_STATE: Final = "last_hidden_state"
POOLER_OUTPUT: Final = "pooler_output"
HIDDEN_STATES: Final = "hidden_states"
"""The prefix of the outputs ``hidden_states.N``: the token vectors after layer N, or the word vectors if N is 0."""

_TYPE_IDS: Final = "token_type_ids"
_POSITIONS: Final = "position_ids"
_PREFIX: Final = "encoder/"  # put before the bare encoder's names
_IR_VERSION: Final = 9
_TINY: Final = 1e-12

# Operators of composite normalisations, which stay in float32 because the square of 256 exceeds float16.
_WRITTEN_OUT: Final = ("Pow", "ReduceMean", "Sqrt", "Reciprocal")


@dataclass(frozen=True, slots=True)
class Completion:
    """Settings for completing a bare encoder, which gets `padding_id` as input where the mask is 0."""

    pooling: str
    token_layers: tuple[int, ...]
    dims: int
    padding_id: int

    @property
    def sources(self) -> dict[str, str]:
        """The outputs with token vectors: a map from the complete graph's names to the bare encoder's names."""
        earlier = {layer_output(layer): f"{HIDDEN_STATES}.{layer}" for layer in self.token_layers}
        return {TOKENS_OUTPUT: LAST_HIDDEN_STATE, **earlier}

    @property
    def needed(self) -> tuple[str, ...]:
        """Outputs that the bare encoder must have, in transformers' order."""
        last, *earlier = self.sources.values()
        return (last, *([POOLER_OUTPUT] if self.pooling == "pooler" else []), *earlier)


def complete(encoder: onnx.ModelProto, completion: Completion) -> onnx.ModelProto:
    """Turn a bare encoder into a graph for the repository. Do not use `encoder` afterwards.

    The encoder's inputs are ``input_ids``, ``attention_mask`` and optionally ``token_type_ids`` and ``position_ids``,
    int64 [batch, tokens]. The encoder must have the outputs in `completion.needed` and include its weights.

    Returns:
        A graph with the int64 [batch, tokens] inputs ``input_ids`` (ignored where the mask is 0) and ``attention_mask``
        (1 for a text's tokens, then 0). The output ``sentence_embedding`` is float32 [batch, dims], of unit length. The
        outputs ``token_embeddings`` and ``token_embeddings_layer_N`` are float32 [batch, tokens, dims].

    Raises:
        ExportError: The encoder needs unknown inputs, lacks an output, or uses non-standard operators.
    """
    inner = compose.add_prefix(encoder, _PREFIX).graph
    before, after = Nodes(), Nodes()
    _write_inputs(before, [tensor.name.removeprefix(_PREFIX) for tensor in inner.input], completion.padding_id)
    there = {tensor.name for tensor in inner.output}
    if missing := [name for name in completion.needed if _PREFIX + name not in there]:
        raise ExportError(f"the exported encoder lacks the outputs {missing}")
    _write_sentence(after, completion.pooling)
    for name, source in completion.sources.items():
        after.op("Identity", _PREFIX + source, name=name)
    texts = ["batch", "tokens"]
    graph = helper.make_graph(
        _alive([*before.nodes, *inner.node, *after.nodes], {SENTENCE_OUTPUT, *completion.sources}),
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, texts) for name in (INPUT_IDS, ATTENTION_MASK)],
        [
            helper.make_tensor_value_info(SENTENCE_OUTPUT, TensorProto.FLOAT, ["batch", completion.dims]),
            *(
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [*texts, completion.dims])
                for name in completion.sources
            ),
        ],
        [*before.constants, *inner.initializer, *after.constants],
    )
    return clean(helper.make_model(graph, opset_imports=encoder.opset_import, ir_version=_IR_VERSION))


def clean(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove everything from `model` that differs between machines, and check the remaining graph.

    Raises:
        ExportError: The graph uses non-standard operators.
        onnx.checker.ValidationError: The graph is invalid.
    """
    # The metadata contain stack traces with this machine's paths.
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
        raise ExportError(f"the graph needs non-standard operators: {sorted(foreign)}")
    model.ir_version = _IR_VERSION
    if not any(map(is_external, graph.initializer)):
        # With weights in files, only the finished model's file can be checked (`check_file`).
        onnx.checker.check_model(model)
    return model


def check_file(path: Path) -> None:
    """Check a graph whose weights are in a separate file beside it.

    Raises:
        ExportError: The graph is invalid.
    """
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        raise ExportError(f"the exported graph is not valid: {error}") from error


def _write_inputs(nodes: Nodes, names: list[str], padding_id: int) -> None:
    if unknown := set(names) - {INPUT_IDS, ATTENTION_MASK, _TYPE_IDS, _POSITIONS}:
        raise ExportError(f"the exported encoder needs {sorted(unknown)}, but a graph gets only token ids and mask")
    nodes.ints("zero", 0)
    nodes.ints("one", 1)
    # Some architectures (RoBERTa) recognise padding by its id and ignore the mask.
    kept = nodes.op("Cast", ATTENTION_MASK, name="kept", to=TensorProto.BOOL)
    nodes.op("Where", kept, INPUT_IDS, nodes.ints("padding_id", padding_id), name=_PREFIX + INPUT_IDS)
    nodes.op("Identity", ATTENTION_MASK, name=_PREFIX + ATTENTION_MASK)
    if _TYPE_IDS in names:
        nodes.op("Mul", ATTENTION_MASK, "zero", name=_PREFIX + _TYPE_IDS)
    if _POSITIONS in names:
        counted = nodes.op("CumSum", ATTENTION_MASK, nodes.constant("token_axis", 1), name="counted")
        # In a row without tokens, the count is 0, and 0 - 1 is not a position.
        nodes.op("Max", nodes.op("Sub", counted, "one", name="places"), "zero", name=_PREFIX + _POSITIONS)


def _write_sentence(nodes: Nodes, pooling: str) -> None:
    rows = _PREFIX + LAST_HIDDEN_STATE
    if pooling == "pooler":
        pooled = _PREFIX + POOLER_OUTPUT
    elif pooling == "cls":
        pooled = nodes.op("Squeeze", nodes.op("Gather", rows, "zero", name="first", axis=1), "one", name="pooled")
    elif pooling == "last":
        pooled = _last(nodes, rows)
    else:
        # After normalisation, a sum equals a mean.
        weights = nodes.op("Cast", ATTENTION_MASK, name="weights", to=TensorProto.FLOAT)
        weighted = nodes.op(
            "Mul", rows, nodes.op("Unsqueeze", weights, nodes.ints("last_axis", -1), name="column"), name="weighted"
        )
        pooled = nodes.op("ReduceSum", weighted, "one", name="pooled", keepdims=0)
    length = nodes.op("ReduceL2", pooled, nodes.ints("dims_axis", -1), name="length", keepdims=1)
    nodes.op(
        "Div", pooled, nodes.op("Max", length, nodes.floats("tiny", _TINY), name="safe_length"), name=SENTENCE_OUTPUT
    )


def _last(nodes: Nodes, rows: str) -> str:
    """Write the vectors of the last tokens, also if the padding stands before the text; return the tensor's name."""
    tokens = nodes.op("Shape", ATTENTION_MASK, name="token_count", start=1, end=2)
    count = nodes.op("Squeeze", tokens, "zero", name="token_limit")
    places = nodes.op(
        "Range", nodes.int_scalar("first_place", 0), count, nodes.int_scalar("next_place", 1), name="all_places"
    )
    places = nodes.op("Mul", ATTENTION_MASK, places, name="text_places")
    place = nodes.op("ReduceMax", places, "one", name="last_place", keepdims=1)
    return nodes.op("GatherND", rows, place, name="pooled", batch_dims=1)


def _alive(nodes: list[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """Return the nodes that the outputs `wanted` depend on, in order."""
    needed, kept = set(wanted), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            # A branch's or loop's inputs omit the outer values that its body reads.
            needed.update(name for part in _subgraphs(node) for inner in part.node for name in inner.input)
            kept.append(node)
    return kept[::-1]


def _subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def to_half(encoder: onnx.ModelProto) -> onnx.ModelProto:
    """Convert a bare float32 encoder, except its inputs and outputs, to float16. Do not use `encoder` afterwards.

    `complete` adds pooling and normalisation in float32, because they sum many numbers.

    Raises:
        ValueError: The converter cannot read the graph.
    """
    from onnxruntime.transformers.float16 import (  # noqa: PLC0415 - a slow import that only GPU exports need
        DEFAULT_OP_BLOCK_LIST,
        convert_float_to_float16,
    )
    from onnxruntime.transformers.onnx_model import OnnxModel  # noqa: PLC0415 - as above

    half: onnx.ModelProto = convert_float_to_float16(
        encoder, keep_io_types=True, op_block_list=[*DEFAULT_OP_BLOCK_LIST, *_WRITTEN_OUT]
    )
    # The converter appends the same cast once for each reader. Keep one cast.
    once = {tuple(node.output): node for node in half.graph.node}
    del half.graph.node[:]
    half.graph.node.extend(once.values())
    OnnxModel(half).topological_sort()
    return half
