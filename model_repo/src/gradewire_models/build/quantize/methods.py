"""The recipes of quantized variants: settings of the catalog turned into a graph."""

from pathlib import Path
from typing import Any, get_args

import onnx

from gradewire_models.build.graph.encoder import encoder_graph
from gradewire_models.build.quantize.calibration_texts import calibration_texts, texts_sha256
from gradewire_models.build.quantize.entering_rows import entering_rows, tokenize
from gradewire_models.build.quantize.int8 import Int8Settings, quantize_int8
from gradewire_models.build.quantize.nbits import quantize_nbits
from gradewire_models.build.quantize.product import Activations, Rounding
from gradewire_models.build.weights.encoder import Encoder
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.errors import BuildError

NBITS_METHOD = "matmul-nbits"
INT8_METHOD = "int8"

_BLOCK_SIZES = (16, 32, 64, 128, 256)
_PARTS = ("qkv", "attention_out", "up", "down")


def make_nbits_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    """Weights alone in 8 bits; settings ``block_size`` and ``accuracy_level`` of MatMulNBits.

    Raises:
        BuildError: A setting is missing or out of its range.
    """
    del source  # nothing beside the weights decides it
    block_size = _setting(model, "block_size")
    if block_size not in _BLOCK_SIZES:
        raise BuildError(f"{model.name}: block_size should be one of {_BLOCK_SIZES}, not {block_size!r}")
    graph = encoder_graph(encoder, model)
    products = _products(model) - _excluded(model)
    quantize_nbits(graph, products, block_size, int(_number(model, "accuracy_level", least=0, most=4)))
    return graph


def make_int8_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    """Weights and what they are multiplied with in 8 bits; settings as in `Int8Settings`, and ``calibration_sha256``.

    Raises:
        BuildError: A setting is missing or out of its range, or the calibration texts are not the pinned ones.
    """
    settings = Int8Settings(
        activations=choose(model, "activations", get_args(Activations)),
        rounding=choose(model, "rounding", get_args(Rounding)),
        percentile=_number(model, "percentile", least=50, most=100),
        smoothing=_number(model, "smoothing", least=0, most=1),
        outliers=int(_number(model, "outliers", least=0, most=model.dims - 1)),
        hidden_outliers=int(_number(model, "hidden_outliers", least=0, most=model.feed_forward_dims - 1)),
        excluded=frozenset(_excluded(model)),
    )
    texts = calibration_texts(source / "tokenizer.json")
    pinned = _setting(model, "calibration_sha256")
    if texts_sha256(texts) != pinned:
        raise BuildError(
            f"{model.name}: the calibration texts have SHA-256 {texts_sha256(texts)}, the recipe pins {pinned}"
        )
    graph = encoder_graph(encoder, model)
    ids = tokenize(source / "tokenizer.json", texts, model.max_tokens)
    quantize_int8(graph, entering_rows(encoder, model, ids), settings)
    return graph


def _products(model: CatalogModel) -> set[str]:
    return {f"layer_{layer}.{part}" for layer in range(1, model.layers + 1) for part in _PARTS}


def _excluded(model: CatalogModel) -> set[str]:
    names = _setting(model, "excluded")
    unknown = sorted(set(names) - _products(model)) if isinstance(names, tuple) else [names]
    if unknown:
        raise BuildError(f"{model.name}: excluded names what is no product of it: {', '.join(map(str, unknown))}")
    return set(names)


def _setting(model: CatalogModel, name: str) -> Any:
    if model.recipe is None or name not in model.recipe.settings:
        raise BuildError(f"{model.name}: its recipe lacks {name}")
    return model.recipe.settings[name]


def choose(model: CatalogModel, name: str, allowed: tuple[str, ...]) -> Any:
    """A setting of the model's recipe.

    Raises:
        BuildError: It is missing, or none of those `allowed`.
    """
    value = _setting(model, name)
    if value not in allowed:
        raise BuildError(f"{model.name}: {name} should be one of {', '.join(allowed)}, not {value!r}")
    return value


def _number(model: CatalogModel, name: str, *, least: float, most: float) -> float:
    value = _setting(model, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BuildError(f"{model.name}: {name} should be a number from {least} to {most}, not {value!r}")
    return value
