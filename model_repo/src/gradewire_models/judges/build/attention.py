"""Attention over a prefix that the batch shares and over what is a sequence's own.

Every token attends to the prefix and to its own sequence. The prefix part is computed for all tokens in one go, its
keys being the same; there a token's numbers depend on no other token, as matrix products and softmax work row by row.
The own part runs in a loop, one sequence at a time, so that every shape is decided by that sequence alone: its result
is the same, bit for bit, in any batch. Both parts are joined by the weights of their softmax denominators
(log-sum-exp), which comes to one softmax over everything.

log-sum-exp is read from what is there already: largest score - log(largest share).
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from gradewire_models.judges.build.external import JudgeNodes
from gradewire_models.judges.build.weights import Sizes

_MASKED = np.float32(-1e30)


@dataclass(frozen=True, slots=True)
class Heads:
    """Names of queries [heads, tokens, head_dim], keys and values [kv_heads, tokens, head_dim] of one layer."""

    queries: str
    keys: str
    values: str


@dataclass(frozen=True, slots=True)
class Part:
    """Names of the results of attention to some of the keys, for [heads, tokens].

    Attributes:
        mixed: Values by their shares, [heads, tokens, head_dim].
        score: Largest score, [heads, tokens, 1].
        share: Largest share, [heads, tokens, 1].
    """

    mixed: str
    score: str
    share: str


def write_attention_constants(nodes: JudgeNodes, sizes: Sizes) -> None:
    """Adds what all layers share: shapes, each sequence's place in the batch, and who may see whom."""
    nodes.ints("grouped", sizes.kv_heads, -1, sizes.head_dim)
    nodes.ints("by_head", sizes.heads, -1, sizes.head_dim)
    nodes.ints("one_by_head", sizes.heads, -1, 1)
    nodes.ints("scores_by_head", sizes.heads, -1, 0)
    nodes.ints("scores_grouped", sizes.kv_heads, -1, 0)
    nodes.ints("by_token", -1, sizes.heads * sizes.head_dim)
    nodes.ints("both_axes", 0, 1)
    nodes.ints("span_sizes", 1, 1, 1, 1, 2, 2)
    nodes.scalar("going_on", np.bool_(1))
    nodes.op("SequenceEmpty", name="no_parts", dtype=TensorProto.FLOAT)
    nodes.op("Size", "lengths", name="sequences")
    own = nodes.op("Add", "lengths", "past_lengths", name="own_lengths")
    columns = []
    for lengths, place in (("lengths", "new"), ("past_lengths", "past")):
        end = nodes.op("CumSum", lengths, "zero", name=f"{place}_ends")
        columns += [nodes.op("Sub", end, lengths, name=f"{place}_starts"), end]
    nothing = nodes.op("Sub", own, own, name="nothing")
    columns += ["past_lengths", nothing, own, own]
    rows = [nodes.op("Unsqueeze", column, "one_axis", name=f"span_{place}") for place, column in enumerate(columns)]
    nodes.op("Concat", *rows, name="spans", axis=1)
    longest = nodes.op("ReduceMax", own, name="longest", keepdims=0)
    places = nodes.op("Range", "zero", longest, "one", name="places")
    later = nodes.op("Greater", places, nodes.op("Unsqueeze", places, "one_axis", name="seers"), name="later")
    masked, seen = nodes.scalar("masked", _MASKED), nodes.scalar("seen", np.float32(0))
    nodes.op("Where", later, masked, seen, name="causal")


def write_attention(nodes: JudgeNodes, name: str, index: int, heads: Heads) -> str:
    """Writes one layer's attention; returns the mixed values, float32 [tokens, heads * head_dim].

    Uses the graph's inputs ``prefix_keys_N``, ``prefix_values_N``, ``own_past_keys_N``, ``own_past_values_N`` and
    writes its outputs ``own_keys_N`` and ``own_values_N``.
    """
    prefix = _attend_to_prefix(nodes, f"{name}.prefix", index, heads.queries)
    body = _body(nodes.inner(), f"{name}.each", index, heads, prefix)
    parts = [f"{name}.mixed_parts", f"{name}.key_parts", f"{name}.value_parts"]
    carried = ["sequences", "going_on", "no_parts", "no_parts", "no_parts"]
    nodes.nodes.append(helper.make_node("Loop", carried, parts, name=f"{name}.each", body=body))
    nodes.op("ConcatFromSequence", parts[1], name=f"own_keys_{index}", axis=1)
    nodes.op("ConcatFromSequence", parts[2], name=f"own_values_{index}", axis=1)
    joined = nodes.op("ConcatFromSequence", parts[0], name=f"{name}.joined", axis=0)
    return nodes.op("Reshape", joined, "by_token", name=f"{name}.mixed")


