"""How each variant of the catalog is made of its base's weights: one function a method.

A further method is one function and one line in `RECIPES`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import get_args

import onnx

from gradewire_models.build.graph.encoder import encoder_graph, gpu_graph
from gradewire_models.build.graph.grader import grader_graph
from gradewire_models.build.quantize.methods import INT8_METHOD, NBITS_METHOD, choose, make_int8_graph, make_nbits_graph
from gradewire_models.build.weights.encoder import Encoder
from gradewire_models.build.weights.head import read_head, read_separator
from gradewire_models.catalog.loading import CatalogModel
from gradewire_models.errors import BuildError
from gradewire_models.repository.serving import AS_IT_IS, Accelerator, Copies, Precision, Serving, serving_on_cpus

GraphMaker = Callable[[Encoder, CatalogModel, Path], onnx.ModelProto]

GPU_METHOD = "gpu"
BF16_METHOD = "bf16"


def make_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    """Writes the graph of `model`, without its fingerprint.

    Args:
        encoder: Its weights.
        model: A model of its own, a variant with its recipe, or a grader.
        source: Directory with the published model.safetensors and tokenizer.json, and a grader's head.

    Raises:
        BuildError: A grader's head is none of this encoder's, the recipe's method is unknown, or a setting of it cannot
            be used.
    """
    if model.kind == "grader":
        separator = read_separator(source / "tokenizer.json")
        return grader_graph(encoder, read_head(source, model), model, separator)
    if model.recipe is None:
        return encoder_graph(encoder, model)
    maker = RECIPES.get(model.recipe.method)
    if maker is None:
        raise BuildError(f"{model.name}: unknown method {model.recipe.method!r}; known are: {', '.join(RECIPES)}")
    graph = maker(encoder, model, source)
    # Two variants may have one graph and differ in what runs it: the fingerprint has to tell them apart.
    onnx.helper.set_model_props(graph, {"numeric_class": model.numeric_class})
    return graph


def serving_of(model: CatalogModel, copies: Copies = AS_IT_IS) -> Serving:
    """How Triton is to run `model`; what `copies` leaves open is as in a new model.

    Raises:
        BuildError: A setting of the recipe cannot be used.
    """
    if model.recipe is None or model.recipe.method != GPU_METHOD:
        return serving_on_cpus(copies)
    accelerator: Accelerator = choose(model, "accelerator", get_args(Accelerator)[1:])
    return Serving(copies.instances or 1, copies.threads or 0, accelerator, _precision(model))


def _make_gpu_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    del source  # nothing beside the weights decides it
    return gpu_graph(encoder, model, _precision(model))


def _make_bf16_graph(encoder: Encoder, model: CatalogModel, source: Path) -> onnx.ModelProto:
    # The base's graph: OpenVINO takes its weights and products to bf16 where it is loaded.
    del source  # nothing beside the weights decides it
    return encoder_graph(encoder, model)


def _precision(model: CatalogModel) -> Precision:
    precision: Precision = choose(model, "precision", get_args(Precision))
    return precision


RECIPES: Mapping[str, GraphMaker] = MappingProxyType(
    {
        GPU_METHOD: _make_gpu_graph,
        BF16_METHOD: _make_bf16_graph,
        NBITS_METHOD: make_nbits_graph,
        INT8_METHOD: make_int8_graph,
    }
)
