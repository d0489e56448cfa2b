"""A tiny encoder for GPUs, and what stands in for the GPU: ONNX Runtime's CPU provider under the same code."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.models.tiny_models import make_package

from gradewire_models.build.install import build_model
from gradewire_models.catalog.entries import Limits, Recipe
from gradewire_models.repository.built import BuiltModel
from gradewire_models.runtime import onnxruntime
from gradewire_server.encoders.cuda import BoundSession
from gradewire_server.encoders.gpu_shapes import Buckets

OpenBound = Callable[[BuiltModel, Buckets], BoundSession]


@pytest.fixture(scope="module")
def gpu_model(tmp_path_factory: pytest.TempPathFactory) -> BuiltModel:
    package = make_package(tmp_path_factory.mktemp("wheels") / "bert", "bert")
    variant = replace(
        package.model,
        name="tiny-bert-fp32-cuda",
        base="tiny-bert",
        numeric_class="fp32-cuda",
        recipe=Recipe("gpu", {"precision": "fp32", "accelerator": "cuda"}),
        limits=Limits(),
    )
    return build_model(variant, tmp_path_factory.mktemp("repository"), wheels=package.wheels).model


def bound_on_cpu(model: BuiltModel, buckets: Buckets) -> BoundSession:
    session = onnxruntime.InferenceSession(Path(model.onnx_path), providers=["CPUExecutionProvider"])
    return BoundSession(session, model, buckets.shapes, device=("cpu", 0), graphs=True)
