"""Write a judge as an ONNX graph for padded batches on a GPU."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from gradewire_models.judges.build.layers import MICROSOFT
from gradewire_models.judges.build.padded_layers import PaddedNodes, WeightForm, write_layer, write_norm, write_shared
from gradewire_models.judges.build.shapes import Sizes, WeightSource
from gradewire_models.judges.description import graph_file

# Opset 18 changes the reductions, and not every runtime has these for GPUs.
_OPSET = 17
_IR_VERSION = 8


def write_padded_graph(weights: WeightSource, target: Path, form: WeightForm, report: Callable[[int], None]) -> None:
    """Write the graph and the weights below `target`. The same weights give the same bytes.

    A batch has B rows with T new tokens and N past slots each, and a shared prefix of P tokens, P at least 1.
    Inputs: ``ids`` and ``positions``, int64 [B, T]; ``last``, int64 [B], each row's last token in [B * T]; ``seen``,
    bool [B, T, N + T], the slots that a token sees, among them its own; ``prefix_bias``, float32 [1]; ``labels``, int64
    [B, K]; for every layer L ``prefix_keys_L`` and ``prefix_values_L``, float16 [kv_heads, P, head_dim], and
    ``past_keys_L`` and ``past_values_L``, float16 [B, kv_heads, N, head_dim]. Outputs, for each row's last token:
    ``label_logits``, float32 [B, K]; ``log_total``, float32 [B], the logarithm of the sum of all exponentials;
    ``next_ids``, int64 [B]; and for every layer ``own_keys_L`` and ``own_values_L``, float16 [B, kv_heads, N + T,
    head_dim]. `report` is called with the number of finished layers.

    Raises:
        BuildError: A tensor is missing or does not match the header.
        OSError: The files are not writable.
    """
    sizes = weights.sizes
    path = target / str(graph_file(form))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name("model.onnx.data").open("wb") as data:
        nodes = PaddedNodes(data=data, data_name="model.onnx.data", float_type=TensorProto.FLOAT16, form=form)
        write_shared(nodes, sizes)
        table = nodes.weight("embedding", _table(weights, "token_embd.weight"))
        hidden = nodes.single(nodes.op("Gather", table, "ids", name="embedded", axis=0))
        for index in range(sizes.layers):
            hidden = write_layer(nodes, index, weights.layer(index), hidden, sizes)
            report(index + 1)
        tied = weights.head_name == "token_embd.weight"
        head = table if tied else nodes.weight("head", _table(weights, weights.head_name))
        _write_head(nodes, weights, hidden, head)
    path.write_bytes(_assemble(nodes, sizes).SerializeToString(deterministic=True))


def _table(weights: WeightSource, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
    return np.concatenate([block.astype(np.float16) for block in weights.row_blocks(name)])


def _write_head(nodes: PaddedNodes, weights: WeightSource, hidden: str, head: str) -> None:
    sizes = weights.sizes
    normed = write_norm(nodes, hidden, weights.tensor("output_norm.weight", sizes.dims), "output_norm", sizes)
    logits = nodes.single(nodes.op("Gemm", normed, head, name="logits", transB=1))
    nodes.op("GatherElements", logits, "labels", name="label_logits", axis=1)
    nodes.op("ReduceLogSumExp", logits, name="log_total", axes=[-1], keepdims=0)
    nodes.op("ArgMax", logits, name="next_ids", axis=1, keepdims=0)


def _assemble(nodes: PaddedNodes, sizes: Sizes) -> onnx.ModelProto:
    half, ints = TensorProto.FLOAT16, TensorProto.INT64

    def info(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    def states(which: str, *before: str | int, tokens: str) -> list[onnx.ValueInfoProto]:
        return [
            info(f"{which}_{part}_{index}", half, *before, sizes.kv_heads, tokens, sizes.head_dim)
            for index in range(sizes.layers)
            for part in ("keys", "values")
        ]

    graph = helper.make_graph(
        nodes.nodes,
        "judge",
        [
            info("ids", ints, "rows", "tokens"),
            info("positions", ints, "rows", "tokens"),
            info("last", ints, "rows"),
            info("seen", TensorProto.BOOL, "rows", "tokens", "slots"),
            info("prefix_bias", TensorProto.FLOAT, 1),
            info("labels", ints, "rows", "options"),
            *states("prefix", tokens="prefix_tokens"),
            *states("past", "rows", tokens="past_slots"),
        ],
        [
            info("label_logits", TensorProto.FLOAT, "rows", "options"),
            info("log_total", TensorProto.FLOAT, "rows"),
            info("next_ids", ints, "rows"),
            *states("own", "rows", tokens="slots"),
        ],
        nodes.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="gradewire")