def _attend_to_prefix(nodes: JudgeNodes, name: str, index: int, queries: str) -> Part:
    grouped = nodes.op("Reshape", queries, "grouped", name=f"{name}.queries")
    turned = nodes.op("Transpose", f"prefix_keys_{index}", name=f"{name}.keys_turned", perm=[0, 2, 1])
    scores = nodes.op("MatMul", grouped, turned, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    mixed = nodes.op("MatMul", shares, f"prefix_values_{index}", name=f"{name}.mixed")
    top_score = nodes.op("ReduceMax", scores, "last_axis", name=f"{name}.top_score", keepdims=1)
    top_share = nodes.op("ReduceMax", shares, "last_axis", name=f"{name}.top_share", keepdims=1)
    score = nodes.op("Reshape", top_score, "one_by_head", name=f"{name}.score")
    return Part(
        mixed=nodes.op("Reshape", mixed, "by_head", name=f"{name}.mixed_by_head"),
        # A placeholder for a prefix, which no graph can do without, loses all its weight to this.
        score=nodes.op("Add", score, "prefix_bias", name=f"{name}.biased_score"),
        share=nodes.op("Reshape", top_share, "one_by_head", name=f"{name}.share"),
    )


def _body(nodes: JudgeNodes, name: str, index: int, heads: Heads, prefix: Part) -> onnx.GraphProto:
    # The loop's number is the sequence; what it uses of the layer comes from outside.
    number, going_on, going_further = f"{name}.number", f"{name}.going_on", f"{name}.going_further"
    spans = ("start", "end", "past_start", "past_end", "corner", "far_corner")
    span = nodes.op("Gather", "spans", number, name=f"{name}.span", axis=0)
    start, end, past_start, past_end, corner, far_corner = nodes.split(
        span, "span_sizes", *(f"{name}.{part}" for part in spans), axis=0
    )

    def cut(values: str, part: str, *, past: bool = False) -> str:
        bounds = (past_start, past_end) if past else (start, end)
        return nodes.op("Slice", values, *bounds, "one_axis", name=f"{name}.{part}")

    def extend(past: str, new: str, part: str) -> str:
        own = (cut(past, f"past_{part}", past=True), cut(new, f"new_{part}"))
        return nodes.op("Concat", *own, name=f"{name}.{part}", axis=1)

    keys = extend(f"own_past_keys_{index}", heads.keys, "keys")
    values = extend(f"own_past_values_{index}", heads.values, "values")
    seen = nodes.op("Slice", "causal", corner, far_corner, "both_axes", name=f"{name}.seen")
    own = _attend_to_own(nodes, name, Heads(cut(heads.queries, "queries"), keys, values), seen)
    of_prefix = Part(
        mixed=cut(prefix.mixed, "prefix_mixed"),
        score=cut(prefix.score, "prefix_score"),
        share=cut(prefix.share, "prefix_share"),
    )
    mixed = _join(nodes, name, of_prefix, own)
    turned = nodes.op("Transpose", mixed, name=f"{name}.by_token", perm=[1, 0, 2])
    nodes.op("Identity", going_on, name=going_further)
    results = {"mixed_parts": turned, "key_parts": keys, "value_parts": values}
    for part, result in results.items():
        nodes.op("SequenceInsert", f"{name}.{part}_before", result, name=f"{name}.{part}")

    def sequence(part: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_sequence_value_info(part, TensorProto.FLOAT, None)

    return helper.make_graph(
        nodes.nodes,
        name,
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(going_on, TensorProto.BOOL, []),
            *(sequence(f"{name}.{part}_before") for part in results),
        ],
        [
            helper.make_tensor_value_info(going_further, TensorProto.BOOL, []),
            *(sequence(f"{name}.{part}") for part in results),
        ],
    )


def _attend_to_own(nodes: JudgeNodes, name: str, heads: Heads, seen: str) -> Part:
    grouped = nodes.op("Reshape", heads.queries, "grouped", name=f"{name}.grouped")
    turned = nodes.op("Transpose", heads.keys, name=f"{name}.keys_turned", perm=[0, 2, 1])
    products = nodes.op("MatMul", grouped, turned, name=f"{name}.products")
    by_head = nodes.op("Reshape", products, "scores_by_head", name=f"{name}.products_by_head")
    scores = nodes.op("Add", by_head, seen, name=f"{name}.scores")
    shares = nodes.op("Softmax", scores, name=f"{name}.shares", axis=-1)
    regrouped = nodes.op("Reshape", shares, "scores_grouped", name=f"{name}.shares_grouped")
    mixed = nodes.op("MatMul", regrouped, heads.values, name=f"{name}.own_mixed")
    return Part(
        mixed=nodes.op("Reshape", mixed, "by_head", name=f"{name}.own_mixed_by_head"),
        score=nodes.op("ReduceMax", scores, "last_axis", name=f"{name}.own_score", keepdims=1),
        share=nodes.op("ReduceMax", shares, "last_axis", name=f"{name}.own_share", keepdims=1),
    )


def _join(nodes: JudgeNodes, name: str, prefix: Part, own: Part) -> str:
    # own + (prefix - own) * sigmoid(lse of prefix - lse of own)
    sums = []
    for part, which in ((prefix, "prefix"), (own, "own")):
        log = nodes.op("Log", part.share, name=f"{name}.{which}_log")
        sums.append(nodes.op("Sub", part.score, log, name=f"{name}.{which}_sum"))
    share = nodes.op("Sigmoid", nodes.op("Sub", *sums, name=f"{name}.sums"), name=f"{name}.share_of_prefix")
    apart = nodes.op("Sub", prefix.mixed, own.mixed, name=f"{name}.apart")
    return nodes.op("Add", nodes.op("Mul", apart, share, name=f"{name}.moved"), own.mixed, name=f"{name}.mixed")
