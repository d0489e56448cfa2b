"""Write a judge as an 8-bit ONNX graph, directly from its GGUF file.

A batch's tokens are stored one after another without padding. With VNNI, 8-bit products are two to three times as fast
as float32 or 4-bit products (docs/research/judge.md#what-a-rating-costs).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from gradewire_models.judges.build.layers import (
    MICROSOFT,
    JudgeNodes,
    lookup,
    product_of_rounded,
    quantize,
    round_rows,
    write_angles,
    write_attention_constants,
    write_layer,
    write_layer_constants,
    write_norm,
    write_rounding_constants,
)
from gradewire_models.judges.build.reference import ReferencePass
from gradewire_models.judges.build.shapes import Sizes
from gradewire_models.judges.build.weights import JudgeWeights
from gradewire_models.judges.description import ONNX_DATA_FILE, ONNX_FILE

# Opset 23 is the first with rotary embedding. Older runtimes cannot load this file format version.
_OPSET = 23
_IR_VERSION = 11


def write_graph(weights: JudgeWeights, target: Path, reference: ReferencePass, report: Callable[[int], None]) -> None:
    """Write the graph and the weights below `target`. The same GGUF file gives the same bytes.

    A batch has S sequences with T new and N past tokens in total, and a shared prefix of P tokens, P at least 1.
    Inputs: ``ids`` and ``positions``, int64 [T]; ``lengths`` and ``past_lengths``, int64 [S]; ``prefix_bias``, float32
    [1]; for every layer L ``prefix_keys_L`` and ``prefix_values_L``, float32 [kv_heads, P, head_dim], and
    ``own_past_keys_L`` and ``own_past_values_L``, float32 [kv_heads, N, head_dim]. Outputs: ``logits`` of each
    sequence's last token, float32 [S, vocabulary]; ``own_keys_L`` and ``own_values_L``, float32 [kv_heads, N + T,
    head_dim].

    `reference` runs with each layer's weights while they are in memory. `report` is called with the number of finished
    layers.

    Raises:
        BuildError: A tensor is missing or does not match the header.
        OSError: The files are not writable.
    """
    sizes = weights.sizes
    (target / ONNX_FILE).parent.mkdir(parents=True, exist_ok=True)
    with (target / ONNX_DATA_FILE).open("wb") as data:
        nodes = JudgeNodes(data=data, data_name=Path(ONNX_DATA_FILE).name)
        _write_constants(nodes, sizes)
        hidden = _write_embedding(nodes, weights)
        angles = write_angles(nodes, sizes)
        for index in range(sizes.layers):
            layer = weights.layer(index)
            hidden = write_layer(nodes, index, layer, hidden, angles, sizes)
            reference.advance(layer)
            report(index + 1)
        _write_head(nodes, weights, hidden, reference)
    (target / ONNX_FILE).write_bytes(_assemble(nodes, sizes).SerializeToString(deterministic=True))


def _write_constants(nodes: JudgeNodes, sizes: Sizes) -> None:
    nodes.ints("first_axis", 0)
    nodes.ints("one_axis", 1)
    nodes.ints("last_axis", -1)
    nodes.scalar("zero", np.int64(0))
    nodes.scalar("one", np.int64(1))
    write_rounding_constants(nodes)
    write_attention_constants(nodes, sizes)
    write_layer_constants(nodes, sizes)
    nodes.op("Sub", "new_ends", "one", name="last_tokens")


def _write_embedding(nodes: JudgeNodes, weights: JudgeWeights) -> str:
    blocks = [round_rows(block) for block in weights.row_blocks("token_embd.weight")]
    return lookup(nodes, np.concatenate([block[0] for block in blocks]), np.concatenate([b[1] for b in blocks]), "ids")


def _write_head(nodes: JudgeNodes, weights: JudgeWeights, hidden: str, reference: ReferencePass) -> None:
    sizes = weights.sizes
    norm = weights.tensor("output_norm.weight", sizes.dims)
    reference.finish_hidden(norm)
    blocks = []
    for block in weights.row_blocks(weights.head_name):
        reference.add_logits(block)
        blocks.append(round_rows(block))
    normed = write_norm(nodes, hidden, norm, "output_norm", sizes)
    rounded, scales = quantize(nodes, normed, "head_rounding")
    table, worth = np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])
    nodes.op("Mul", product_of_rounded(nodes, rounded, table, worth, "head"), scales, name="logits")


def _assemble(nodes: JudgeNodes, sizes: Sizes) -> onnx.ModelProto:
    def info(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    def states(which: str, tokens: str) -> list[onnx.ValueInfoProto]:
        return [
            info(f"{which}_{part}_{index}", TensorProto.FLOAT, sizes.kv_heads, tokens, sizes.head_dim)
            for index in range(sizes.layers)
            for part in ("keys", "values")
        ]

    graph = helper.make_graph(
        nodes.nodes,
        "judge",
        [
            info("ids", TensorProto.INT64, "tokens"),
            info("positions", TensorProto.INT64, "tokens"),
            info("lengths", TensorProto.INT64, "sequences"),
            info("past_lengths", TensorProto.INT64, "sequences"),
            info("prefix_bias", TensorProto.FLOAT, 1),
            *states("prefix", "prefix_tokens"),
            *states("own_past", "past_tokens"),
        ],
        [info("logits", TensorProto.FLOAT, "sequences", sizes.vocabulary), *states("own", "own_tokens")],
        nodes.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="gradewire")
