"""The command in the test's process, with a stub in the server's place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from click.testing import CliRunner, Result
from tests.support.syncs import syncs  # noqa: F401 - a fixture

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.group import gradewire
from gradewire_proto.v1 import scoring_pb2, types_pb2

Command = Callable[..., Result]


def length_score(item: types_pb2.Item) -> float | None:
    """A score that tells answers apart: letters of the prediction over 100; None for an empty one."""
    return len(item.prediction) / 100 if item.prediction.strip() else None


def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    return echo_scores(request, score=length_score)


@pytest.fixture
def command() -> Command:
    """Runs `gradewire ARGUMENTS`; `stub` answers instead of `length_score`."""

    def run(*arguments: str | Path, stub: StubTransport | None = None, stdin: BinaryIO | None = None) -> Result:
        transport = stub or StubTransport(answer)
        return CliRunner().invoke(gradewire, list(map(str, arguments)), obj=transport, input=stdin)

    return run


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def figures_of(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str | Path) -> dict[str, Any]:
    """What a command writes with --json over these rows; `command` takes the file as its first argument."""
    file, figures = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "figures.json"
    done = command(file, "--resamples", "100", "--json", figures, *options)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(figures.read_text())
    return document


def read_rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
