"""What is imported when."""

import subprocess
import sys

import pytest

from gradewire import MissingExtra


def imported_by(program: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"import sys; {program}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(told.stdout.split())


def test_the_client_alone_knows_no_rewards() -> None:
    assert not {name for name in imported_by("import gradewire") if name.startswith("gradewire.rewards")}


def test_rewards_and_adapters_import_no_framework_and_no_grpc() -> None:
    modules = imported_by("import gradewire.rewards.trl, gradewire.rewards.verl, gradewire.rewards.posts")
    assert "gradewire.rewards.scorer" in modules
    assert not modules & {"torch", "trl", "verl", "verifiers", "grpc", "numpy", "starlette", "pydantic"}


@pytest.mark.parametrize(("module", "library"), [("verl_plugin", "verl"), ("verifiers", "verifiers")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(module: str, library: str) -> None:
    with pytest.raises(MissingExtra, match=f"pip install '{library}'"):
        __import__(f"gradewire.rewards.{module}")
