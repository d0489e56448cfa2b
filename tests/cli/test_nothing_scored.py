"""Files without rows, and runs in which nothing could be scored or judged: every command says so by its exit code."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, write_rows

from gradewire.testing import StubTransport, echo_comparisons, echo_scores
from gradewire_cli.problems import NothingScoredError, UnreachableError, check_something_scored, nothing_scored
from gradewire_proto.exit_codes import ExitCode
from gradewire_proto.v1 import judging_pb2, scoring_pb2, types_pb2

COLUMNS = ("id", "question", "references", "prediction", "model", "label")


def parquet(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq  # noqa: PLC0415 - only where pyarrow is installed

    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in COLUMNS}), path)


EMPTY_FILES: dict[str, Callable[[Path], object]] = {
    "header.csv": lambda path: path.write_text(",".join(COLUMNS) + "\n"),
    "header.tsv": lambda path: path.write_text("\t".join(COLUMNS) + "\n"),
    "nothing.csv": lambda path: path.write_text(""),
    "list.json": lambda path: path.write_text("[]"),
    "rows.json": lambda path: path.write_text('{"rows": []}'),
    "nothing.jsonl": lambda path: path.write_text(""),
    "blank.jsonl": lambda path: path.write_text("\n \n"),
    "nothing.parquet": parquet,
}
READING = [
    ["score", "EMPTY", "--metrics", "smile"],
    ["score", "EMPTY", "--dry-run"],
    ["score", "ROWS", "EMPTY", "--metrics", "smile"],
    ["prepare", "EMPTY"],
    ["agree", "EMPTY"],
    ["agree", "ROWS", "--labels-file", "EMPTY"],
    ["compare", "EMPTY"],
    ["compare", "ROWS", "EMPTY"],
    ["calibrate", "EMPTY", "--metric", "smile"],
    ["leaderboard", "EMPTY"],
    ["rank", "EMPTY"],
    ["leaderboard", "ROWS", "EMPTY"],
    ["leaderboard", "PAIRS", "--human", "EMPTY"],
    ["prompt", "show", "lave", "EMPTY", "--row", "0"],
    *(["bench", name, "EMPTY"] for name in ("knvqa", "accuracy", "pairs", "smile", "flips", "ave")),
]


def rows_of(model: str = "m1") -> list[dict[str, Any]]:
    item = {"references": ["a cat"], "prediction": f"an animal of {model}", "model": model}
    return [{**item, "id": f"{n}", "question": f"What is {n}?", "label": n % 2, "dataset": "d"} for n in range(4)]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Rows, and pairs of each kind that a command reads."""
    pair = {"model_a": "m1", "model_b": "m2", "winner": "model_a", "question_id": "1"}
    voted = {"references": ["a"], "question": "q", "response_a": "x y", "response_b": "z", "votes": ["A", "A", "B"]}
    flip = {"kind": "k", "references": ["a cat"], "answer": "a cat", "changed": "a dog", "label": 0}
    return {
        "ROWS": write_rows(tmp_path / "given.jsonl", rows_of()),
        "OTHER": write_rows(tmp_path / "other.jsonl", rows_of("m2")),
        "BOTH": write_rows(tmp_path / "both.jsonl", rows_of() + rows_of("m2")),
        "PAIRS": write_rows(tmp_path / "pairs.jsonl", [pair]),
        "LISTS": write_rows(tmp_path / "lists.jsonl", [{"question": "q", "answers": ["x y", "z"]}] * 3),
        "VOTED": write_rows(tmp_path / "voted.jsonl", [voted] * 3),
        "FLIPS": write_rows(
            tmp_path / "flips.jsonl", [{**flip, "id": f"{n}", "question": f"What is {n}?"} for n in range(3)]
        ),
    }


@pytest.mark.parametrize("name", EMPTY_FILES)
@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_file_without_rows_is_an_error(
    command: Command, tmp_path: Path, files: dict[str, Path], name: str, arguments: list[str]
) -> None:
    empty = tmp_path / name
    EMPTY_FILES[name](empty)
    done = command(*(files.get(word, empty if word == "EMPTY" else word) for word in arguments))
    assert done.exit_code == ExitCode.UNUSABLE, done.output
    assert f"{empty} has no rows" in done.output


def test_standard_input_without_rows_is_an_error() -> None:
    program = [sys.executable, "-c", "from gradewire_cli import main; main()", "leaderboard", "-"]
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.UNUSABLE, "Error: standard input has no rows\n")


