"""The operator's own prompt files: known by name after the start, or the server says what is wrong and ends."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.app import open_dataplane, run
from gradewire_server.metrics.judged.prompts import PROMPTS
from gradewire_server.requests.prompts.directory import PromptDirectoryError, add_prompts
from gradewire_server.settings.server import Settings

LAVE = (files("gradewire_server.metrics.judged.prompts") / "lave-1.toml").read_text()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    known = dict(PROMPTS._files)
    (tmp_path / "notes.txt").write_text("no prompt")
    (tmp_path / "ours.toml").write_text(LAVE.replace('name = "lave"', 'name = "ours"'))
    yield tmp_path
    PROMPTS._files.clear()
    PROMPTS._files.update(known)


def test_files_are_known_by_name_and_reading_them_twice_changes_nothing(directory: Path) -> None:
    add_prompts(directory)
    add_prompts(directory)
    assert PROMPTS.find("lave", "ours/1").title == "ours/1"


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("bad.toml", b"format = 1\nname = 5\n", "bad.toml"),
        ("bad.toml", b"\xff\xfe", "bad.toml"),
        ("huge.toml", b"# " + b"x" * 70_000, "huge.toml"),
        ("other.toml", f"{LAVE}\n# changed\n".encode(), "another lave/1"),
    ],
)
def test_a_bad_file_is_named(directory: Path, name: str, content: bytes, named: str) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(PromptDirectoryError, match=named):
        add_prompts(directory)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptDirectoryError, match=r"judge_prompt_directory: cannot read .*nowhere"):
        add_prompts(tmp_path / "nowhere")


async def test_the_server_knows_them(directory: Path, tmp_path: Path, minilm: Path) -> None:
    settings = Settings.load(
        judge_prompt_directory=directory, disk_directory=tmp_path / "store", model_repository=minilm
    )
    async with open_dataplane(settings, CollectorRegistry()):
        assert PROMPTS.find("lave", "ours/1").metric == "lave"


def test_a_server_with_a_bad_file_does_not_start(directory: Path, tmp_path: Path, minilm: Path) -> None:
    (directory / "bad.toml").write_text("format = 7")
    settings = Settings.load(
        judge_prompt_directory=directory,
        disk_directory=tmp_path / "store",
        model_repository=minilm,
        port=0,
        http_port=0,
    )
    assert run(settings) == 1
