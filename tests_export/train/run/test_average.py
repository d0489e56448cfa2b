"""Means of trained weights: by hand, as the build merges them, and what has none."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file
from tests_export.train.conftest import MAX_TOKENS

from gradewire_models.cli.group import models
from gradewire_models.export.folder import read_folder
from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.examples import Example
from gradewire_train.run.average import average
from gradewire_train.texts.files import write_examples

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def runs(base_folder: Path, examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two adapters of different ranks, and two whole encoders."""
    root = tmp_path_factory.mktemp("runs")
    write_examples(examples, root / "examples.jsonl")
    shared = ["--base", base_folder, "--examples", root / "examples.jsonl", "--steps", 3, "--batch-size", 8]
    kinds: dict[str, list[Any]] = {
        "one": ["--rank", 2, "--seed", 1],
        "two": ["--rank", 3, "--seed", 2],
        "whole one": ["--method", "full", "--seed", 1],
        "whole two": ["--method", "full", "--seed", 2],
    }
    for name, own in kinds.items():
        arguments = ["train", "sfve", *shared, "--max-tokens", MAX_TOKENS, "--out", root / name, *own]
        done = CliRunner().invoke(models, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
    return {name: root / name for name in kinds}


def command(out: Path, *arguments: Path | str) -> Result:
    return CliRunner().invoke(models, ["train", "average", *map(str, arguments), "--out", str(out)])


def changes(folder: Path) -> dict[str, Array]:
    """Return the change that an adapter makes to each matrix."""
    config = json.loads((folder / "adapter_config.json").read_text())
    tensors = {name: each.astype(np.float64) for name, each in load_file(folder / "adapter_model.safetensors").items()}
    scale = config["lora_alpha"] / config["r"]
    return {
        name: scale * tensors[name.replace("lora_A", "lora_B")] @ each
        for name, each in tensors.items()
        if "lora_A" in name
    }


def test_the_mean_of_adapters_adds_the_mean_of_what_they_add(runs: dict[str, Path], tmp_path: Path) -> None:
    done = command(tmp_path, runs["one"], runs["two"])
    assert done.exit_code == 0, done.output
    one, two, mean = changes(runs["one"]), changes(runs["two"]), changes(tmp_path)
    assert set(mean) == set(one)
    for name, found in mean.items():
        assert np.abs(one[name] - two[name]).max() > 1e-4
        np.testing.assert_allclose(found, (one[name] + two[name]) / 2, atol=2e-6)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (5, 5.0)


def test_the_mean_of_whole_encoders_is_a_folder_that_export_reads(runs: dict[str, Path], tmp_path: Path) -> None:
    average([runs["whole one"], runs["whole two"]], tmp_path)
    one, two, mean = (load_file(each / "model.safetensors") for each in (*list(runs.values())[2:], tmp_path))
    assert set(mean) == set(one)
    for name, found in mean.items():
        assert found.dtype == one[name].dtype
        np.testing.assert_allclose(found, (one[name] + two[name]) / 2, atol=1e-7)
    folder = read_folder(tmp_path)
    assert (folder.pooling, folder.max_tokens) == ("mean", MAX_TOKENS)
    encoder: TrainedEncoder = load_base(str(tmp_path), max_tokens=MAX_TOKENS)
    assert encoder.vectors(encoder.tokenize(["w1"])).shape[0] == 1


def test_shares_are_relative_to_their_sum(runs: dict[str, Path], tmp_path: Path) -> None:
    done = command(tmp_path, runs["one"], runs["two"], "--share", "3", "--share", "1")
    assert done.exit_code == 0, done.output
    one, two, mean = changes(runs["one"]), changes(runs["two"]), changes(tmp_path)
    for name, found in mean.items():
        np.testing.assert_allclose(found, 0.75 * one[name] + 0.25 * two[name], atol=2e-6)
    facts = json.loads((tmp_path / "gradewire.json").read_text())
    assert [each["share"] for each in facts["average_of"]] == [0.75, 0.25]


@pytest.mark.parametrize("shares", [(1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, math.inf), (1.0, math.nan), (1.0,) * 3])
def test_shares_are_positive_and_one_for_each_run(
    runs: dict[str, Path], tmp_path: Path, shares: tuple[float, ...]
) -> None:
    with pytest.raises(TrainingError, match="must be 2 numbers above 0, one for each folder"):
        average([runs["one"], runs["two"]], tmp_path / "out", shares=shares)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("order", [("one", "whole one"), ("whole one", "one")])
def test_an_adapter_beside_a_whole_encoder_is_merged_into_the_base(
    runs: dict[str, Path], base_folder: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    average([runs[name] for name in order], tmp_path)
    whole, mean = (load_file(each / "model.safetensors") for each in (runs["whole one"], tmp_path))
    base = load_base(str(base_folder), max_tokens=MAX_TOKENS).model.state_dict()
    adapted = {name: each.numpy().astype(np.float64) for name, each in base.items()}
    for name, change in changes(runs["one"]).items():
        adapted[name.replace("base_model.model.", "").replace("lora_A.", "")] += change
    assert set(mean) == set(whole)
    for name, found in mean.items():
        np.testing.assert_allclose(found, (adapted[name] + whole[name]) / 2, atol=1e-6)
    assert read_folder(tmp_path).pooling == "mean"


def test_the_account_names_every_run_and_no_single_recipe(runs: dict[str, Path], tmp_path: Path) -> None:
    average([runs["one"], runs["two"]], tmp_path)
    facts, first = (json.loads((each / "gradewire.json").read_text()) for each in (tmp_path, runs["one"]))
    assert {name: facts[name] for name in ("base", "base_sha256", "max_tokens", "text_form")} == {
        name: first[name] for name in ("base", "base_sha256", "max_tokens", "text_form")
    }
    assert [each["recipe_sha256"] == first["recipe_sha256"] for each in facts["average_of"]] == [True, False]
    card = (tmp_path / "README.md").read_text()
    for each in facts["average_of"]:
        assert each["weights_sha256"] in card
    assert not (tmp_path / "recipe.toml").exists()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_mean_needs_two_runs(runs: dict[str, Path], tmp_path: Path) -> None:
    done = command(tmp_path / "out", runs["one"])
    assert (done.exit_code, "at least two runs" in done.output) == (1, True)
    done = command(tmp_path / "out", runs["one"], tmp_path / "absent")
    assert (done.exit_code, "nor in the catalog (sfve-mini)" in " ".join(done.output.split())) == (2, True)
    with pytest.raises(TrainingError, match="has neither"):
        average([runs["one"], tmp_path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"base_sha256": "0" * 64}, "different base_sha256"),
        ({"max_tokens": 5, "licence": "MIT"}, "different licence, max_tokens"),
        ({"text_form": "grader"}, "is not of an encoder for sfve"),
    ],
)
def test_runs_with_nothing_in_common_have_no_mean(
    runs: dict[str, Path], tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(runs["two"], other)
    facts = json.loads((other / "gradewire.json").read_text())
    (other / "gradewire.json").write_text(json.dumps(facts | change))
    with pytest.raises(TrainingError, match=says):
        average([runs["one"], other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_broken_file_is_named(runs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(runs["two"], other)
    (other / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(TrainingError, match=f"cannot read {other}"):
        average([runs["one"], other], tmp_path / "out")
