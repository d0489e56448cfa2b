"""The command that a summary prints gives the same scores again."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Command, read_rows, write_rows
from tests.cli.scoring.test_corpus import Recorder

from gradewire_cli.group import gradewire

CAPTIONS = [
    {"references": ["a cat on a mat", "the cat sleeps"], "out put": "a cat on the mat"},
    {"references": ["two dogs in the snow"], "out put": "two dogs play in the snow"},
    {"references": ["a red bus"], "out put": "a red car"},
]


def printed(stderr: str) -> list[str]:
    (line,) = [line for line in stderr.splitlines() if line.startswith("reproduce: ")]
    program, *words = shlex.split(line.removeprefix("reproduce: "))
    assert program == "gradewire"
    return words


def in_process(arguments: Sequence[str | Path]) -> Result:
    """With the real engine; cider needs no encoder."""
    done = CliRunner().invoke(gradewire, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done


def test_the_printed_command_gives_the_same_scores_in_this_store_and_in_an_empty_one(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "own captions.txt", CAPTIONS)
    mapped = ("--map", "prediction=out put", "--input-format", "jsonl", "--disk-directory", tmp_path / "store")
    first = in_process(["score", file, "--metrics", "cider", *mapped])
    scores = read_rows(first.stdout)
    assert all(row["scores"]["cider"]["score"] > 0 for row in scores)
    again = printed(first.stderr)
    assert again[-2:] == ["--disk-directory", str(tmp_path / "store")]
    assert read_rows(in_process(again).stdout) == scores
    # Whoever takes the line elsewhere has the file, and no store.
    elsewhere = in_process([*again[:-1], tmp_path / "empty"])
    assert read_rows(elsewhere.stdout) == scores
    assert "3 reference lists" in elsewhere.stderr


def test_the_set_of_another_file_is_not_made_of_this_one(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "prediction": "a"} for row in CAPTIONS]
    stub = Recorder()
    command("score", write_rows(tmp_path / "a.jsonl", rows), "--metrics", "cider", stub=stub)
    (own,) = stub.prepared
    for name, times in ((own.reference_set, 2), (own.reference_set[::-1], 2)):
        line = f"cider/1?corpus=prepared&reference_set={name}"
        assert command("score", tmp_path / "a.jsonl", "--metrics", line, stub=stub).exit_code == 0
        assert len(stub.prepared) == times


@pytest.mark.parametrize("variable", [None, "127.0.0.1:1"])
def test_the_printed_command_names_where_it_was_scored(
    command: Command, tmp_path: Path, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, authority = (
        write_rows(tmp_path / "a.jsonl", [{**row, "prediction": "a"} for row in CAPTIONS]),
        tmp_path / "ca",
    )
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-out", str(authority), "-keyout", str(tmp_path / "key")], check=True, capture_output=True)
    monkeypatch.delitem(os.environ, "GRADEWIRE_SERVER", raising=False)
    if variable:
        monkeypatch.setenv("GRADEWIRE_SERVER", variable)
    done = command("score", file, "--metrics", "bleu", "--embedded")
    assert printed(done.stderr)[4:] == (["--embedded"] if variable else [])
    served = ("--server", "localhost:5", "--tls-ca", authority, "--token", "secret")
    done = command("score", file, "--metrics", "bleu", *served)
    assert printed(done.stderr) == ["score", str(file), "--metrics", "bleu/1", *map(str, served[:4])]
