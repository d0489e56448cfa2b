"""``gradewire models train sfve``, from examples to an adapter with its card."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from tests_export.conftest import Folder
from tests_export.train.conftest import MAX_TOKENS

from gradewire_models.cli.group import models
from gradewire_train.examples import TASKS, Example
from gradewire_train.recipes import Recipe, read_recipe, recipe_digest
from gradewire_train.run import command
from gradewire_train.texts.files import write_examples


@pytest.fixture
def examples_file(examples: list[Example], tmp_path: Path) -> Path:
    path = tmp_path / "examples.jsonl"
    write_examples(examples, path)
    return path


def call(base: Path, out: Path, *more: Any) -> Any:
    options = ["--base", base, "--out", out, "--steps", 6, "--batch-size", 8, "--rank", 2, "--max-tokens", MAX_TOKENS]
    return CliRunner().invoke(models, ["train", "sfve", *map(str, options), *map(str, more)])


def test_it_writes_adapter_card_recipe_and_facts(
    base_folder: Path, examples_file: Path, labelled_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    selecting = ("--dev", labelled_file, "--dev-half", "a", "--evaluate-every", 3, "--without", "nli")
    found = call(base_folder, out, "--examples", examples_file, *selecting)
    assert found.exit_code == 0, found.output
    assert "step 6/6: loss" in found.output
    assert "base, dev Spearman" in found.output
    facts = json.loads((out / "gradewire.json").read_text())
    recipe = read_recipe(out / "recipe.toml", Recipe)
    assert (recipe.training.steps, recipe.without) == (6, ("nli",))
    assert (facts["recipe_sha256"], facts["max_tokens"], facts["text_form"]) == (
        recipe_digest(recipe),
        MAX_TOKENS,
        "sfve",
    )
    card = (out / "README.md").read_text()
    assert "| synonyms | synonyms | 96 |" in card
    assert f"32 rows of {labelled_file.name}" in card
    assert facts["data_sha256"] in card
    assert "dev 0 | dev 1" in card
    assert (
        f"--recipe recipe.toml --examples examples.jsonl --dev {labelled_file.name} "
        "--dev-half a --dev-rows 600 --evaluate-every 3 --out DIR" in card
    )
    # What was not made is not promised.
    assert set(asdict(recipe.texts).values()) == {0}
    assert not [path for path in out.iterdir() if path.is_dir()]
    assert (out / "adapter_model.safetensors").is_file()
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    assert [row["step"] for row in curve] == [0, 1, 2, 3, 4, 5, 6]
    # The same recipe from its own file, without an option of it, gives the same bytes.
    again = CliRunner().invoke(
        models,
        [
            *("train", "sfve", "--out", str(tmp_path / "again"), "--recipe", str(out / "recipe.toml")),
            *(
                "--examples",
                str(examples_file),
                "--dev",
                str(labelled_file),
                "--dev-half",
                "a",
                "--evaluate-every",
                "3",
            ),
        ],
    )
    assert again.exit_code == 0, again.output
    for name in ("adapter_model.safetensors", "adapter_config.json", "gradewire.json"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_the_card_names_the_files_of_texts_as_the_command_has_them(base_folder: Path, tmp_path: Path) -> None:
    rows = [{"q": f"which {number}?", "answer": f"w{number}"} for number in range(16)]
    questions = tmp_path / "my vqa.jsonl"
    questions.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    pairs = tmp_path / "nli.jsonl"
    told = [{"premise": f"w{n} w1", "hypothesis": f"w{n}", "label": "entailment"} for n in range(16)]
    pairs.write_text("".join(f"{json.dumps(row)}\n" for row in told), encoding="utf-8")
    recipe = tmp_path / "some.toml"
    counts = "".join(f"{task} = {8 if task == 'nli' else 0}\n" for task in TASKS)
    recipe.write_text(f"[texts]\n{counts}", encoding="utf-8")
    files = (
        "--questions",
        questions,
        "--nli-pairs",
        pairs,
        "--column",
        "question=q",
        "--half",
        "a",
        "--skip-bad-lines",
        "--notice",
        "nli.jsonl is under CC BY-SA 4.0.",
    )
    found = call(base_folder, tmp_path / "out", "--recipe", recipe, "--only", "nli", *files)
    assert found.exit_code == 0, found.output
    command_line = "--recipe recipe.toml --questions 'my vqa.jsonl' --nli-pairs nli.jsonl --column question=q "
    card = (tmp_path / "out" / "README.md").read_text()
    assert command_line + "--half a --skip-bad-lines --notice 'nli.jsonl is under CC BY-SA 4.0.' --out DIR" in card
    assert "used the annotations in these files; the last step was kept. nli.jsonl is under CC BY-SA 4.0." in card


def test_tasks_that_the_recipe_counts_0_of_are_named(base_folder: Path, tmp_path: Path) -> None:
    found = call(base_folder, tmp_path / "out", "--recipe", "sfve-mini", "--only", "nli")
    assert found.exit_code == 1
    assert "nli all have 0 examples. Set a number under [texts]" in found.output


def test_the_papers_recipe_trains_a_folder_of_roberta_that_can_be_trained_again(
    make_folder: Callable[..., Folder], examples_file: Path, tmp_path: Path
) -> None:
    roberta = make_folder("roberta").path
    paper = ("--recipe", "sfve-paper", "--pooling", "cls", "--learning-rate", 1e-3, "--examples", examples_file)
    found = call(roberta, tmp_path / "out", *paper)
    assert found.exit_code == 0, found.output
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# SFVE on tiny-roberta: all weights" in card
    assert 'pooling = "cls"' in card
    modules = json.loads((tmp_path / "out" / "1_Pooling" / "config.json").read_text())
    assert modules == {"pooling_mode": "cls"}
    before, after = (load_file(folder / "model.safetensors") for folder in (roberta, tmp_path / "out"))
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    # All weights have a gradient but those of tokens and positions that no text has.
    assert {name.split(".")[0] for name in changed} == {"embeddings", "encoder"}
    assert len([name for name in after if name not in changed]) <= 2, set(after) - changed
    # The result says itself how it pools.
    again = call(tmp_path / "out", tmp_path / "again", "--examples", examples_file)
    assert again.exit_code == 0, again.output


def test_a_gpu_that_is_not_there_or_lacks_the_precision_is_an_error(
    base_folder: Path, examples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--examples", examples_file, "--device", "cuda", "--precision", "bfloat16")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = call(base_folder, tmp_path / "out", *options)
    assert found.exit_code == 1
    assert "--device cuda: torch finds no GPU. Install a torch with CUDA, or leave out --device" in found.output
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: including_emulation)
    found = call(base_folder, tmp_path / "out", *options)
    assert found.exit_code == 1
    assert "precision: Tesla T4 does not compute in bfloat16. Use --precision float32" in found.output


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(
    base_folder: Path, examples_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    class Impatient(command.TrainingConsole):
        def report(self, step: Any) -> None:
            super().report(step)
            if step.step == 2:
                signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(command, "TrainingConsole", Impatient)
        found = call(base_folder, out, "--examples", examples_file)
    assert found.exit_code == 130
    assert "the same command and --resume" in found.output
    assert not (out / "adapter_model.safetensors").exists()
    forgotten = call(base_folder, out, "--examples", examples_file)
    assert forgotten.exit_code == 1
    assert "is from an interrupted training run. Continue with --resume" in forgotten.output
    whole = call(base_folder, tmp_path / "whole", "--examples", examples_file)
    resumed = call(base_folder, out, "--examples", examples_file, "--resume")
    assert (whole.exit_code, resumed.exit_code) == (0, 0), resumed.output
    adapters = [(each / "adapter_model.safetensors").read_bytes() for each in (out, tmp_path / "whole")]
    assert adapters[0] == adapters[1]
    assert not list(out.glob("checkpoint*"))


_KILLED = """
import os, signal, sys
from pathlib import Path
from gradewire_train.run.staged import staged

