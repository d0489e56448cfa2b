from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from gradewire_models.build.reference import Golden, load_golden
from gradewire_models.build.verify import Check
from gradewire_models.export.parity import Tolerance, check_parity
from gradewire_models.repository.built import BuiltModel, load_built

VOCABULARY = 64


@pytest.fixture
def model(tiny_repository: Path) -> BuiltModel:
    return load_built(tiny_repository, "tiny-bert")


@pytest.fixture
def golden(model: BuiltModel) -> Golden:
    return load_golden(model.directory / "golden.npz")


def check(model: BuiltModel, golden: Golden, tmp_path: Path, old: str = "", new: str = "") -> list[Check]:
    """Checks the model's graph with one input of one operator replaced by another tensor."""
    graph = onnx.load(model.onnx_path)
    for node in graph.graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
    onnx.save(graph, tmp_path / "changed.onnx")
    return check_parity(tmp_path / "changed.onnx", golden, VOCABULARY, Tolerance())


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_a_right_graph_passes_whatever_stands_in_the_padding(model: BuiltModel, golden: Golden, tmp_path: Path) -> None:
    checks = check(model, golden, tmp_path)
    assert [one.name for one in checks] == ["sentence vectors match torch", "token vectors match torch", "empty rows"]
    assert failed(checks) == []
    assert f"{len(golden.ids)} texts of 1 to {model.max_tokens} tokens" in checks[0].detail


def test_a_graph_that_attends_to_padding_fails(model: BuiltModel, golden: Golden, tmp_path: Path) -> None:
    # The bias that keeps padding out of attention becomes next to nothing.
    checks = check(model, golden, tmp_path, "masked", "tiny")
    assert failed(checks) == ["sentence vectors match torch", "token vectors match torch"]


@pytest.mark.parametrize("shift", [2e-4, np.nan])
def test_vectors_off_by_more_than_the_limit_fail(
    model: BuiltModel, golden: Golden, tmp_path: Path, shift: float
) -> None:
    sentences = golden.sentences.copy()
    sentences[3, 5] += shift
    assert failed(check(model, replace(golden, sentences=sentences), tmp_path)) == ["sentence vectors match torch"]
    tokens = {layer: rows.copy() for layer, rows in golden.tokens_by_layer.items()}
    tokens[1][7, 2] += shift * np.sqrt(np.mean(tokens[1] ** 2))
    assert failed(check(model, replace(golden, tokens_by_layer=tokens), tmp_path)) == ["token vectors match torch"]


def test_token_vectors_are_measured_in_units_of_their_size(model: BuiltModel, golden: Golden, tmp_path: Path) -> None:
    last = model.layers
    rows = golden.tokens_by_layer[last]
    off = {**golden.tokens_by_layer, last: rows + np.float32(0.5e-4 * np.sqrt(np.mean(rows**2)))}
    assert failed(check(model, replace(golden, tokens_by_layer=off), tmp_path)) == []
