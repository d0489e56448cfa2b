"""Runs `gradewire compare` over rows that a test writes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.conftest import Command, write_rows

Rows = list[dict[str, Any]]


def rows(*answers: str, **more: Any) -> Rows:
    """A row for each answer; its score is its number of letters over 100."""
    return [
        {"id": f"q{number}", "question": f"question {number}?", "references": ["cat"], "prediction": text, **more}
        for number, text in enumerate(answers)
    ]


def letters(*counts: int, **more: Any) -> Rows:
    """Rows with answers of so many letters."""
    return rows(*("x" * count for count in counts), **more)


@pytest.fixture
def compare(command: Command, tmp_path: Path) -> Callable[..., Result]:
    """Writes each list of rows to base.jsonl, new.jsonl, … and compares these files."""

    def run(*files: Rows, options: tuple[str | Path, ...] = (), **how: Any) -> Result:
        names = ("base", "new", "third", "fourth")
        paths = [write_rows(tmp_path / f"{name}.jsonl", file) for name, file in zip(names, files, strict=False)]
        return command("compare", *paths, "--quiet", *options, **how)

    return run


@pytest.fixture
def figures(compare: Callable[..., Result], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """What a run writes with --json; it has to end with code 0."""

    def run(*files: Rows, options: tuple[str | Path, ...] = (), **how: Any) -> dict[str, Any]:
        done = compare(*files, options=("--json", tmp_path / "figures.json", "--resamples", "100", *options), **how)
        assert done.exit_code == 0, done.output
        document: dict[str, Any] = json.loads((tmp_path / "figures.json").read_text())
        return document

    return run