def failing(status: "types_pb2.Status") -> StubTransport:
    """Every item and every pair ends with this status."""

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = echo_scores(request, score=lambda _: None)
        for item in reply.items:
            for result in item.results:
                result.status, result.message = status, "it failed"
        return reply

    def compare(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        reply = echo_comparisons(request, winner=lambda _: None)
        for pair in reply.pairs:
            pair.status, pair.message = status, "it failed"
            del pair.orders[:]
        return reply

    return StubTransport(score, compare=compare)


SCORING = [
    ["score", "ROWS", "--metrics", "smile"],
    ["agree", "ROWS", "--metrics", "smile"],
    ["agree", "ROWS", "--metrics", "smile", "--against", "rouge_l"],
    ["compare", "ROWS", "OTHER", "--metrics", "smile"],
    ["compare", "BOTH", "--metrics", "smile"],
    ["compare", "BOTH", "--metrics", "smile", "--by", "compare"],
    ["leaderboard", "BOTH", "--by", "smile"],
    ["leaderboard", "BOTH", "--by", "compare"],
    ["leaderboard", "BOTH", "--by", "compare", "--target-width", "50"],
    ["rank", "LISTS"],
    ["calibrate", "ROWS", "--metric", "smile", "--dry-run"],
    ["bench", "knvqa", "ROWS", "--metrics", "smile"],
    ["bench", "accuracy", "ROWS", "--metrics", "smile"],
    ["bench", "smile", "ROWS"],
    ["bench", "pairs", "VOTED", "--metrics", "smile"],
    ["bench", "flips", "FLIPS", "--metrics", "smile"],
]


@pytest.mark.parametrize("arguments", SCORING, ids=" ".join)
def test_a_run_without_any_score_exits_with_1(command: Command, files: dict[str, Path], arguments: list[str]) -> None:
    done = command(*(files.get(word, word) for word in arguments), stub=failing(types_pb2.STATUS_UNPARSABLE))
    assert done.exit_code == ExitCode.FAILED, done.output
    assert "UNPARSABLE" in done.output


@pytest.mark.parametrize("arguments", SCORING[1:], ids=" ".join)
def test_a_run_whose_model_cannot_be_used_exits_with_3(
    command: Command, files: dict[str, Path], arguments: list[str]
) -> None:
    words = [*(files.get(word, word) for word in arguments)]
    done = command(*words, stub=failing(types_pb2.STATUS_MODEL_UNAVAILABLE))
    assert done.exit_code == ExitCode.UNREACHABLE, done.output


def test_the_report_is_written_although_nothing_was_scored(
    command: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    figures = tmp_path / "figures.json"
    stub = failing(types_pb2.STATUS_UNPARSABLE)
    done = command("compare", files["BOTH"], "--metrics", "smile", "--by", "compare", "--json", figures, stub=stub)
    assert "no pair could be judged by compare: UNPARSABLE 4" in done.output
    (found,) = json.loads(figures.read_text())["comparisons"].values()
    assert found["without_winner"] == {"UNPARSABLE": ["0", "1", "2", "3"]}
    assert "(for example 0, 1, 2)" in done.output


@pytest.mark.parametrize(
    ("statuses", "error"),
    [
        ({}, None),
        ({"OK": 1, "UNPARSABLE": 9}, None),
        ({"INCONSISTENT": 1, "UNPARSABLE": 9}, None),
        ({"EMPTY_PREDICTION": 4}, None),
        ({"EMPTY_PREDICTION": 4, "INTERNAL": 1}, NothingScoredError),
        ({"OK": 0, "TIMEOUT": 3}, NothingScoredError),
        ({"UNAVAILABLE": 3, "MODEL_UNAVAILABLE": 1}, UnreachableError),
        ({"UNAVAILABLE": 3, "UNPARSABLE": 1}, NothingScoredError),
    ],
)
def test_what_counts_as_nothing(statuses: dict[str, int], error: type[Exception] | None) -> None:
    if error is None:
        check_something_scored("nothing", statuses)
        return
    with pytest.raises(error, match="nothing: "):
        check_something_scored("nothing", statuses)


def test_a_run_without_any_result_names_no_server() -> None:
    error = nothing_scored("no row has a score for bleu", {"UNAVAILABLE": 0})
    assert isinstance(error, NothingScoredError)
    assert error.message == "no row has a score for bleu"


def test_an_evaluator_with_only_blank_answers_says_so(command: Command, tmp_path: Path) -> None:
    rows = [{"question": "q", "references": ["a"], "prediction": blank} for blank in ("", " ")]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("agree", file, "--metrics", "rouge_l,bleu", "--against", "bleu")
    assert done.exit_code == ExitCode.UNUSABLE
    assert "--against bleu: all 2 answers are blank, so none has a score" in done.stderr


def test_an_evaluator_without_rows_says_that_the_flag_left_none(command: Command, tmp_path: Path) -> None:
    rows = [{"question": "q", "references": ["a"], "prediction": "a", "flags": ["bad"]}]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("agree", file, "--metrics", "rouge_l,bleu", "--against", "bleu", "--without-flag", "bad")
    assert done.exit_code == ExitCode.UNUSABLE
    assert "--without-flag leaves no rows" in " ".join(done.stderr.split())
