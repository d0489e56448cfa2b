"""Tiny judges and a repository built from them."""

from pathlib import Path

import pytest
from tests.models.judges.build.tiny_judges import TinyJudge, make_judge

from gradewire_models.judges.build.install import build_judge


@pytest.fixture(scope="session")
def tiny_judges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TinyJudge]:
    """Both architectures; qwen2 comes in three parts and has a head of its own."""
    root = tmp_path_factory.mktemp("judges")
    return {
        "qwen2": make_judge(root / "qwen2", "qwen2", parts=3, tied=False),
        "llama": make_judge(root / "llama", "llama", seed=1),
    }


@pytest.fixture(scope="session")
def qwen2(tiny_judges: dict[str, TinyJudge]) -> TinyJudge:
    return tiny_judges["qwen2"]


@pytest.fixture(scope="session")
def judge_repository(tiny_judges: dict[str, TinyJudge], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both tiny judges, built in the int8 form; not to be changed."""
    repository = tmp_path_factory.mktemp("judge-repository")
    for tiny in tiny_judges.values():
        build_judge(tiny.judge, repository, forms=("int8",), wheels=tiny.wheels)
    return repository
