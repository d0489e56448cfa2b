"""A model with its weights beside the graph gives the vectors of the same model in one file."""

import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends

from gradewire_models.build.publish import WEIGHTS_SHA256, add_fingerprint, write_model
from gradewire_models.build.reference import GOLDEN_FILE
from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.export.weights_file import take_out_weights
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import FINGERPRINT_OUTPUT, TOKENIZER_FILE, WEIGHTS_FILE
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure
from gradewire_server.domain.needs import Tier
from gradewire_server.encoders.window_graphs import reason_without_graph
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, EngineConfig

TEXTS = ["Paris", "the capital of France is Paris, of course", "word " * 300]
NAME = "beside"


@pytest.fixture
def repository(minilm: Path, tmp_path: Path) -> Path:
    """Holds the default encoder under another name, with its weights in a file."""
    built = load_built(minilm, "all-MiniLM-L6-v2")
    target = tmp_path / NAME
    (target / "1").mkdir(parents=True)
    for name in (TOKENIZER_FILE, GOLDEN_FILE):
        shutil.copy(built.directory / name, target / name)
    model = onnx.load(built.onnx_path)
    graph = model.graph
    for parts in (graph.node, graph.output, graph.initializer):
        for part in [each for each in parts if each.name.startswith(FINGERPRINT_OUTPUT)]:
            parts.remove(part)
    weights = take_out_weights(model, target, target / "1")
    helper.set_model_props(model, {WEIGHTS_SHA256: weights.sha256})
    metadata = {each.name: getattr(built, each.name) for each in fields(EncoderMetadata)}
    described = replace(EncoderMetadata(**metadata), name=NAME, catalog_version=0, calibrations=(), bertscore=None)
    write_model(target, described, add_fingerprint(model), weights=weights)
    return tmp_path


async def test_the_vectors_are_those_of_the_model_in_one_file(repository: Path, open_backends: OpenBackends) -> None:
    model = load_built(repository, NAME)
    assert model.weights_path == repository / NAME / "1" / WEIGHTS_FILE
    checks = verify_built(repository, NAME, None)
    assert all(check.passed for check in checks), checks
    assert "the weights in the graph" in reason_without_graph(model, repository)
    config = EngineConfig(repository, preload=(NAME,), cache=CacheConfig(), compute=ComputeConfig(workers=1))
    engine = await Backends.open(config, CollectorRegistry())
    try:
        beside = await engine.ports.embeddings.embed(NAME, TEXTS, [Tier.WINDOW] * 3)
    finally:
        await engine.close()
    whole = await (await open_backends()).ports.embeddings.embed("", TEXTS, [Tier.WINDOW] * 3)
    assert not isinstance(beside, Failure)
    assert not isinstance(whole, Failure)
    np.testing.assert_array_equal(beside.values, whole.values)
