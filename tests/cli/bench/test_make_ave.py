"""The file that the command makes, with the real WordNet, goes into `gradewire bench ave`."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import answer, read_rows, write_rows
from tests.client.judged_transport import JudgedTransport
from tests.client.test_references_generated import write
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


def made(*arguments: str | Path, stub: StubTransport | None = None) -> Result:
    return CliRunner().invoke(gradewire, ["bench", "make-ave", *map(str, arguments)], obj=stub)


def test_the_file_goes_into_bench_ave(tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "standin.jsonl"
    options = ("--where", "model=fid", "--out", out, "--wordnet", wordnet_files())
    done = made(file, *options)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stderr.split())
    assert "left out 2 rows: the label or a text is missing (first at line 4)" in told
    assert "left out 1 row: the prediction is an exact match of a reference (first at line 3)" in told
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


def test_a_judge_describes_answers_and_templates_do_the_rest(tmp_path: Path) -> None:
    rows = [ROWS[0], {**ROWS[0], "prediction": "odd"}, {**ROWS[0], "id": "9"}]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "samples.jsonl"
    done = made(file, "--out", out, "--wordnet", wordnet_files(), "--describe", stub=JudgedTransport(write))
    assert done.exit_code == 0, done.output
    told = " ".join(done.stderr.split())
    assert "the judge described 1 of 2 answers; templates do the rest (the first is 'odd': UNPARSABLE" in told
    first, odd, again = read_rows(out.read_text())
    assert first["descriptions"][0] == again["descriptions"][0] == "It is surely a frog."
    assert first["description_forms"][0] == "judge"
    assert odd["description_forms"][0] == "plain"
    assert "judge synthetic/1?model=scripted@" in odd["made"]


@pytest.mark.parametrize("options", [("--judge", "j"), ("--prompt", __file__)])
def test_options_of_the_judge_need_describe(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = made(write_rows(tmp_path / "rows.jsonl", ROWS), "--out", tmp_path / "out.jsonl", *options)
    assert done.exit_code == 2
    assert f"{options[0]} needs --describe" in done.stderr


def test_pictures_tell_equal_questions_apart(tmp_path: Path) -> None:
    pictures = [{"image": "1.png"}, {"image": "2.png", "question_id": "q"}, {"image": "data:image/png;base64,AAAA"}]
    rows = [{**ROWS[0], **picture} for picture in pictures]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "samples.jsonl"
    assert made(file, "--out", out, "--wordnet", wordnet_files(), "--quiet").exit_code == 0
    first, second, third = read_rows(out.read_text())
    assert first["image"] == "1.png"
    assert (second["question_id"], second["image"]) == ("q", "2.png")
    assert len(third["question_id"]) == 32
    assert "image" not in third


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
        (ROWS[2:3], (), "has no answer that fits a sample"),
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
