"""`gradewire leaderboard` over answers: a metric chooses, each answer is scored once, and pairs are kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.client.cli.conftest import Command, answer, read_rows, write_rows

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2

LENGTHS = {"long": 40, "middle": 25, "short": 10}


def rows_of(model: str, *, questions: int = 14, **more: Any) -> list[dict[str, Any]]:
    """Answers whose score, a hundredth of their letters, is that of their model."""
    return [
        {"question_id": f"q{number}", "question": "What?", "references": ["cat"], "prediction": "a" * LENGTHS[model]}
        | {"group": ("one", "two")[number % 2]}
        | more
        for number in range(questions)
    ]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file for each model, called by its name."""
    return [write_rows(tmp_path / f"{model}.jsonl", rows_of(model)) for model in LENGTHS]


class Counting(StubTransport):
    """Counts the answers that it scores."""

    def __init__(self) -> None:
        super().__init__(self._count)
        self.scored = 0

    def _count(self, request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        self.scored += len(request.items)
        return answer(request)


OPTIONS = ["--resamples", "100", "--by", "smile"]


def test_models_in_files_of_their_own_are_compared(command: Command, files: list[Path], tmp_path: Path) -> None:
    out, figures, stub = tmp_path / "pairs.jsonl", tmp_path / "board.json", Counting()
    done = command("leaderboard", *files, *OPTIONS, "--out", out, "--json", figures, stub=stub)
    assert done.exit_code == 0, done.output
    assert stub.scored == 3 * 14, "each answer once, not once a pair"
    found = json.loads(figures.read_text())
    assert [line["model"] for line in found["models"]] == ["long", "middle", "short"]
    # 40 and 25 letters are 0.15 apart, no more than the margin; 10 letters are 0.3 behind.
    shares = {line["model"]: line["win_share"]["value"] for line in found["models"]}
    assert shares == pytest.approx({"long": 0.75, "middle": 0.5, "short": 0.25})
    assert found["by"].startswith("smile")
    assert set(found["families"]) == {"one", "two"}
    lines = read_rows(out.read_text())
    assert len(lines) == 3 * 14
    assert {(line["model_a"], line["model_b"], line["winner"]) for line in lines} == {
        ("long", "middle", "tie"),
        ("long", "short", "model_a"),
        ("middle", "short", "tie"),
    }
    assert lines[0]["instruction_id"] == "q0"
    assert "judged 42 pairs by smile" in done.output


def test_judged_pairs_give_the_same_board_as_their_answers(command: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    command("leaderboard", *files, *OPTIONS, "--tie-margin", "0.1", "--out", out, "--csv", first)
    done = command("leaderboard", out, *OPTIONS, "--csv", second)
    assert done.exit_code == 0, done.output
    assert first.read_text() == second.read_text()


def test_a_new_model_joins_and_old_pairs_are_not_judged_again(
    command: Command, files: list[Path], tmp_path: Path
) -> None:
    out, stub = tmp_path / "pairs.jsonl", Counting()
    command("leaderboard", *files[1:], *OPTIONS, "--out", out)
    before = out.read_bytes()
    assert "give --resume" in command("leaderboard", *files, *OPTIONS, "--out", out).output
    done = command("leaderboard", *files, *OPTIONS, "--out", out, "--resume", stub=stub)
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(before)
    assert len(read_rows(out.read_text())) == 3 * 14
    assert "judged 28 pairs by smile; 14 were known" in done.output


def test_a_torn_line_is_judged_again_and_the_rest_kept(command: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    command("leaderboard", *files, *OPTIONS, "--out", out)
    whole = out.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        out.write_bytes(whole[:cut])
        done = command("leaderboard", *files, *OPTIONS, "--out", out, "--resume")
        assert done.exit_code == 0, done.output
        assert out.read_bytes() == whole


def test_answers_that_changed_are_judged_anew(command: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    command("leaderboard", *files, *OPTIONS, "--out", out)
    rows = rows_of("short")
    rows[3]["prediction"] = "a" * 90
    write_rows(files[2], rows)
    done = command("leaderboard", *files, *OPTIONS, "--out", out, "--resume")
    assert "2 pairs were judged anew, for their answers changed" in done.output
    assert len(read_rows(out.read_text())) == 3 * 14 + 2
    assert command("leaderboard", *files, *OPTIONS, "--out", out, "--resume").exit_code == 0


def test_another_chooser_may_not_go_on_with_a_file(command: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    command("leaderboard", *files, *OPTIONS, "--out", out)
    for options, named in ((["--by", "rouge_l"], "by"), (["--by", "smile", "--tie-margin", "0"], "tie_margin")):
        done = command("leaderboard", *files, "--resamples", "100", *options, "--out", out, "--resume")
        assert (done.exit_code, f"was made otherwise: {named} was" in done.output) == (2, True)
    done = command("leaderboard", *files, "--resamples", "100", "--by", "rouge_l", "--out", out, "--overwrite")
    assert done.exit_code == 0


def test_models_in_a_column_and_rows_that_cannot_be_compared(command: Command, tmp_path: Path) -> None:
    rows = [row | {"model": model} for model in LENGTHS for row in rows_of(model)]
    rows += [rows[0], {"model": "long", "prediction": "aaa"}, {"model": "long", "question_id": "q99"}]
    file, figures = write_rows(tmp_path / "all.jsonl", rows), tmp_path / "board.json"
    done = command("leaderboard", file, *OPTIONS, "--json", figures)
    assert done.exit_code == 0, done.output
    assert json.loads(figures.read_text())["pairs"] == 42
    assert "the model has an answer to the question already (first at line 43)" in done.output
    assert "nothing tells which question it answers (first at line 44)" in done.output
    assert "1 rows were left out: the row cannot be read" in done.output


def test_blank_answers_lose_to_others_and_tie_with_blank_ones(
    command: Command, files: list[Path], tmp_path: Path
) -> None:
    write_rows(files[0], [row | {"prediction": " "} for row in rows_of("long")])
    write_rows(files[1], [row | {"prediction": ""} for row in rows_of("middle")])
    figures, out = tmp_path / "board.json", tmp_path / "pairs.jsonl"
    done = command("leaderboard", *files, *OPTIONS, "--json", figures, "--out", out)
    found = json.loads(figures.read_text())
    assert {line["model"]: line["win_share"]["value"] for line in found["models"]} == {
        "short": 1.0,
        "long": 0.25,
        "middle": 0.25,
    }
    assert found["without_winner"] == {"EMPTY_PREDICTION": 14}
    assert "14 pairs without a winner count as ties: EMPTY_PREDICTION 14" in done.output
    assert "28 pairs were lost by a blank answer" in done.output
    assert {row["winner"] for row in read_rows(out.read_text()) if row["status"] != "OK"} == {None}, "nobody said so"


def test_recorded_pairs_stand_beside_answers(command: Command, files: list[Path], tmp_path: Path) -> None:
    recorded = write_rows(
        tmp_path / "recorded.jsonl",
        [
            {"instruction_id": f"q{number}", "model_a": "short", "model_b": "long", "winner": "model_a"}
            for number in range(14)
        ],
    )
    figures = tmp_path / "board.json"
    done = command("leaderboard", *files, recorded, *OPTIONS, "--json", figures)
    assert done.exit_code == 0, done.output
    assert "judged 28 pairs by smile; 0 were known, 14 of other files" in done.output
    again = write_rows(tmp_path / "again.jsonl", [json.loads(line) for line in recorded.read_text().splitlines()] * 3)
    done = command("leaderboard", *files, again, *OPTIONS)
    assert "judged 28 pairs by smile; 0 were known, 14 of other files" in done.output
    assert "were saved" not in done.output, "a pair that stands there three times saves none"
    assert json.loads(figures.read_text())["pairs"] == 42


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resume"], "--resume and --overwrite need --out FILE"),
        (["--max-pairs", "5"], "--max-pairs stands beside --target-width"),
        (["--target-width", "50"], "--target-width is for judges"),
        (["--by", "smile,rouge_l"], "--by smile,rouge_l: name one metric that chooses"),
        (["--by", "smiles"], "smiles"),
    ],
)
def test_wrong_options_are_told(command: Command, files: list[Path], options: list[str], message: str) -> None:
    done = command("leaderboard", *files, *options)
    assert done.exit_code == 2
    assert message in done.output


def test_nothing_to_judge_takes_no_out(command: Command, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "pairs.jsonl", [{"model_a": "x", "model_b": "y", "winner": "tie"}])
    done = command("leaderboard", pairs, "--out", tmp_path / "out.jsonl")
    assert (done.exit_code, "FILE has judged pairs alone" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no two answers are to the same question"),
        (bytes(range(128, 256)) * 20, "the row cannot be read"),
        (b'{"question_id": "q", "prediction": "a", "model": "x"}\n', "models: x"),
        (b'{"question_id": "q", "prediction": "a", "model": "%s"}\n' % (b"x" * 201), "more than 200 characters"),
    ],
)
def test_files_without_two_answers_are_told(command: Command, tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(text)
    done = command("leaderboard", file, *OPTIONS)
    assert done.exit_code == 2, done.output
    assert message in done.output


def test_absurd_numbers_of_words_are_not_taken(command: Command, tmp_path: Path) -> None:
    pairs = [
        {"question_id": f"q{number}", "model_a": "x", "model_b": "y", "winner": "AB"[number % 2]}
        | {"length_a_words": 1e308, "length_b_words": -5}
        for number in range(12)
    ]
    done = command("leaderboard", write_rows(tmp_path / "pairs.jsonl", pairs), "--resamples", "100")
    assert done.exit_code == 0, done.output
    assert "longer" not in done.output
