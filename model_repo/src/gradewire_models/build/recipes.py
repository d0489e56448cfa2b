"""Make a model's graph; for a variant, apply its recipe to the base's weights."""

from pathlib import Path
from typing import Any

import onnx

from gradewire_models.build.calibration_rows import calibration_texts, entering_rows, texts_sha256, tokenize
from gradewire_models.build.encoder_graph import encoder_graph, gpu_grader_graph, gpu_graph, grader_graph
from gradewire_models.build.quantize import Int8Settings, quantize_int8, quantize_nbits
from gradewire_models.build.weights import Encoder, read_head, read_separator
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.errors import BuildError
from gradewire_models.repository.serving import serving_of_class

_BLOCK_SIZES = (16, 32, 64, 128, 256)
_PARTS = ("qkv", "attention_out", "up", "down")


def make_nbits_graph(encoder: Encoder, model: CatalogModel) -> onnx.ModelProto:
    """Return a graph with 8-bit weights. The recipe sets ``block_size`` and ``accuracy_level`` of MatMulNBits.

    Raises:
        BuildError: A setting is missing or out of range.
    """
    block_size = _setting(model, "block_size")
    if block_size not in _BLOCK_SIZES:
        raise BuildError(f"{model.name}: block_size must be one of {_BLOCK_SIZES}, not {block_size!r}")
    graph = encoder_graph(encoder, model)
    products = _products(model) - _excluded(model)
    quantize_nbits(graph, products, block_size, int(_number(model, "accuracy_level", least=0, most=4)))
    return graph


def make_int8_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    """Return a graph with products in 8 bits. The recipe sets `Int8Settings` and ``calibration_sha256``.

    Raises:
        BuildError: A setting is missing or out of range, or the calibration texts differ from the pinned ones.
    """
    settings = Int8Settings(
        smoothing=_number(model, "smoothing", least=0, most=1),
        outliers=int(_number(model, "outliers", least=0, most=model.dims - 1)),
        hidden_outliers=int(_number(model, "hidden_outliers", least=0, most=model.feed_forward_dims - 1)),
        excluded=frozenset(_excluded(model)),
    )
    texts = calibration_texts(source / "tokenizer.json")
    pinned = _setting(model, "calibration_sha256")
    if texts_sha256(texts) != pinned:
        raise BuildError(
            f"{model.name}: the calibration texts have SHA-256 {texts_sha256(texts)}, but the recipe pins {pinned}"
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
        raise BuildError(f"{model.name}: excluded contains unknown products: {', '.join(map(str, unknown))}")
    return set(names)


def _setting(model: CatalogModel, name: str) -> Any:
    if model.recipe is None or name not in model.recipe.settings:
        raise BuildError(f"{model.name}: the recipe lacks {name}")
    return model.recipe.settings[name]


def _number(model: CatalogModel, name: str, *, least: float, most: float) -> float:
    value = _setting(model, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BuildError(f"{model.name}: {name} must be a number from {least} to {most}, not {value!r}")
    return value


def make_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    """Return the graph of a base model, a variant or a grader, without its fingerprint.

    `source` contains the published model.safetensors and tokenizer.json and, for a grader, the head.

    Raises:
        BuildError: A grader's head does not fit the encoder, the recipe's method is unknown or not for this kind of
            model, or a setting is invalid.
    """
    head = read_head(source, model) if model.kind == "grader" else None
    separator = 0 if head is None else read_separator(source / "tokenizer.json")
    if model.recipe is None:
        return encoder_graph(encoder, model) if head is None else grader_graph(encoder, head, model, separator)
    if head is not None and model.recipe.method != "gpu":
        raise BuildError(f"{model.name}: graders have only variants of the method gpu, not {model.recipe.method!r}")
    match model.recipe.method:
        case "gpu":
            precision = serving_of_class(model.numeric_class).precision
            if head is None:
                graph = gpu_graph(encoder, model, precision)
            else:
                graph = gpu_grader_graph(encoder, head, model, separator, precision)
        case "bf16":
            # OpenVINO casts the base's weights and products to bf16 when it loads the graph.
            graph = encoder_graph(encoder, model)
        case "matmul-nbits":
            graph = make_nbits_graph(encoder, model)
        case "int8":
            graph = make_int8_graph(encoder, model, source)
        case unknown:
            raise BuildError(f"{model.name}: unknown method {unknown!r}. Known methods: gpu, bf16, matmul-nbits, int8")
    # Variants can have the same graph. Store the numeric class, so that their fingerprints differ.
    onnx.helper.set_model_props(graph, {"numeric_class": model.numeric_class})
    return graph
