"""Read the weights of BERT-like encoders and graders."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from gradewire_models.build.adapters import merge_adapter
from gradewire_models.catalog.entries import HEAD_WEIGHTS, CatalogModel
from gradewire_models.errors import BuildError
from gradewire_models.repository.grader_input import MAX_TOKENS, begin_and_separator

Array = NDArray[np.float32]

_AFTER_ATTENTION = {"up": "intermediate.dense", "down": "output.dense", "out_norm": "output.LayerNorm"}
_LAYER_NAMES: Mapping[str, Mapping[str, str]] = {
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attention_out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        **_AFTER_ATTENTION,
    },
    "mpnet": {
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "attention_out": "attention.attn.o",
        "attention_norm": "attention.LayerNorm",
        **_AFTER_ATTENTION,
    },
}

# MPNet uses T5's distance buckets, which grow logarithmically up to this distance.
_MAX_DISTANCE = 128


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer, ``x @ weight + bias``. `weight` is float32 [inputs, outputs], and `bias` is float32 [outputs]."""

    weight: Array
    bias: Array


@dataclass(frozen=True, slots=True)
class Norm:
    """The scale and the shift of a layer normalisation; both are float32 [dims]."""

    scale: Array
    shift: Array


@dataclass(frozen=True, slots=True)
class Layer:
    """A post-norm encoder layer, in which a normalisation follows each residual."""

    query: Dense
    key: Dense
    value: Dense
    attention_out: Dense
    attention_norm: Norm
    up: Dense
    down: Dense
    out_norm: Norm


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder's weights.

    Attributes:
        word_table: Word vectors, float32 [vocabulary, dims].
        position_table: Position vectors, float32 [max_tokens, dims], with row 0 for the first token. If the
            architecture has token types, each position vector includes the vector for token type 0.
        embedding_norm: Normalisation of the sum of word and position vectors.
        relative_bias: Bias of attention scores by distance, float32 [heads, 2 * max_tokens - 1], with the column ``key
            - query + max_tokens - 1``; None for architectures without this bias.
        type_step: Vector of token type 1 minus vector of token type 0, float32 [dims]; None without a type 1.
    """

    word_table: Array
    position_table: Array
    embedding_norm: Norm
    layers: tuple[Layer, ...]
    relative_bias: Array | None
    type_step: Array | None = None


def read_encoder(path: Path, model: CatalogModel) -> Encoder:
    """Read `model`'s weights from a safetensors file, and merge the model's adapter, if any, from the same directory.

    Raises:
        BuildError: A tensor is missing, a tensor's shape or type differs from the catalog's, or the adapter cannot be
            merged.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BuildError(f"cannot read the weights {path}: {error}") from error
    names = _LAYER_NAMES[model.architecture]
    if model.adapter is not None:
        tensors = merge_adapter(tensors, path.parent, linear_layers(model))
    dims, wide = model.dims, model.feed_forward_dims
    take = partial(_take, tensors, path)

    def dense(name: str, inputs: int, outputs: int) -> Dense:
        weight = take(f"{name}.weight", outputs, inputs)
        return Dense(np.ascontiguousarray(weight.T), take(f"{name}.bias", outputs))

    def norm(name: str) -> Norm:
        return Norm(take(f"{name}.weight", dims), take(f"{name}.bias", dims))

    def layer(index: int) -> Layer:
        at = {part: f"encoder.layer.{index}.{name}" for part, name in names.items()}
        return Layer(
            query=dense(at["query"], dims, dims),
            key=dense(at["key"], dims, dims),
            value=dense(at["value"], dims, dims),
            attention_out=dense(at["attention_out"], dims, dims),
            attention_norm=norm(at["attention_norm"]),
            up=dense(at["up"], dims, wide),
            down=dense(at["down"], wide, dims),
            out_norm=norm(at["out_norm"]),
        )

    first = model.position_offset
    positions = take("embeddings.position_embeddings.weight")[first : first + model.max_tokens]
    if positions.shape != (model.max_tokens, dims):
        raise BuildError(f"{path}: the position table is too short for {model.max_tokens} tokens")
    relative_bias = type_step = None
    if model.architecture == "bert":
        types = take("embeddings.token_type_embeddings.weight")
        positions = positions + types[0]
        type_step = types[1] - types[0] if len(types) > 1 else None
    else:
        table = take("encoder.relative_attention_bias.weight")
        distances = np.arange(1 - model.max_tokens, model.max_tokens)
        relative_bias = np.ascontiguousarray(table[relative_buckets(distances, table.shape[0])].T)
    return Encoder(
        word_table=take("embeddings.word_embeddings.weight"),
        position_table=positions,
        embedding_norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(index) for index in range(model.layers)),
        relative_bias=relative_bias,
        type_step=type_step,
    )


