"""Dockerfiles: hadolint is content, and what they copy and set exists. No image is built here: there is no engine."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests.deploy.conftest import DEPLOY, ROOT, hadolint, run
from tests.support.debian.apt import unpacked

from gradewire_models.judges.repository import default_judge_repository
from gradewire_server.lexicon import usual_directory
from gradewire_server.settings.server import Settings

_FILES = sorted((DEPLOY / "docker").glob("Dockerfile*"))


def test_there_is_one_for_cpus_and_one_for_gpus() -> None:
    assert [path.name for path in _FILES] == ["Dockerfile", "Dockerfile.gpu"]


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name)
def test_hadolint_is_content(path: Path) -> None:
    run(hadolint(), "--failure-threshold", "style", str(path))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name)
def test_it_ends_as_a_user_by_number_without_a_shell_and_with_a_health_check(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE)[-1] in {"10001:10001", "1000:1000"}
    assert "HEALTHCHECK" in text
    for line in re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", text, re.MULTILINE):
        assert line.startswith("["), "a shell would swallow signals"
    for default in re.findall(r"^ARG \w+_IMAGE=(.+)$", text, re.MULTILINE):
        assert re.fullmatch(r".+:\d[\w.-]+", default), "a base image without a full version"


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    sent = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    lines = re.findall(r"^COPY (?!--from)(.+)$", (DEPLOY / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    copied = {source for line in lines for source in shlex.split(line)[:-1]}
    assert copied == sent
    assert all((ROOT / source).exists() for source in copied)


def test_the_variables_it_sets_are_settings() -> None:
    names = {f"GRADEWIRE_{name.upper()}" for name in Settings.load().given}
    assert (
        set(re.findall(r"\bGRADEWIRE_(?!IMAGE)[A-Z_]+(?==)", (DEPLOY / "docker" / "Dockerfile").read_text())) <= names
    )


def test_it_can_build_and_run_judges() -> None:
    """What the extra asks for is installed, and where judges lie by default is a place of the image's user."""
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["judge"]
    locked = set(re.findall(r"^([\w-]+)==", (ROOT / "requirements" / "run.lock").read_text(), re.MULTILINE))
    assert {re.split(r"[\[>]", each)[0] for each in extra} - {"gradewire"} <= locked
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    assert '"libgomp1=12.*"' in text, "llama.cpp does not start without it"
    assert "bookworm" in text  # whose gcc is 12
    (models,) = re.findall(r"GRADEWIRE_MODEL_REPOSITORY=(\S+)", text)
    made = re.findall(r"install -d -o 10001 -g 10001 -m 0755 (.+)$", text, re.MULTILINE)[0].split()
    assert {models, str(default_judge_repository(Path(models)))} <= set(made)


def test_wordnets_files_are_where_the_server_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    runtime = text.split(" AS runtime\n")[1].split("\nUSER ")[0]
    (package, pattern) = re.findall(r'install .*"(wordnet-\w+)=(.+)"', runtime)[0]
    assert re.fullmatch(r"1:3\.0-\*", pattern)
    assert not re.findall(r"WNHOME|WNSEARCHDIR|WORDNET_DIRECTORY", text)
    for name in ("WNHOME", "WNSEARCHDIR"):
        monkeypatch.delenv(name, raising=False)
    assert (unpacked(package) / usual_directory().relative_to("/") / "index.noun").is_file()
