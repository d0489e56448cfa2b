"""The samples of README.md run as they stand, from top to bottom, and print what the page says they print.

Python blocks share their names, as in one session. Shell blocks run with the console scripts of this environment, in a
directory that has the project's `examples/`. `gradewire serve` keeps running until the page ends; it takes a free port,
which the blocks after it get in place of the default one. `pip install` lines are not run: the extras that they name
are looked up.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "README.md"
ADDRESS = "127.0.0.1:50051"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language and its text."""

    language: str
    text: str


class Session:
    """Runs blocks one after the other.

    Args:
        directory: Where shell blocks run.
        environment: Of the shell blocks.
    """

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._names: dict[str, Any] = {}
        self._servers: list[subprocess.Popen[str]] = []
        self._address = ADDRESS
        self.printed = ""

    def run(self, block: Block) -> None:
        """Runs a block; what a Python block prints stands in `printed`."""
        text = block.text.replace(ADDRESS, self._address)
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(PAGE), "exec"), self._names)  # noqa: S102 - the page is ours
            self.printed = out.getvalue()
        elif block.text.strip() == "gradewire serve":
            self._serve(text)
        else:
            self._shell(text)

    def close(self) -> None:
        """Stops the servers."""
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            server.communicate(timeout=60)

    def _serve(self, text: str) -> None:
        server = subprocess.Popen(
            text.split(), cwd=self._directory, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        self._servers.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("gradewire is ready on "), line
        self._address = line.split()[-1]

    def _shell(self, text: str) -> None:
        for extras in re.findall(r"^pip install '?gradewire\[([\w,]+)\]'?$", text, re.MULTILINE):
            assert set(extras.split(",")) <= set(metadata("gradewire").get_all("Provides-Extra", ()))
        commands = re.sub(r"^pip install .*$", "", text, flags=re.MULTILINE)
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", commands],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"


@pytest.fixture
def session(minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    for name in [name for name in os.environ if name.startswith("GRADEWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    monkeypatch.setenv("GRADEWIRE_DISK_DIRECTORY", str(tmp_path / "python"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GRADEWIRE_DISK_DIRECTORY": str(tmp_path / "shell"),
        "GRADEWIRE_PORT": "0",
        "GRADEWIRE_HTTP_PORT": "0",
        "GRADEWIRE_DRAIN_S": "0",
    }
    found = Session(tmp_path, environment)
    yield found
    found.close()


def test_every_sample_runs_and_prints_what_the_page_says(session: Session, tmp_path: Path) -> None:
    blocks = [Block(*found) for found in BLOCK.findall(PAGE.read_text("utf-8"))]
    assert {block.language for block in blocks} == {"sh", "python", "text"}
    for block in blocks:
        if block.language == "text":
            assert session.printed == block.text
        else:
            session.run(block)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "scores.jsonl").read_text().count("\n") == 72
