"""Several files and patterns are one input, numbered through."""

import csv
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Reading, format_of
from gradewire_cli.rows.input_file import expanded


def write_parts(folder: Path) -> None:
    for name, answers in (("a.jsonl", "xy"), ("b.csv", "z"), ("c.jsonl", "uvw")):
        rows = [{"references": ["r"], "prediction": answer * 3, "model": name[0]} for answer in answers]
        if name.endswith("csv"):
            (folder / name).write_text("references,prediction,model\n" + "r,zzz,b\n")
        else:
            write_rows(folder / name, rows)


def test_rows_are_numbered_over_all_files(command: Command, tmp_path: Path) -> None:
    write_parts(tmp_path)
    done = command("score", tmp_path / "a.jsonl", tmp_path / "b.csv", tmp_path / "c.jsonl")
    assert done.exit_code == 0, done.output
    rows = read_rows(done.stdout)
    assert [(row["index"], row["id"]) for row in rows] == [(i, str(i)) for i in range(6)]
    assert [Path(row["file"]).name for row in rows] == ["a.jsonl"] * 2 + ["b.csv"] + ["c.jsonl"] * 3
    command("score", tmp_path / "a.jsonl", tmp_path / "b.csv", "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as table:
        assert [Path(row["file"]).name for row in csv.DictReader(table)] == ["a.jsonl"] * 2 + ["b.csv"]
    assert "file" not in read_rows(command("score", tmp_path / "a.jsonl").stdout)[0]


def test_a_pattern_is_what_it_matches_in_order(command: Command, tmp_path: Path) -> None:
    write_parts(tmp_path)
    named = command("score", tmp_path / "a.jsonl", tmp_path / "c.jsonl", "--quiet")
    assert command("score", tmp_path / "*.jsonl", "--quiet").stdout == named.stdout
    with pytest.raises(InputError, match="matches no file"):
        expanded([str(tmp_path / "*.tsv")])
    with pytest.raises(InputError, match="is named twice"):
        expanded([str(tmp_path / "a.jsonl"), str(tmp_path / "a.*")])
    with pytest.raises(InputError, match="cannot be read together with other files"):
        expanded(["-", str(tmp_path / "a.jsonl")])


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "run[1].jsonl", [])
    assert expanded([str(path)]) == (str(path),)


def test_a_row_that_cannot_be_read_names_its_file(command: Command, tmp_path: Path) -> None:
    write_parts(tmp_path)
    (tmp_path / "c.jsonl").write_text("{\n")
    done = command("score", tmp_path / "a.jsonl", tmp_path / "c.jsonl", "--fail-on", "never")
    bad = read_rows(done.stdout)[-1]
    assert bad["index"] == 2
    assert bad["scores"]["smile"]["message"].startswith(f"{tmp_path / 'c.jsonl'} line 1 is not JSON")


def test_every_file_needs_its_columns(command: Command, tmp_path: Path) -> None:
    write_parts(tmp_path)
    write_rows(tmp_path / "c.jsonl", [{"references": ["r"], "said": "x"}])
    done = command("score", tmp_path / "a.jsonl", tmp_path / "c.jsonl")
    assert done.exit_code == 2
    assert f"{tmp_path / 'c.jsonl'}: no column for prediction" in done.stderr
    assert not done.stdout


def test_a_run_over_several_files_is_taken_up(command: Command, tmp_path: Path) -> None:
    write_parts(tmp_path)
    files = [tmp_path / "a.jsonl", tmp_path / "b.csv", tmp_path / "c.jsonl"]
    out = tmp_path / "out.jsonl"
    assert command("score", *files, "--out", out).exit_code == 0
    whole = out.read_bytes()
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    assert command("score", *files, "--out", out, "--resume").exit_code == 0
    assert out.read_bytes() == whole


def test_the_reproducing_line_has_all_options(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("answers|prediction|label\nä;b|None|good\n".encode("cp1252"))
    options = ["--input-format", "csv", "--encoding", "cp1252", "--delimiter", "|", "--reference-separator", ";"]
    options += ["--missing", "NA", "--label-map", "good=1"]
    done = command("score", path, *options)
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stderr.splitlines() if "gradewire score" in line)
    for option, value in zip(options[::2], options[1::2], strict=True):
        assert f"{option} {value}" in line.replace("'", "")


def test_formats_by_suffix() -> None:
    for name, format_ in {"a.CSV.GZ": "csv", "a.tsv": "tsv", "a.feather": "arrow", "a.ndjson.gz": "jsonl"}.items():
        assert format_of(name, Reading().format) == format_
    with pytest.raises(InputError, match="unpack the file"):
        format_of("a.parquet.gz", None)


@pytest.mark.parametrize(("given", "sign"), [("tab", "\t"), ("\\t", "\t"), (";", ";")])
def test_a_delimiter_is_given_as_people_write_it(given: str, sign: str, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"references{sign}prediction\na,b{sign}c,d\n")
    done = command("score", path, "--delimiter", given)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["scores"]["smile"]["status"] == "OK"
    assert command("score", path, "--delimiter", "ab").exit_code == 2
