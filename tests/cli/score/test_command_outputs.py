"""What `gradewire score` writes: standard output, JSONL, tables, kept columns, the summary as JSON."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, answer, read_rows, write_rows

from gradewire.errors import ServerFault
from gradewire.testing import StubTransport
from gradewire_proto.v1 import models_pb2, scoring_pb2, types_pb2

ROWS = [
    {"id": f"q{index}", "references": ["r"], "prediction": "x" * index, "model": "big", "split": [index, 2]}
    for index in range(5)
]


def without_lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row["scores"]["smile"].items() if key != "line"} for row in rows]


@pytest.mark.parametrize("target", ["-", "out.jsonl"])
def test_the_line_stands_once(target: str, command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / target if target != "-" else "-"
    done = command("score", file, "--metrics", "smile,exact_match", "--out", out)
    assert done.exit_code == 0, done.output
    rows = read_rows(done.stdout if target == "-" else (tmp_path / target).read_text())
    assert [row["scores"]["exact_match"].get("line") for row in rows] == ["exact_match/1", *[None] * 4]
    assert rows[0]["scores"]["smile"]["line"].startswith("smile/1?")
    assert len(without_lines(rows)) == 5
    if target == "-":
        assert not (tmp_path / "-").exists()


def test_a_run_that_is_taken_up_has_the_line_once_too(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("score", file, "--out", out).exit_code == 0
    whole = out.read_bytes()
    for kept in range(5):
        out.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
        assert command("score", file, "--out", out, "--resume").exit_code == 0
        assert out.read_bytes() == whole, kept


def test_a_first_row_that_is_scored_again_keeps_the_lines_of_the_others(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("score", file, "--out", out).exit_code == 0
    whole = out.read_bytes()
    first, rest = whole.split(b"\n", 1)
    row = json.loads(first)
    row["scores"]["smile"] |= {"score": None, "status": "TIMEOUT"}
    out.write_bytes(json.dumps(row).encode() + b"\n" + rest)

    # It goes away again while the good rows wait beside the file: these still say what they were scored by.
    def away(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if request.items:
            raise ServerFault("gone")
        return answer(request)

    command("score", file, "--out", out, "--resume", stub=StubTransport(away))
    done = command("score", file, "--out", out, "--resume", "--metrics", "smile:fast")
    assert done.exit_code == 2
    assert command("score", file, "--out", out, "--resume").exit_code == 0
    assert out.read_bytes() == whole


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_table_has_what_the_rows_have(suffix: str, command: Command, tmp_path: Path) -> None:
    rows = [*ROWS, {"id": "bad", "references": ["r"], "model": "big", "split": None}]
    file, lines, out = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl", tmp_path / f"out{suffix}"
    options = ("--metrics", "smile,exact_match", "--fail-on", "never", "--keep-columns", "model,split")
    assert command("score", file, "--out", lines, *options).exit_code == 0
    done = command("score", file, "--out", out, *options)
    assert done.exit_code == 0, done.output
    manifests = {"out.jsonl.manifest.json", f"out{suffix}.manifest.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "out.jsonl", f"out{suffix}", *manifests}
    expected = read_rows(lines.read_text())
    if suffix == ".parquet":
        table = parquet.read_table(out).to_pylist()
        assert [row["split"] for row in table] == [row["input"]["split"] for row in expected]
    else:
        with out.open(newline="") as stream:
            table = list(csv.DictReader(stream, delimiter="," if suffix == ".csv" else "\t"))
        assert [row["split"] for row in table[:2]] == ["[0, 2]", "[1, 2]"]
    assert [row["id"] for row in table] == [row["id"] for row in expected]
    assert [row["model"] for row in table] == ["big"] * 6
    for cells, row in zip(table, expected, strict=True):
        score = row["scores"]["smile"]["score"]
        assert (float(cells["smile.score"]) if cells["smile.score"] not in {"", None} else None) == score
        assert cells["smile.status"] == row["scores"]["smile"]["status"]
    assert [bool(cells["exact_match.line"]) for cells in table] == [True, *[False] * 5]
    frame = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep="," if suffix == ".csv" else "\t")
    assert frame["smile.score"].sum() == pytest.approx(0.1)
    assert "no prediction" in frame["smile.message"].iloc[-1]


def test_a_table_that_broke_off_is_taken_up(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.parquet"
    assert command("score", file, "--out", tmp_path / "out.jsonl").exit_code == 0
    part = tmp_path / "out.parquet.part.jsonl"
    part.write_bytes(b"".join((tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)[:2]))
    done = command("score", file, "--out", out)
    assert (done.exit_code, "exists. Use --resume" in done.stderr) == (2, True)
    assert command("score", file, "--out", out, "--resume").exit_code == 0
    assert parquet.read_table(out).num_rows == 5
    assert not part.exists()
    assert command("score", file, "--out", out).exit_code == 2
    assert command("score", file, "--out", out, "--overwrite").exit_code == 0


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_finished_output_is_not_scored_again(suffix: str, command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / f"out{suffix}"
    arguments = ("score", file, "--out", out, "--keep-columns", "model", "--resume")
    assert command(*arguments).exit_code == 0
    whole = out.read_bytes()

    def unasked(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        assert not request.items
        return answer(request)

    assert command(*arguments, stub=StubTransport(unasked)).exit_code == 0
    assert command(*arguments, "--fail-on", "no-score", stub=StubTransport(unasked)).exit_code == 1
    assert out.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", f"out{suffix}", f"out{suffix}.manifest.json"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_finished_table_of_something_else_is_refused(suffix: str, command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / f"out{suffix}"
    assert command("score", file, "--out", out).exit_code == 0
    whole = out.read_bytes()

    def refused(*options: str | Path) -> str:
        done = command("score", file, "--out", out, "--resume", *options)
        assert (done.exit_code, out.read_bytes()) == (2, whole), done.stderr
        return done.stderr

    assert "has the metrics smile, but this run computes exact_match" in refused("--metrics", "exact_match")
    assert "is complete, so this run scores nothing to summarize" in refused("--summary-json", tmp_path / "s.json")
    for rows in ([*ROWS, ROWS[0]], ROWS[:4], [ROWS[0], {**ROWS[1], "prediction": "new"}, *ROWS[2:]]):
        write_rows(file, rows)
        assert "does not match the input. The input has changed" in refused()
    out.write_bytes(whole := b"\xff no table")
    assert "is not a table from gradewire score" in refused()


def test_rows_without_an_answer_are_scored_again_into_the_table(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.csv"

    def late(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for item in reply.items:
            for result in item.results:
                result.ClearField("score")
                result.status = types_pb2.STATUS_TIMEOUT
        return reply

    first = command("score", file, "--out", out, "--fail-on", "never", stub=StubTransport(late))
    assert "kept " in first.stderr, first.output
    with out.open(newline="") as table:
        assert "TIMEOUT" in {row["smile.status"] for row in csv.DictReader(table)}
    again = command("score", file, "--out", out, "--resume")
    assert again.exit_code == 0, again.output
    with out.open(newline="") as table:
        assert "TIMEOUT" not in {row["smile.status"] for row in csv.DictReader(table)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out.csv", "out.csv.manifest.json"]


def test_columns_are_kept_in_rows_and_change_what_a_row_is(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    assert command("score", file, "--out", out, "--keep-columns", "all").exit_code == 0
    assert [row["input"] for row in read_rows(out.read_text())] == ROWS
    done = command("score", file, "--out", out, "--keep-columns", "model", "--resume")
    assert done.exit_code == 2
    done = command("score", file, "--keep-columns", "modle")
    assert (done.exit_code, "no column 'modle'" in done.stderr, done.stdout) == (2, True, "")


def test_columns_of_the_input_take_no_place_of_the_output(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "index": "mine", "smile.score": 7} for row in ROWS]
    file, out = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "out.parquet"
    assert command("score", file, "--out", out, "--keep-columns", "index,smile.score,model").exit_code == 0
    table = parquet.read_table(out).to_pylist()
    assert [row["index"] for row in table] == list(range(5))
    assert [row["input.index"] for row in table] == ["mine"] * 5
    assert [row["input.smile.score"] for row in table] == [7] * 5
    assert [row["smile.score"] for row in table] == [None, 0.01, 0.02, 0.03, 0.04]


def test_a_run_is_taken_up_with_the_columns_that_it_kept(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{**row, "model": "m", "split": "s"} for row in ROWS])
    out = tmp_path / "out.jsonl"
    for before, after in (("model", None), (None, "model"), ("model", "model,split")):
        kept, keeps = (["--keep-columns", columns] if columns else [] for columns in (before, after))
        assert command("score", file, "--out", out, "--overwrite", *kept).exit_code == 0
        whole = out.read_bytes()
        out.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
        refused = command("score", file, "--out", out, "--resume", *keeps)
        said = f"({before or 'none'}) differ from --keep-columns ({after or 'none'})"
        said = said.replace(",", ", ")
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
        assert command("score", file, "--out", out, "--resume", *kept).exit_code == 0
        assert out.read_bytes() == whole


def test_a_line_that_broke_or_was_mended_changes_no_columns(command: Command, tmp_path: Path) -> None:
    keeps = ("--keep-columns", "model", "--fail-on", "never")
    file, out = write_rows(tmp_path / "a.jsonl", [{**row, "model": "m"} for row in ROWS]), tmp_path / "out.jsonl"
    whole = file.read_bytes()
    first, second, *others = whole.splitlines(keepends=True)
    broken = b"".join([first, second[:20] + b"\n", *others])
    for before, after in ((broken, whole), (whole, broken)):
        file.write_bytes(before)
        assert command("score", file, "--out", out, "--overwrite", *keeps).exit_code == 0
        file.write_bytes(after)
        done = command("score", file, "--out", out, "--resume", *keeps)
        assert done.exit_code == 0, done.stderr
        resumed = read_rows(out.read_text())
        assert command("score", file, "--out", out, "--overwrite", *keeps).exit_code == 0
        assert resumed == read_rows(out.read_text())


def test_the_summary_as_json(command: Command, tmp_path: Path) -> None:
    rows = [*ROWS, {"id": "bad", "references": "r | s"}]
    file, summary = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "summary.json"
    done = command("score", file, "--quiet", "--summary-json", summary, "--metrics", "smile,exact_match")
    assert done.exit_code == 1
    document = json.loads(summary.read_text())
    assert (document["rows"], document["failed_rows"], document["unscored_rows"]) == (6, 1, 2)
    smile = document["metrics"]["smile"]
    assert smile["mean"] == pytest.approx(0.025)
    assert smile["statuses"] == {"OK": 4, "EMPTY_PREDICTION": 1, "INVALID_INPUT": 1}
    assert smile["interval_95"][0] < smile["mean"] < smile["interval_95"][1]
    assert smile["line"].startswith("smile/1?")
    assert document["run"]["command"].startswith("gradewire score")
    (note,) = document["run"]["notes"]
    assert note in done.stderr
    assert "--reference-separator '|'" in note
    assert command("score", file, "--summary-json", file).exit_code == 2


LISTED = models_pb2.ListModelsResponse(
    models=[
        models_pb2.Model(name="tiny", kind="encoder"),
        models_pb2.Model(name="strict", kind="grader"),
        models_pb2.Model(name="good", kind="judge"),
    ]
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["score", "--out", "out.xlsx"],
            "--out out.xlsx: cannot write .xlsx files. Use .jsonl, .csv, .tsv or .parquet",
        ),
        (["score", "--out", "out.json"], "cannot write .json"),
        (["score", "--model", "tinny"], "unknown encoder tinny. Choose one of tiny"),
        (["score", "--metrics", "smile?model=tinny@0123"], "unknown encoder tinny"),
        (["score", "--metrics", "grader?model=tiny"], "unknown grader tiny. Choose one of strict"),
        (["score", "--metrics", "correctness?grader=lax@01234567"], "unknown grader lax"),
        (["score", "--metrics", "smile?model=strict"], "unknown encoder strict. Choose one of tiny"),
        (["score", "--metrics", "lave", "--judge", "tiny"], "unknown judge tiny. Choose one of good"),
        (["agree", "--compare", "smile", "sbert"], "--compare sbert: no such metric. Choose one of smile"),
        (["bench", "accuracy", "--cut", "bleu=0.5"], "--cut bleu: no such metric"),
        (["agree", "--map", "label=model"], "the first labels are all unreadable (line 1: 'big')"),
    ],
)
def test_what_can_be_checked_is_checked_before_anything_is_scored(
    arguments: list[str], said: str, command: Command, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{**row, "label": 1} for row in ROWS])
    asked: list[int] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        asked.append(len(request.items))
        return answer(request)

    place = 2 if arguments[0] == "bench" else 1
    done = command(*arguments[:place], file, *arguments[place:], stub=StubTransport(score, models=LISTED))
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert sum(asked) == 0
