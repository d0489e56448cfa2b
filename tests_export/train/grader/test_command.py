"""``gradewire models train grader``, from rows to an adapter with its head and card."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from tests.support.debian.wordnet import wordnet_files

from gradewire_models.cli.group import models
from gradewire_train.recipes import GraderRecipe, read_recipe, recipe_digest
from gradewire_train.rows.row import fold_of
from gradewire_train.run import command
from gradewire_train.run.checkpoint import CHECKPOINT_FILE

FILES = ("adapter_config.json", "adapter_model.safetensors", "head.safetensors", "gradewire.json", "README.md")


def call(base: Path, out: Path, *more: Any) -> Any:
    options = ["--base", base, "--out", out, "--steps", 6, "--batch-size", 8, "--rank", 2, "--drawn-rows", 0]
    return CliRunner().invoke(models, ["train", "grader", *map(str, options), *map(str, more)])


def test_it_writes_adapter_head_card_recipe_and_facts_twice_the_same(
    wide_folder: Path, rows_file: Path, tmp_path: Path
) -> None:
    for name in ("1", "2"):
        found = call(wide_folder, tmp_path / name, "--rows", rows_file, "--temperature", 1.5)
        assert found.exit_code == 0, found.output
    out = tmp_path / "1"
    for name in FILES:
        assert (out / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    facts = json.loads((out / "gradewire.json").read_text())
    recipe = read_recipe(out / "recipe.toml", GraderRecipe)
    assert recipe.training.steps == 6
    assert (facts["text_form"], facts["max_tokens"], facts["temperature"]) == ("grader", 256, 1.5)
    assert facts["recipe_sha256"] == recipe_digest(recipe)
    card = (out / "README.md").read_text()
    assert "| own | 48 |" in card
    assert "--recipe recipe.toml --rows own.jsonl --temperature 1.5 --out DIR" in card


def test_it_trains_on_a_gpu_or_says_that_there_is_none(wide_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    found = call(wide_folder, tmp_path, "--rows", rows_file, "--device", "cuda")
    if not torch.cuda.is_available():
        assert found.exit_code == 1
        assert "--device cuda: torch finds no GPU. Install a torch with CUDA, or leave out --device" in found.output
        return
    assert found.exit_code == 0, found.output
    assert "--rows own.jsonl --device cuda --out DIR" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "adapter_model.safetensors").is_file()


def test_rows_are_made_from_those_that_it_trains_on(wide_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    found = call(wide_folder, tmp_path, "--rows", rows_file, "--counterfactual-rows", 20, "--wordnet", wordnet_files(),
                 "--notice", "own.jsonl is under CC BY-SA 3.0.")  # fmt: skip
    assert found.exit_code == 0, found.output
    card = (tmp_path / "README.md").read_text()
    assert "- The last step was kept. own.jsonl is under CC BY-SA 3.0.\n" in card
    assert "--notice 'own.jsonl is under CC BY-SA 3.0.' --out DIR" in card
    assert "| counterfactual | 20 |" in card
    assert "counterfactual_rows = 20" in (tmp_path / "recipe.toml").read_text()


def test_it_learns_and_scores_the_questions_that_were_left_out(
    wide_folder: Path, rows_file: Path, tmp_path: Path
) -> None:
    options = ("--steps", 250, "--learning-rate", 5e-3, "--unasked", 0, "--leave-out-fold", "1/3", "--score", rows_file)
    found = call(wide_folder, tmp_path, "--rows", rows_file, *options)
    assert found.exit_code == 0, found.output
    losses = [json.loads(line)["loss"] for line in (tmp_path / "curve.jsonl").read_text().splitlines()]
    assert np.mean(losses[:5]) == pytest.approx(np.log(2), abs=0.1)
    assert np.mean(losses[-10:]) < 0.5
    scored = [json.loads(line) for line in (tmp_path / "logits.jsonl").read_text().splitlines()]
    asked = {row["id"]: row["question"] for row in map(json.loads, rows_file.read_text().splitlines())}
    out = [row for row in scored if fold_of(asked[row["id"]], 3) == 0]
    # Those left out, and then the whole file.
    assert len(scored) == 48 + len(out) // 2
    assert len({row["logit"] for row in scored}) > 10


def test_a_share_of_the_grader_that_it_starts_from_stays_in_the_mean(
    wide_folder: Path, rows_file: Path, tmp_path: Path
) -> None:
    start, share = tmp_path / "start", ("--start-share", 0.25)
    assert call(wide_folder, start, "--rows", rows_file).exit_code == 0
    for name, more in (("trained", ()), ("mean", share)):
        found = call(wide_folder, tmp_path / name, "--rows", rows_file, "--start", start, "--seed", 2, *more)
        assert found.exit_code == 0, found.output
    for name in ("adapter_model.safetensors", "head.safetensors"):
        before, after, mean = (load_file(tmp_path / folder / name) for folder in ("start", "trained", "mean"))
        for key, values in mean.items():
            wanted = 0.25 * before[key].float() + 0.75 * after[key].float()
            assert torch.equal(values, wanted.to(values.dtype)), key
            assert not torch.equal(values, after[key]), key
    assert "start_share = 0.25" in (tmp_path / "mean" / "recipe.toml").read_text()
    refused = call(wide_folder, tmp_path / "none", "--rows", rows_file, *share)
    assert "training.start_share: there is no earlier grader. Use --start" in refused.output


def interrupted(monkeypatch: pytest.MonkeyPatch, base: Path, out: Path, *more: Any) -> None:
    """Trains for two steps, until Ctrl-C."""

    class Impatient(command.TrainingConsole):
        def report(self, step: Any) -> None:
            super().report(step)
            if step.step == 2:
                signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(command, "TrainingConsole", Impatient)
        assert call(base, out, *more).exit_code == 130


@pytest.mark.parametrize("share", [None, 0.25])
def test_ctrl_c_leaves_a_checkpoint_and_resuming_ends_in_the_same_bytes(
    share: float | None, wide_folder: Path, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: tuple[Any, ...] = ("--rows", rows_file)
    if share is not None:
        assert call(wide_folder, tmp_path / "start", *given, "--seed", 5).exit_code == 0
        given = (*given, "--start", tmp_path / "start", "--start-share", share)
    interrupted(monkeypatch, wide_folder, tmp_path / "parts", *given)
    other = call(wide_folder, tmp_path / "parts", *given, "--resume", "--half", "a")
    assert "belongs to a different training" in other.output
    resumed = call(wide_folder, tmp_path / "parts", *given, "--resume")
    whole = call(wide_folder, tmp_path / "whole", *given)
    assert (resumed.exit_code, whole.exit_code) == (0, 0), resumed.output
    for name in FILES:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_another_start_or_device_does_not_go_on_from_a_checkpoint(
    wide_folder: Path, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, out = tmp_path / "start", tmp_path / "out"
    given = ("--rows", rows_file, "--start", start)
    assert call(wide_folder, start, "--rows", rows_file).exit_code == 0
    interrupted(monkeypatch, wide_folder, out, *given)
    head = load_file(start / "head.safetensors")
    save_file({name: values + 1 for name, values in head.items()}, start / "head.safetensors")
    assert "belongs to a different training" in call(wide_folder, out, *given, "--resume").output
    save_file(head, start / "head.safetensors")

    path = out / CHECKPOINT_FILE
    state = torch.load(path, weights_only=True)
    assert state["identity"].endswith(" cpu")
    torch.save(state | {"identity": state["identity"].removesuffix("cpu") + "cuda"}, path)
    assert "or device differ" in call(wide_folder, out, *given, "--resume").output
    torch.save(state, path)
    assert call(wide_folder, out, *given, "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "there are no rows to train on"),
        (("--rows", __file__, "--rows", __file__), "--rows: there are two files named test_command.py"),
        (("--leave-out-fold", "3/2"), "must have the format K/N"),
        (("--leave-out-fold", "1"), "must have the format K/N"),
        (("--rank", "0"), "--rank must be greater than or equal to 1"),
        (("--smoothing", "0.7"), "--smoothing must be less than or equal to 0.5"),
        (("--recipe", "sfve-mini"), "nor a recipe of gradewire (grader-base, grader-mini, grader-start)"),
        (("--start", "grader-begin"), "is neither a folder nor a grader of gradewire (grader-start)"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    options: tuple[str, ...], says: str, wide_folder: Path, tmp_path: Path
) -> None:
    found = call(wide_folder, tmp_path / "out", *options)
    assert found.exit_code != 0
    assert says in " ".join(found.output.split())
    assert "Traceback" not in found.output
