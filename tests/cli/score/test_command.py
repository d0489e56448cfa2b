import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, answer, read_rows, write_rows

from gradewire import DeadlineExceeded, InvalidRequest, NotReady, Overloaded, ServerUnreachable
from gradewire.testing import StubTransport
from gradewire_cli.results.resumable_output import read_results
from gradewire_proto.v1 import scoring_pb2

ROWS = [{"id": f"row {index}", "references": ["a"], "prediction": "x" * (index % 7 + 1)} for index in range(500)]


def without_timing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in ("id", "index", "scores")} for row in rows]


def test_rows_come_in_the_order_of_the_file(command: Command, tmp_path: Path) -> None:
    done = command("score", write_rows(tmp_path / "a.jsonl", ROWS), "--metrics", "smile,exact_match")
    rows = read_rows(done.stdout)
    assert done.exit_code == 0
    assert [(row["id"], row["index"]) for row in rows] == [(row["id"], index) for index, row in enumerate(ROWS)]
    assert [row["scores"]["smile"]["score"] for row in rows] == [len(row["prediction"]) / 100 for row in ROWS]
    assert rows[0]["scores"]["exact_match"] == {"score": 0.01, "status": "OK", "line": "exact_match/1"}
    assert "500 rows" in done.stderr
    line = rows[0]["scores"]["smile"]["line"]
    assert f"--metrics '{line},exact_match/1'" in done.stderr, "what gives the same scores again"


