"""No command destroys what it reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2

ROWS = [{"references": "a", "prediction": "b", "label": 1}, {"references": "a", "prediction": "bb", "label": 0}]


def link(kind: str, file: Path, other: Path) -> Path:
    match kind:
        case "same":
            return file
        case "symlink":
            other.symlink_to(file)
        case "hard link":
            os.link(file, other)
    return other


@pytest.mark.parametrize("kind", ["same", "symlink", "hard link"])
@pytest.mark.parametrize("mode", ["--overwrite", "--resume"])
def test_score_does_not_write_over_its_input(command: Command, tmp_path: Path, kind: str, mode: str) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    before = file.read_bytes()
    out = link(kind, file, tmp_path / "b.jsonl")
    done = command("score", file, "--out", out, mode)
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert f"--out: {out} is also the input ({file})" in done.stderr


@pytest.mark.parametrize("kind", ["same", "symlink", "hard link"])
@pytest.mark.parametrize("mode", [(), ("--overwrite",), ("--resume",)])
def test_score_does_not_remove_an_input_that_is_called_like_its_helper(
    command: Command, tmp_path: Path, kind: str, mode: tuple[str, ...]
) -> None:
    name = "out.jsonl.resume" if kind == "same" else "a.jsonl"
    file = write_rows(tmp_path / name, ROWS)
    before = file.read_bytes()
    link(kind, file, tmp_path / "out.jsonl.resume")
    done = command("score", file, "--input-format", "jsonl", "--out", tmp_path / "out.jsonl", *mode)
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert "is also the input" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_score_does_not_write_over_its_standard_input(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    before = file.read_bytes()
    arguments = [sys.executable, "-c", "from gradewire_cli import main; main()", "score", "-", "--overwrite", "--out"]
    with file.open("rb") as stream:
        done = subprocess.run([*arguments, file], stdin=stream, capture_output=True, text=True, check=False)
    assert (done.returncode, file.read_bytes()) == (2, before)
    assert "is also the input (-)" in done.stderr


@pytest.mark.parametrize("kind", ["same", "symlink", "hard link"])
@pytest.mark.parametrize("read", ["a.jsonl", "scores.jsonl"])
def test_agree_does_not_write_over_what_it_reads(command: Command, tmp_path: Path, kind: str, read: str) -> None:
    file, scores = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "scores.jsonl"
    assert command("score", file, "--out", scores, "--quiet").exit_code == 0
    before = (tmp_path / read).read_bytes()
    figures = link(kind, tmp_path / read, tmp_path / "figures.json")
    done = command("agree", file, "--scores", scores, "--resamples", "100", "--json", figures)
    assert (done.exit_code, (tmp_path / read).read_bytes()) == (2, before)
    assert f"--json: {figures} is" in done.stderr


AGREE = ("agree", "a.jsonl", "--metrics", "smile")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("score", "a.jsonl", "--out", "x.csv", "--summary-json", "./x.csv"),
            "--summary-json x.csv: .csv means another format",
        ),
        (("score", "a.jsonl", "--out", "x.json1", "--summary-json", "x.json"), "cannot write .json1"),
        (("score", "a.jsonl", "--out", "none/x.csv"), "--out: folder none does not exist"),
        (("score", "a.jsonl", "--summary-json", "none/x.json"), "--summary-json: folder none does not exist"),
        ((*AGREE, "--csv", "x", "--latex", "./x"), "--csv and --latex both write x. Use different files"),
        ((*AGREE, "--csv", "none/x.csv"), "--csv: folder none does not exist"),
        ((*AGREE, "--csv", "x.xlsx"), "--csv x.xlsx: .xlsx means another format. Use a name that ends in .csv"),
        (
            (*AGREE, "--html", "x.pdf"),
            "--html x.pdf: .pdf means another format. Use a name that ends in .html or .htm",
        ),
        (("bench", "accuracy", "a.jsonl", "--csv", "x.tex"), "--csv x.tex: .tex means another format"),
    ],
)
def test_outputs_are_checked_before_any_row_is_scored(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    def asked(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise AssertionError(request)

    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "a.jsonl", ROWS)
    done = command(*arguments, stub=StubTransport(asked))
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_two_outputs_may_go_to_a_device(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    assert command("agree", file, "--metrics", "smile", "--csv", os.devnull, "--latex", os.devnull).exit_code == 0
