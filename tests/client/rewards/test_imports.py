"""What is imported when."""

import subprocess
import sys

import pytest

import gradewire.rewards
from gradewire import MissingExtra
from gradewire_proto import final_answer


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


def test_the_search_for_final_answers_is_exported_and_imported_when_it_is_first_used() -> None:
    assert gradewire.rewards.find_final_answer is final_answer.find_final_answer
    assert isinstance(gradewire.rewards.find_final_answer(r"\boxed{4}"), gradewire.rewards.FinalAnswer)
    assert "gradewire_proto.final_answer.find" not in imported_by("import gradewire.rewards")


def test_other_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'find_answer'"):
        getattr(gradewire.rewards, "find_" + "answer")
