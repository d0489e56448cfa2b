"""The operator's own prompt files: known by name after the start, or the server says what is wrong and ends."""

import sys
import threading
from importlib.resources import files
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gradewire_proto.v1 import types_pb2
from gradewire_server.app import run
from gradewire_server.backends import open_handlers
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.requests import context
from gradewire_server.requests.context import PromptDirectoryError, open_prompts, read_ahead
from gradewire_server.settings.server import Settings

LAVE = (files("gradewire_server.metrics.prompts") / "lave-2.toml").read_text()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("no prompt")
    (tmp_path / "ours.toml").write_text(LAVE.replace('name = "lave"', 'name = "ours"'))
    return tmp_path


def test_files_are_known_by_name_and_the_packages_own_beside_them(directory: Path) -> None:
    (directory / "same.toml").write_text(LAVE)
    prompts = open_prompts(directory)
    assert prompts.find("lave", "ours/2").title == "ours/2"
    assert [file.title for file in prompts.files()] == [*(file.title for file in PACKAGE_PROMPTS.files()), "ours/2"]


def test_without_a_directory_there_are_those_of_the_package() -> None:
    assert open_prompts(None).files() == PACKAGE_PROMPTS.files()


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("bad.toml", b"format = 1\nname = 5\n", "bad.toml"),
        ("bad.toml", b"\xff\xfe", "bad.toml"),
        ("huge.toml", b"# " + b"x" * 70_000, "huge.toml"),
        ("other.toml", f"{LAVE}\n# changed\n".encode(), "a different lave/2"),
    ],
)
def test_a_bad_file_is_named(directory: Path, name: str, content: bytes, named: str) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(PromptDirectoryError, match=named):
        open_prompts(directory)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptDirectoryError, match=r"judge_prompt_directory: cannot read .*nowhere"):
        open_prompts(tmp_path / "nowhere")


async def test_the_server_knows_them(directory: Path, tmp_path: Path, minilm: Path) -> None:
    settings = Settings.load(
        judge_prompt_directory=directory, disk_directory=tmp_path / "store", model_repository=minilm
    )
    async with open_handlers(settings, CollectorRegistry()) as handlers:
        assert handlers.context.prompts.find("lave", "ours/2").metric == "lave"


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


async def test_what_finds_final_answers_is_imported_on_a_thread_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []

    def import_module(name: str) -> None:
        assert threading.current_thread() is not threading.main_thread()
        imported.append(name)
        monkeypatch.setitem(sys.modules, name, sys)

    monkeypatch.setattr(context, "import_module", import_module)
    monkeypatch.delitem(sys.modules, "gradewire_proto.final_answer.find", raising=False)
    whole = types_pb2.MetricSpec(bleu=types_pb2.BleuParameters(answer=types_pb2.GRADED_ANSWER_WHOLE))
    final = types_pb2.MetricSpec(bleu=types_pb2.BleuParameters(answer=types_pb2.GRADED_ANSWER_FINAL))
    others = types_pb2.MetricSpec(), types_pb2.MetricSpec(lave=types_pb2.LaveParameters())
    await read_ahead(PACKAGE_PROMPTS, (whole, *others))
    assert imported == []
    await read_ahead(PACKAGE_PROMPTS, (final, final))
    assert imported == ["gradewire_proto.final_answer.find"]
