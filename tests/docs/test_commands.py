"""What pages tell readers to type: every command is understood, and those that are soon done are run as written.

A command is read by the real command line with all its choices and types, and stopped before it does anything. Then
the pages' commands run from top to bottom, each page in a directory with small files of the names that it uses, against
a real server where a page has started one. What is not run stands in NOT_RUN with the reason.
"""

import argparse
import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from benchmarks.data.__main__ import main as data
from click.testing import CliRunner, Result
from tests.docs.documented_commands import COMMANDS, PAGES, ROOT, Documented, documented_in
from tests.docs.sample_files import write_samples
from tests.support.debian.wordnet import wordnet_files
from tests.support.servers.server_process import ServerProcess

from gradewire_cli.group import gradewire
from gradewire_proto.exit_codes import ExitCode

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# The first pattern that is found in a command says why it is not run.
NOT_RUN = {
    r"^make ": "installs, downloads or measures for minutes",
    r"^benchmarks\.(?!data list)": "needs all labelled rows, and measures for minutes",
    r"^gradewire models (build|export|train|verify)": "downloads, or computes for minutes",
    r"^gradewire bench load": "puts a load on a server for minutes",
    r"^gradewire (gateway|label)": "goes on until it is stopped",
    r"^gradewire bulk": "starts Ray, which is in an environment of its own (tests_bulk)",
    r"^gradewire triton": "installs and starts Triton",
    r"--(metrics|against) \S*\b(lave|judge_\w+)(?!.*--dry-run)": "asks a judge of gigabytes",
    r"--by \S*\bcompare\b": "asks a judge of gigabytes",
    r"--metrics? '?auto": "asks a judge of gigabytes, or fits it",
    r"--generate|--synthetic prepared": "asks a judge of gigabytes",
    r"sfve-mini|model=(mine|my-sfve|my-grader)": "needs a model that is trained or built first",
    r"grader=grader-(mini|base)|model=grader-(start|base)": "needs a grader that is built first",
    r"\bdrawn\.jsonl": "reads rows that a command before it draws, with a grader that is built first",
    r"--cut sbert=0\.295|--metric correctness": "fits over thousands of rows",
}


class _Parsed(BaseException):
    """Raised in the place of what a command would do."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the sample files; a page gets a copy."""
    found = tmp_path_factory.mktemp("samples")
    write_samples(found)
    return found


def stop(*_: Any, **__: Any) -> NoReturn:
    raise _Parsed


def parse(command: Documented, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a program read its arguments; raises what the program raises where it does not understand them."""
    program, *arguments = command.words
    invoke = click.Command.invoke
    monkeypatch.setattr(
        click.Command, "invoke", lambda self, ctx: invoke(self, ctx) if isinstance(self, click.Group) else stop()
    )
    if program == "gradewire":
        with pytest.raises(_Parsed):
            gradewire.main(arguments, prog_name="gradewire", standalone_mode=False)
        return
    path = ROOT / program.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    understood = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", lambda self: stop(understood(self)))
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(_Parsed):
        runpy.run_path(str(file), run_name="__main__")


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.words[0] != "make"], ids=str)
def test_a_command_is_understood(command: Documented, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    for own in ("mine.toml", "own.toml"):
        (directory / own).touch()
    try:
        parse(command, monkeypatch)
    except (click.ClickException, SystemExit) as error:
        told = error.format_message() if isinstance(error, click.ClickException) else "see its usage above"
        pytest.fail(f"{command}\n{told}")
    finally:
        (directory / "own.toml").unlink()  # a page writes it itself


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.words[0] == "make"], ids=str)
def test_a_target_and_its_variables_stand_in_the_makefile(command: Documented) -> None:
    for word in command.words[1:]:
        name, assigned, _ = word.partition("=")
        pattern = rf"\$\((or \$\(|if \$\()?{name}\b" if assigned else rf"^{re.escape(name)}:"
        assert re.search(pattern, MAKEFILE, re.MULTILINE), f"{command}: {word}"


def test_examples_of_helps_are_understood(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    found = list(_examples(gradewire, click.Context(gradewire)))
    assert len(found) > 20
    for command in found:
        with monkeypatch.context() as patch:
            (directory / "mine.toml").touch()
            try:
                parse(command, patch)
            except click.UsageError as error:
                if "does not exist" not in error.format_message():  # their files are any reader's
                    pytest.fail(f"{command}: {error.format_message()}")


def _examples(group: click.Group, context: click.Context) -> Iterator[Documented]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        for line in (getattr(command, "examples", "") or command.epilog or "").replace("\\\n", " ").split("\n"):
            text = re.split(r"\s{3,}", line.strip())[0]
            if text.startswith("gradewire "):
                yield from _read_line(text)
        if isinstance(command, click.Group):
            yield from _examples(command, context)


def _read_line(text: str) -> Iterator[Documented]:
    words = shlex.split(text)
    end = next((place for place, word in enumerate(words) if word in {"|", ">"}), len(words))
    yield Documented(ROOT / "help", 0, tuple(words[:end]))


def why_not_run(command: Documented) -> str:
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, command.text)), "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    """Stands for the one that pages start with `gradewire serve`."""
    with ServerProcess(tmp_path_factory.mktemp("server"), model_repository=minilm, judge_backend="none") as process:
        yield process


@pytest.fixture
def run_page(
    tmp_path: Path, directory: Path, minilm: Path, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Documented], Result]:
    """Runs commands of one page in a directory of its own, over a copy of the built model."""
    shutil.copytree(directory, tmp_path / "page")
    repository = tmp_path / "models"
    # Hard links: what a fit writes takes a file's place.
    shutil.copytree(minilm / "all-MiniLM-L6-v2", repository / "all-MiniLM-L6-v2", copy_function=os.link)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(repository))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", str(wordnet_files()))
    monkeypatch.chdir(tmp_path / "page")
    taken: dict[str, str] = {}

    def run(command: Documented) -> Result:
        words = [re.sub(r"^\$(\w+)$", lambda name: taken[name[1]], word) for word in command.words[1:]]
        words = [word.replace("127.0.0.1:50051", server.address).replace("HOST:PORT", server.address) for word in words]
        # One model in memory is enough; who asks for the engine in the process gets it.
        here = words[0] in {"calibrate", "models", "prompt", "serve"} or {"--server", "--judge-url"} & {*words}
        monkeypatch.setenv("GRADEWIRE_SERVER", "" if here else server.address)
        if words[0] == "serve":
            words.append("--print-settings")
        done = CliRunner().invoke(gradewire if command.words[0] == "gradewire" else data, words)
        if command.target:
            Path(command.target).write_text(done.stdout)
        if command.taken:
            taken[command.taken] = done.stdout.strip().splitlines()[-1]
        return done

    return run


RUN = {page: [each for each in documented_in(page) if not why_not_run(each)] for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if RUN[page]], ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(page: Path, run_page: Callable[[Documented], Result]) -> None:
    for command in RUN[page]:
        done = run_page(command)
        # The pages' few rows seldom prove that a fit is better, and then it is refused.
        allowed = {ExitCode.DONE, *([ExitCode.NOT_BETTER] if command.words[1] == "calibrate" else [])}
        assert done.exit_code in allowed, f"{command}\n{done.output[-2000:]}"


def test_what_is_not_run_has_a_reason_and_most_is_run() -> None:
    used = {pattern for command in COMMANDS for pattern in NOT_RUN if re.search(pattern, command.text)}
    assert set(NOT_RUN) == used, "a reason that no command has any more"
    assert sum(map(len, RUN.values())) > 40
