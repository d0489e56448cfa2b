"""``gradewire models`` on judges, with SmolLM2 as it stands in the tests' own repository."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.judges.smollm2 import NAME, smollm2_repository

from gradewire_models.cli.group import models
from gradewire_models.judges.build.install import JudgeResult
from gradewire_models.judges.repository import load_judge


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(models, [str(argument) for argument in arguments])


def test_list_says_what_is_there_how_to_get_the_rest_and_what_to_know(tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / NAME).symlink_to(smollm2_repository() / NAME)
    result = run("list", "--model-repository", tmp_path / "models")
    assert result.exit_code == 0
    judge = load_judge(smollm2_repository(), NAME)
    assert f"built, {judge.bytes / 1e6:.0f} MB: int8 digest {judge.digests['int8']}, gguf" in result.output
    assert "its verdicts are no better than chance" in result.output
    assert "(1093 MB to download). Run: gradewire models build qwen2.5-coder-1.5b-instruct\n" in result.output
    assert "Not tested here" in result.output
    assert f"judges: {tmp_path / 'judges'}\n" in result.output


def test_build_finds_what_is_there_and_says_what_it_is_good_for() -> None:
    result = run("build", NAME, "--form", "both", "--judge-repository", smollm2_repository())
    assert result.exit_code == 0
    assert f"{NAME}: already built" in result.output
    assert "only for testing the setup" in result.output


def test_verify_shows_every_check_of_a_real_judge() -> None:
    result = run("verify", NAME, "--judge-repository", smollm2_repository())
    assert result.exit_code == 0, result.output
    assert result.output.count("  ok     ") == 7


def test_verify_takes_up_judges_without_being_told_their_names(tmp_path: Path) -> None:
    shutil.copytree(smollm2_repository() / NAME, tmp_path / "judges" / NAME, ignore=shutil.ignore_patterns("*.data"))
    result = run("verify", "--model-repository", tmp_path / "models")
    assert result.exit_code == 4
    assert "FAILED files: judge 'smollm2-135m-instruct' is broken" in result.output


def test_what_cannot_be_built_says_where_it_is_served(tmp_path: Path) -> None:
    result = run("build", "qwen2.5-7b-instruct-awq", "--judge-repository", tmp_path)
    assert result.exit_code == 1
    assert "cannot be built: serve Qwen/Qwen2.5-7B-Instruct-AWQ with vLLM" in result.output


def test_a_form_is_a_judges(tmp_path: Path) -> None:
    result = run("build", "all-MiniLM-L6-v2", "--form", "int8", "--model-repository", tmp_path / "models")
    assert result.exit_code == 2
    assert "--form needs a judge's name" in result.output


@pytest.mark.parametrize("options", [["--form", "int8"], ["--precision", "fp32"], ["--accelerator", "tensorrt"]])
def test_for_gpus_a_judge_has_two_forms_with_cuda(options: list[str], tmp_path: Path) -> None:
    result = run("build", NAME, "--target", "gpu", *options, "--judge-repository", tmp_path)
    assert result.exit_code == 2
    assert "for GPUs, a judge has the forms fp16 and int4" in result.output


@pytest.mark.parametrize(("options", "form"), [([], "fp16"), (["--form", "int4"], "int4")])
def test_the_target_gpu_builds_a_form_for_gpus(
    options: list[str], form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def build(*_given: object, forms: object, **_more: object) -> JudgeResult:
        asked.append(forms)
        judge = load_judge(smollm2_repository(), NAME)
        made = replace(judge, forms=(form,), digests={form: "0" * 64})  # type: ignore[arg-type,dict-item]
        return JudgeResult(made, built=True, checks=())

    monkeypatch.setattr("gradewire_models.judges.build.install.build_judge", build)
    result = run("build", NAME, "--target", "gpu", *options, "--judge-repository", tmp_path)
    assert asked == [(form,)]
    assert "never run on a GPU" in result.output