def _take(tensors: Mapping[str, Array], path: Path, name: str, *shape: int) -> Array:
    tensor = tensors.get(name)
    if tensor is None or tensor.dtype != np.float32 or (shape and tensor.shape != shape):
        found = "missing" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
        raise BuildError(f"{path}: {name} must be float32 {list(shape)}, found {found}")
    return tensor


def linear_layers(model: CatalogModel) -> dict[str, int]:
    """Map the published name of each linear layer to its encoder layer, counted from 0."""
    names = [name for part, name in _LAYER_NAMES[model.architecture].items() if not part.endswith("norm")]
    return {f"encoder.layer.{layer}.{name}": layer for layer in range(model.layers) for name in names}


def relative_buckets(distances: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each distance ``key - query`` (T5, Raffel et al. 2020, section 2.1; also in MPNet).

    `buckets` must be a multiple of 4. Half of the buckets are for keys after the query, half for keys before the query.
    In each half, every lower bucket is for a single distance, and the upper buckets grow logarithmically.
    """
    half = buckets // 2
    exact = half // 2
    steps = half - exact

    def bucket(distance: int) -> int:
        size = abs(distance)
        # Compare (size / exact)^steps >= (farthest / exact)^step in integers, for the same bucket on all machines.
        reached = [step for step in range(1, steps) if size**steps * exact**step >= _MAX_DISTANCE**step * exact**steps]
        return (half if distance > 0 else 0) + (size if size < exact else exact + len(reached))

    return np.array([bucket(int(distance)) for distance in distances], np.int64)


@dataclass(frozen=True, slots=True)
class Head:
    """A grader's head, ``mean @ weight.T + bias``. `weight` is float32 [1, dims], and `bias` is float32 [1]."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


def read_head(directory: Path, model: CatalogModel) -> Head:
    """Read a grader's head from `directory`.

    Raises:
        BuildError: The head is not readable; a tensor has a wrong shape, a wrong type, or values that are not finite;
            or the model's max_tokens is not `MAX_TOKENS`.
    """
    if model.max_tokens != MAX_TOKENS:
        raise BuildError(f"{model.name}: max_tokens must be {MAX_TOKENS} for a grader, not {model.max_tokens}")
    path = directory / HEAD_WEIGHTS
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise BuildError(f"cannot read the head {path}: {error}") from error
    shapes = {"weight": (1, model.dims), "bias": (1,)}
    if set(tensors) != set(shapes):
        raise BuildError(f"{path} must contain {' and '.join(shapes)}, not {', '.join(sorted(tensors)) or 'nothing'}")
    for name, shape in shapes.items():
        if not np.isfinite(_take(tensors, path, name, *shape)).all():
            raise BuildError(f"{path}: {name} contains NaN or infinite values")
    return Head(tensors["weight"], tensors["bias"])


def read_separator(tokenizer: Path) -> int:
    """Read, from a tokenizer.json, the ID of the token that separates a grader's texts.

    Raises:
        BuildError: The tokenizer is not readable, or adds other tokens to a text than one before and one after it.
    """
    try:
        return begin_and_separator(Tokenizer.from_file(str(tokenizer)))[1]
    # For a broken file, tokenizers raises Exception itself.
    except Exception as error:
        raise BuildError(f"{tokenizer}: {error}") from error