with staged(Path(sys.argv[1])) as fresh:
    (fresh / "adapter_model.safetensors").write_text("weights")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_run_that_was_killed_left_goes_with_the_next_one(
    base_folder: Path, examples_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(out)], check=False)
    assert (killed.returncode, len(list(out.iterdir()))) == (-signal.SIGKILL, 1)
    found = call(base_folder, out, "--examples", examples_file)
    assert found.exit_code == 0, found.output
    assert not [path for path in out.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--steps", "0"), "--steps must be greater than or equal to 1"),
        (("--temperature", "nan"), "--temperature must be a finite number"),
        (("--only", "number"), "only: unknown task 'number'"),
        (("--resume",), "Start without --resume"),
        (("--base", "nothing"), "neither a catalog model"),
        (("--dev", "ONE_LABEL"), "all labels are equal"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    options: tuple[str, ...], says: str, base_folder: Path, examples_file: Path, tmp_path: Path
) -> None:
    row = {"question": "the cat", "references": ["w1"], "prediction": "w2", "label": 1}
    (tmp_path / "dev.jsonl").write_text(2 * f"{json.dumps(row)}\n", encoding="utf-8")
    given = [str(tmp_path / "dev.jsonl") if each == "ONE_LABEL" else each for each in options]
    found = call(base_folder, tmp_path / "out", "--examples", examples_file, *given)
    assert found.exit_code == 1
    assert says in found.output
    assert "Traceback" not in found.output
