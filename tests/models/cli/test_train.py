"""The command where the package gradewire-train is not installed."""

import sys

import pytest
from click.testing import CliRunner

from gradewire_models.cli.group import models


@pytest.mark.parametrize("arguments", [("--help",), ("texts",), ("sfve", "--out", "out"), ("sfve", "--help")])
def test_without_the_package_it_says_what_to_install(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gradewire_train", None)
    found = CliRunner().invoke(models, ["train", *arguments])
    assert found.exit_code == 2
    assert found.output == (
        "Error: training needs the package gradewire-train, which is not installed: pip install 'gradewire[train]'\n"
    )


def test_the_list_of_commands_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradewire_train", None)
    found = CliRunner().invoke(models, ["--help"])
    assert found.exit_code == 0
    assert "train " in found.output
