"""The command where the extra is not installed, as here."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradewire_models.cli.group import models
from gradewire_train.recipes import Recipe, option, sections, settings_of


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    found = CliRunner().invoke(models, ["train", "sfve", "--out", str(tmp_path / "out")])
    assert found.exit_code == 2
    assert "pip install 'gradewire[train]'" in found.output
    assert not (tmp_path / "out").exists()


def test_every_setting_of_a_recipe_is_an_option_with_its_default() -> None:
    found = CliRunner().invoke(models, ["train", "sfve", "--help-all"])
    assert found.exit_code == 0
    shown = " ".join(found.output.split())
    for section in sections(Recipe).values():
        for name in settings_of(section):
            assert f"{option(name)} " in shown
            assert f".{name}, default" in shown


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ("sfve-mini", "pip install 'gradewire[train]'"),  # known: it gets as far as anything does without the extra
        ("sfve-paper", "pip install 'gradewire[train]'"),
        ("sfve-large", "'sfve-large' is neither a file nor a recipe of gradewire (sfve-mini, sfve-paper)"),
    ],
)
def test_a_shipped_recipe_is_called_by_its_name(recipe: str, says: str, tmp_path: Path) -> None:
    found = CliRunner().invoke(models, ["train", "sfve", "--recipe", recipe, "--out", str(tmp_path / "out")])
    assert found.exit_code != 0
    assert says in " ".join(found.output.split())
