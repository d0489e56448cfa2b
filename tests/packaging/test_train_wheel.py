"""What trains encoders is a wheel of its own, of the same version, which only those install who train."""

from fnmatch import fnmatch
from importlib.metadata import Distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from tests.packaging.installed import ROOT, TRAIN, Installed, packages_of, unlike

pytestmark = pytest.mark.timeout(600)  # the first test waits for the wheel

HEAVY = {"peft", "torch", "transformers"}


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory, installed: Installed, train_wheel: Path) -> Path:
    """A folder with the wheel installed into it."""
    folder = tmp_path_factory.mktemp("training")
    installed.add(train_wheel, "--target", str(folder))
    return folder


@pytest.fixture(scope="session")
def metadata(training: Path) -> Distribution:
    (found,) = training.glob("gradewire_train-*.dist-info")
    return Distribution.at(found)


def test_it_holds_its_package_as_it_stands_in_the_tree(train_wheel: Path) -> None:
    assert packages_of(TRAIN).keys() == {"gradewire_train"}
    assert unlike(train_wheel, TRAIN) == []


@pytest.mark.parametrize("pattern", ["py.typed", "recipes/*.toml", "data/*.toml"])
def test_it_holds_the_data(train_wheel: Path, pattern: str) -> None:
    with ZipFile(train_wheel) as archive:
        assert any(fnmatch(name, f"gradewire_train/{pattern}") for name in archive.namelist())


def test_it_brings_its_licence_and_the_page_of_the_index(metadata: Distribution) -> None:
    assert metadata.metadata["License-Expression"] == "Apache-2.0"
    (licence,) = (path for path in metadata.files or () if path.name == "LICENSE")
    assert licence.read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (TRAIN / "README.md").read_text(encoding="utf-8").strip() in (metadata.read_text("METADATA") or "")


def test_both_have_one_version_and_ask_for_each_other_in_it(installed: Installed, metadata: Distribution) -> None:
    assert metadata.version == installed.metadata.version
    needed = [Requirement(line) for line in metadata.requires or ()]
    assert {each.name for each in needed} == {"gradewire", *HEAVY}
    (gradewire,) = (each for each in needed if each.name == "gradewire")
    assert (gradewire.extras, str(gradewire.specifier)) == ({"server"}, f"=={metadata.version}")
    asked = [Requirement(line) for line in installed.metadata.requires or ()]
    (train,) = (each for each in asked if each.name == "gradewire-train")
    assert (str(train.marker), str(train.specifier)) == ('extra == "train"', f"=={metadata.version}")


def test_without_it_the_commands_say_what_to_install(installed: Installed) -> None:
    for command in (("--help",), ("texts",), ("sfve", "--out", "out")):
        done = installed.run("gradewire", "models", "train", *command, extras=("server",))
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            "Error: the package gradewire-train is not installed. Run: pip install 'gradewire[train]'\n"
        )


def test_byte_code_that_an_older_checkout_left_is_not_the_package(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "gradewire_train" / "cli" / "__pycache__").mkdir(parents=True)
    done = installed.run("gradewire", "models", "train", "--help", extras=("server",), beside=(tmp_path,))
    assert done.returncode == 2
    assert "pip install 'gradewire[train]'" in done.stderr


def test_beside_gradewire_it_is_the_command(installed: Installed, training: Path) -> None:
    done = installed.run("gradewire", "models", "train", "--help", extras=("server",), beside=(training,))
    assert done.returncode == 0, done.stderr
    assert {"sfve", "texts"} <= set(done.stdout.split())


def test_without_what_it_trains_with_the_command_says_what_to_install(
    installed: Installed, training: Path, tmp_path: Path
) -> None:
    command = ("gradewire", "models", "train", "sfve", "--recipe", "sfve-mini", "--out", str(tmp_path / "out"))
    done = installed.run(*command, extras=("server",), beside=(training,))
    assert done.returncode == 2
    assert "pip install 'gradewire[train]'" in done.stderr
    assert not (tmp_path / "out").exists()