def test_out_and_stdout_hold_the_same_rows(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    out = tmp_path / "out.jsonl"
    done = command("score", file, "--out", out, "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert out.read_text() == command("score", file).stdout


def test_parquet_from_standard_input_is_refused(command: Command) -> None:
    done = command("score", "-", "--input-format", "parquet")
    assert done.exit_code == 2
    assert "Name the file" in done.stderr


def test_bad_rows_fail_alone_with_their_line(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"references": "a", "prediction": "xx"}\n{broken\n{"references": "a"}\n'
        '{"references": "a", "prediction": "\\ud800"}\n{"references": [["a"]], "prediction": "x"}\n'
        '{"references": "a", "prediction": ""}\n{"references": "a", "prediction": "xxx"}\n'
    )
    done = command("score", file)
    results = [row["scores"]["smile"] for row in read_rows(done.stdout)]
    assert done.exit_code == 1
    assert [result["status"] for result in results] == [
        "OK",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "EMPTY_PREDICTION",
        "OK",
    ]
    assert results[1]["message"].startswith("line 2 is not JSON")
    assert results[2]["message"].startswith("line 3 has no prediction")
    assert results[3]["message"].startswith("line 4.prediction has a lone surrogate")
    assert results[4]["message"].startswith("line 5.references[0] is a list")
    assert [result["score"] for result in results if result["status"] != "OK"] == [None] * 5
    assert "1 EMPTY_PREDICTION, 4 INVALID_INPUT" in done.stderr
    assert "INVALID_INPUT, for example id 1: line 2 is not JSON" in done.stderr
    # Mean of .02 and .03; with the empty prediction as wrong, over three.
    assert "0.025" in done.stderr
    assert "0.017" in done.stderr


def test_the_name_of_a_file_is_told_as_it_is(command: Command, tmp_path: Path) -> None:
    files = [tmp_path / name for name in (r"a\g<0>.jsonl", r"b\x.jsonl")]
    for file in files:
        file.write_text('{"references": "a", "prediction": "\\ud800"}\n')
    results = [row["scores"]["smile"] for row in read_rows(command("score", *files, "--quiet").stdout)]
    for file, result in zip(files, results, strict=True):
        assert result["message"].startswith(f"{file} line 1.prediction has a lone surrogate")


def test_no_number_is_no_answer_in_any_format(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"references": ["a"], "prediction": NaN}\n{"references": ["a"], "prediction": -Infinity}\n'
        '{"references": ["a"], "prediction": 1e400}\n{"references": NaN, "prediction": "b"}\n'
        '{"references": ["a", NaN], "prediction": "b"}\n{"references": ["a"], "prediction": "nan"}\n'
    )
    (tmp_path / "a.json").write_text('[{"references": "a", "prediction": NaN}, {"references": "a", "prediction": 1}]')
    (tmp_path / "a.csv").write_text("references,prediction\na,nan\na,NaN\nnan,b\n[NaN],b\na,1\n")
    table = {"references": ["a"] * 4, "prediction": [math.nan, math.inf, None, 1.5]}
    parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    found = {}
    for suffix in ("jsonl", "json", "csv", "parquet"):
        done = command("score", tmp_path / f"a.{suffix}", "--quiet")
        results = [row["scores"]["smile"] for row in read_rows(done.stdout)]
        # The last row of each file is a good one.
        assert results.pop()["status"] == "OK"
        assert {result["status"] for result in results} <= {"INVALID_INPUT", "EMPTY_PREDICTION"}, suffix
        found[suffix] = [
            result["message"].partition(":")[0] if result["status"] == "INVALID_INPUT" else "empty"
            for result in results
        ]
    assert found["jsonl"][:4] == [
        "empty",
        "line 2.prediction is -inf",
        "line 3.prediction is inf",
        "line 4 has no references",
    ]
    assert found["jsonl"][4].startswith("line 5.references[1]")
    assert found["json"] == ["empty"]
    assert found["csv"][:3] == ["empty", "empty", "line 4 has no references"]
    assert found["csv"][3].startswith("line 5.references[0]")
    assert found["parquet"] == ["empty", "row 2.prediction is inf", "empty"]


@pytest.mark.parametrize(("fail_on", "codes"), [("failure", (0, 1)), ("no-score", (1, 1)), ("never", (0, 0))])
def test_fail_on(command: Command, tmp_path: Path, fail_on: str, codes: tuple[int, int]) -> None:
    empty = write_rows(tmp_path / "empty.jsonl", [{"references": "a", "prediction": ""}])
    broken = write_rows(tmp_path / "broken.jsonl", [{"references": "a", "prediction": 1}, {"references": "a"}])
    found = tuple(command("score", file, "--fail-on", fail_on).exit_code for file in (empty, broken))
    assert found == codes


def test_server_that_hangs_ends_the_run(command: Command, tmp_path: Path) -> None:
    def hang(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if request.items:
            raise DeadlineExceeded("too slow")
        return answer(request)

    file, out = write_rows(tmp_path / "a.jsonl", ROWS * 4), tmp_path / "out.jsonl"
    done = command("score", file, "--out", out, stub=StubTransport(hang))
    assert done.exit_code == 3
    assert "too slow" in done.stderr
    assert {row["scores"]["smile"]["status"] for _, row in read_results(out)} <= {"TIMEOUT"}


def test_server_that_goes_away_leaves_the_finished_rows(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"

    def gone(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if any(item.id == "row 300" for item in request.items):
            raise ServerUnreachable("nobody answers")
        return answer(request)

    done = command("score", file, "--out", out, "--deadline-s", "1", stub=StubTransport(gone))
    assert done.exit_code == 3
    assert "nobody answers" in done.stderr
    assert [row["index"] for _, row in read_results(out)] == list(range(256)), "whole batches before the break"
    assert command("score", file, "--out", out, "--resume", "--quiet").exit_code == 0
    assert len(list(read_results(out))) == 500


def test_busy_server_is_asked_again(command: Command, tmp_path: Path) -> None:
    turned_away = iter([True, True])

    def busy(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if request.items and next(turned_away, False):
            raise Overloaded("full", retry_after_s=0.001)
        return answer(request)

    done = command("score", write_rows(tmp_path / "a.jsonl", ROWS[:5]), stub=StubTransport(busy))
    assert done.exit_code == 0
    assert [row["scores"]["smile"]["status"] for row in read_rows(done.stdout)] == ["OK"] * 5


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotReady("nothing is loaded: build it"), 2),
        (InvalidRequest("metrics[0] is wrong"), 2),
        (ServerUnreachable("nobody answers"), 3),
    ],
)
def test_errors_of_the_call_are_one_line_and_leave_no_file(
    command: Command, tmp_path: Path, error: Exception, code: int
) -> None:
    def refuse(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise error

    out = tmp_path / "out.jsonl"
    file = write_rows(tmp_path / "a.jsonl", ROWS[:2])
    done = command("score", file, "--out", out, "--deadline-s", "0.3", stub=StubTransport(refuse))
    assert done.exit_code == code
    assert re.fullmatch(rf"Error: {re.escape(str(error))}(\. Tried \d times in 0\.\d s)?\n", done.stderr)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metrics", "cosine"], "unknown metric 'cosine'"),
        (["--metrics", "exact_match", "--preset", "fast"], "preset is for smile"),
        (["--resume"], "need --out"),
        (["--synthetic", "prepared"], "needs --reference-set"),
        (["--map", "prediction"], "write FIELD=COLUMN"),
        (["--map", "answer=x"], "where FIELD is one of id, question"),
        (["--server", "localhost"], "--server localhost: write HOST:PORT"),
        (["--server", "localhost:"], "--server localhost:: write HOST:PORT"),
        (["--server", ":50051"], "write HOST:PORT"),
        (["--server", "::1"], "write HOST:PORT"),
        (["--server", "localhost:grpc"], "write HOST:PORT"),
        (["--server", "localhost:70000"], "write HOST:PORT"),
        (["--server", "http://localhost:50051"], "write HOST:PORT"),
        (["--server", ""], "write HOST:PORT"),
        (["--server", "a:1", "--embedded"], "are mutually exclusive"),
        (["--server", "a:1", "--disk-directory", "x"], "Leave it out with --server"),
        (["--tls-ca", __file__], "Add --server"),
        (["--out", "x", "--format", "table"], "Leave out --out"),
        (["--out", "x", "--resume", "--overwrite"], "are mutually exclusive"),
    ],
)
def test_wrong_usage_says_the_way_out(command: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    done = command("score", write_rows(tmp_path / "a.jsonl", ROWS[:1]), *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize("address", ["localhost:1", "[::1]:50051", "a.b-c.example:65535", "dns:///a:1", "unix:/a/b"])
def test_addresses_that_are_some(command: Command, tmp_path: Path, address: str) -> None:
    done = command("score", write_rows(tmp_path / "a.jsonl", ROWS[:1]), "--server", address, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")


def test_missing_file_and_missing_column(command: Command, tmp_path: Path) -> None:
    done = command("score", tmp_path / "none.jsonl")
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path / 'none.jsonl'}: No such file or directory\n")
    done = command("score", write_rows(tmp_path / "a.jsonl", [{"references": "a", "said": "b"}]))
    assert done.exit_code == 2
    assert "Columns: references, said" in done.stderr


def seen_synthetic(command: Command, file: Path, *arguments: str) -> tuple[set[int], str]:
    modes = set()

    def noting(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        modes.update(spec.smile.synthetic for spec in request.metrics)
        return answer(request)

    done = command("score", file, *arguments, stub=StubTransport(noting))
    assert done.exit_code == 0
    return modes, done.stderr


def test_synthetic_answers_are_used_where_all_rows_have_them(command: Command, tmp_path: Path) -> None:
    with_answers = {"references": ["a"], "prediction": "b", "syn_ans": ["It is a."]}
    file = write_rows(tmp_path / "all.jsonl", [with_answers])
    some = write_rows(tmp_path / "some.jsonl", [with_answers, ROWS[0]])
    none, inline, prepared = 1, 2, 3
    assert seen_synthetic(command, file)[0] == {inline}
    assert seen_synthetic(command, file, "--synthetic", "none")[0] == {none}
    assert seen_synthetic(command, file, "--reference-set", "set")[0] == {prepared}
    modes, stderr = seen_synthetic(command, some)
    assert modes == {none}
    assert "synthetic answers of 1 rows are unused" in stderr


def test_table_on_standard_output(command: Command, tmp_path: Path) -> None:
    rows = [{"id": "first", "references": "a", "prediction": "x" * 30}, {"references": "a", "prediction": ""}]
    done = command("score", write_rows(tmp_path / "a.jsonl", rows), "--format", "table", "--quiet")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["id", "smile"],
        ["first", "0.300"],
        ["1", "EMPTY_PREDICTION"],
    ]


def test_a_file_without_rows_is_refused_and_nothing_is_written(command: Command, tmp_path: Path) -> None:
    file, full, out = tmp_path / "a.jsonl", write_rows(tmp_path / "b.jsonl", ROWS), tmp_path / "out.jsonl"
    file.write_text("\n")
    for further in ([], ["--out", out], ["--metrics", "lave", "--dry-run"]):
        done = command("score", file, "--quiet", *further)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"Error: {file} has no rows\n")
    assert not out.exists()
    beside = command("score", file, full, "--quiet", "--out", out)
    assert (beside.exit_code, beside.stderr) == (2, f"Error: {file} has no rows\n"), "a run may have failed"
    assert not out.exists()


def test_a_folder_is_refused_as_one(command: Command, tmp_path: Path) -> None:
    done = command("score", tmp_path)
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path} is a folder. Name the files in it\n")
