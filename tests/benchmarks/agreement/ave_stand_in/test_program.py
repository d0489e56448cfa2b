"""The program: the file it makes, with the real WordNet, goes into `gradewire bench ave`."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.agreement.ave_stand_in.__main__ import main
from click.testing import CliRunner, Result
from tests.cli.conftest import answer, read_rows, write_rows
from tests.support.debian.wordnet import wordnet_files

from gradewire.testing import StubTransport
from gradewire_cli.group import gradewire

ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "which animal lives in the desert",
        "references": ["lizard", "United Kingdom"],
        "prediction": "a frog",
        "label": 0,
        "dataset": "nq",
        "model": "fid",
    },
    {"id": "2", "question": "who ran", "references": ["Jane Doe"], "prediction": "Doe", "label": 1, "model": "fid"},
    {
        "id": "3",
        "question": "who ran",
        "references": ["Jane Doe"],
        "prediction": "jane doe.",
        "label": 1,
        "model": "fid",
    },
    {"id": "4", "question": "who ran", "references": ["Jane Doe"], "prediction": "It was her", "model": "fid"},
    {
        "id": "5",
        "question": "who ran",
        "references": ["Jane Doe", None],
        "prediction": "Doe",
        "label": 1,
        "model": "fid",
    },
    {"id": "6", "question": "who ran", "references": ["Jane Doe"], "prediction": "Joe", "label": 0, "model": "gpt"},
]


def made(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_the_file_goes_into_bench_ave(tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "standin.jsonl"
    options = ("--where", "model=fid", "--out", out, "--wordnet", wordnet_files())
    done = made(file, *options)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stderr.split())
    assert "2 rows were skipped because the label or a text is missing (first: line 4)" in told
    assert "1 rows were skipped: the prediction is an exact match of a reference" in told
    assert "2 samples written" in told
    first, second = read_rows(out.read_text())
    assert first["shifted_references"][0] == "lizards"
    # Of the one sense that WordNet has for it.
    assert first["shifts"][1] == "synonym"
    assert first["shifted_references"][1] in {"UK", "U.K.", "Britain", "Great Britain"}
    assert (second["shifted_references"], second["shifts"]) == (["Doe, Jane"], ["name order"])
    again = tmp_path / "again.jsonl"
    made(file, "--where", "model=fid", "--out", again, "--wordnet", wordnet_files())
    assert again.read_bytes() == out.read_bytes()
    figures = CliRunner().invoke(
        gradewire, ["bench", "ave", str(out), "--metrics", "sbert", "--quiet"], obj=StubTransport(answer)
    )
    assert figures.exit_code == 0, figures.output


def test_wordnets_files_are_those_of_the_servers_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "standin.jsonl"
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", str(wordnet_files()))
    done = made(file, "--out", out)
    assert done.exit_code == 0, done.output
    monkeypatch.setenv("GRADEWIRE_WORDNET_DIRECTORY", str(tmp_path))
    assert f"cannot read WordNet's files in {tmp_path}" in " ".join(made(file, "--out", out).stderr.split())


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], (), "has no rows"),
        (ROWS[2:3], (), "has no row that fits a stand-in"),
        ([{"prediction": "x", "label": 1}], (), "no column for references"),
        (ROWS, ("--max-words", "0"), "max-words"),
        (ROWS, ("--wordnet", "."), "cannot read WordNet's files in ."),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, rows: list[dict[str, Any]], options: tuple[str, ...], message: str
) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "standin.jsonl"
    done = made(file, "--out", out, "--wordnet", wordnet_files(), *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not out.exists()


def test_the_input_is_not_written_over(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", ROWS)
    assert made(file, "--out", file, "--wordnet", wordnet_files()).exit_code == 2
    assert len(read_rows(file.read_text())) == 6
