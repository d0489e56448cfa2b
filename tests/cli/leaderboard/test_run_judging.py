"""`gradewire leaderboard` over answers: a metric chooses, each answer is scored once, and pairs are kept."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, read_rows, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.leaderboard.output import RatingOptions
from gradewire_cli.leaderboard.run import Answers, PairJudging, texts_digest
from gradewire_cli.leaderboard.verdicts import Verdicts
from gradewire_cli.results.journal import Journal
from gradewire_cli.results.progress import progress
from gradewire_cli.rows.row import Row
from gradewire_cli.scoring.pair_engine import AnswerPair, Choice, Chosen, PairEngine
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
    assert set(found["groups"]) == {"one", "two"}
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
    assert "Use --resume" in command("leaderboard", *files, *OPTIONS, "--out", out).output
    done = command("leaderboard", *files, *OPTIONS, "--out", out, "--resume", stub=stub)
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(before)
    assert len(read_rows(out.read_text())) == 3 * 14
    assert "judged 28 pairs by smile; took 14 from earlier runs" in done.output


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
    assert "2 pairs were judged again because their answers changed" in done.output
    assert len(read_rows(out.read_text())) == 3 * 14 + 2
    assert command("leaderboard", *files, *OPTIONS, "--out", out, "--resume").exit_code == 0


def test_another_chooser_may_not_go_on_with_a_file(command: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    command("leaderboard", *files, *OPTIONS, "--out", out)
    for options, named in ((["--by", "rouge_l"], "by"), (["--by", "smile", "--tie-margin", "0"], "tie_margin")):
        done = command("leaderboard", *files, "--resamples", "100", *options, "--out", out, "--resume")
        assert (done.exit_code, f"was made with other settings: {named} was" in done.output) == (2, True)
    done = command("leaderboard", *files, "--resamples", "100", "--by", "rouge_l", "--out", out, "--overwrite")
    assert done.exit_code == 0


def test_models_in_a_column_and_rows_that_cannot_be_compared(command: Command, tmp_path: Path) -> None:
    rows = [row | {"model": model} for model in LENGTHS for row in rows_of(model)]
    rows += [rows[0], {"model": "long", "prediction": "aaa"}, {"model": "long", "question_id": "q99"}]
    file, figures = write_rows(tmp_path / "all.jsonl", rows), tmp_path / "board.json"
    done = command("leaderboard", file, *OPTIONS, "--json", figures)
    assert done.exit_code == 0, done.output
    assert json.loads(figures.read_text())["pairs"] == 42
    assert "the model already has an answer to the question (first at line 43)" in done.output
    assert "the row's question is unknown (first at line 44)" in done.output
    assert "left out 1 row: the row cannot be read" in done.output


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
    assert found["without_winner"] == {}
    assert "in 28 pairs, a blank answer lost without a judge" in done.output
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
    assert "judged 28 pairs by smile; took 0 from earlier runs and 14 from other files" in done.output
    again = write_rows(tmp_path / "again.jsonl", [json.loads(line) for line in recorded.read_text().splitlines()] * 3)
    done = command("leaderboard", *files, again, *OPTIONS)
    assert "judged 28 pairs by smile; took 0 from earlier runs and 14 from other files" in done.output
    assert "were not needed" not in done.output, "a pair that stands there three times saves none"
    assert json.loads(figures.read_text())["pairs"] == 42


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resume"], "--resume and --overwrite need --out FILE"),
        (["--max-pairs", "5"], "--max-pairs needs --target-width"),
        (["--target-width", "50"], "--target-width works only with a judge"),
        (["--by", "smile,rouge_l"], "--by smile,rouge_l: name one metric only"),
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
    assert (done.exit_code, "FILE contains only judged pairs" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "answers.jsonl has no rows"),
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


MODELS = ("a", "b", "c", "d", "e")
OPTIONS_JUDGING = RatingOptions(resamples=100)


class BrokenRunError(Exception):
    """Ends a run in the middle."""


@dataclass
class NoisyJudge:
    """Prefers models that come first in the alphabet, most of the time; the same pair always gets the same verdict."""

    name: str = "noisy"
    breaks_after: int = 10**9
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"by": "noisy/1"}

    async def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        for pair in pairs:
            if len(self.asked) >= self.breaks_after:
                raise BrokenRunError
            self.asked.append((pair.a.row.question_id, pair.model_a, pair.model_b))
            drawn = hashlib.blake2b("/".join(self.asked[-1]).encode(), digest_size=4).digest()
            lead = 0.5 + 0.08 * (ord(pair.model_b) - ord(pair.model_a))
            wins = int.from_bytes(drawn, "big") / 2**32 < lead
            yield [(pair, Choice(winner="model_a" if wins else "model_b"))]


def answers(models: Sequence[str] = MODELS, *, questions: int = 60) -> Answers:
    found = Answers()
    for number in range(questions):
        found.rows[f"q{number}"] = {
            model: Row(
                0,
                "line 1",
                "",
                {"id": "0", "question": f"{number}?", "prediction": model},
                "",
                "",
                question_id=f"q{number}",
            )
            for model in models
        }
    return found


def judge(
    judge: NoisyJudge,
    out: Path | None,
    *,
    models: Sequence[str] = MODELS,
    width: float | None = 190,
    most: int | None = None,
) -> PairJudging:
    with Journal(out) if out else nullcontext() as journal, progress("", None, quiet=True) as silent:
        engine = PairEngine(judge, journal, texts_digest)
        judging = PairJudging(answers=answers(models), recorded=Verdicts(), engine=engine, options=OPTIONS_JUDGING)
        judging.open(resume=True)
        asyncio.run(judging.all_pairs(silent) if width is None else judging.until(width, most, silent))
        return judging


def test_rounds_end_when_the_intervals_are_narrow_enough(tmp_path: Path) -> None:
    chooser = NoisyJudge()
    judging = judge(chooser, tmp_path / "pairs.jsonl")
    full = answers().pool(MODELS).pairs
    assert full == 60 * 10
    assert len(set(chooser.asked)) == len(chooser.asked) < full / 2
    assert list(judging._uncertain_models(judging.verdicts(), 190)) == []
    lines = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    rounds = [line["round"] for line in lines]
    assert rounds == sorted(rounds)
    assert rounds[0] == 0
    assert rounds[-1] > 0


@pytest.mark.parametrize("broken_after", [0, 1, 31, 32, 33, 80, 95])
def test_a_run_that_broke_ends_as_one_that_did_not(tmp_path: Path, broken_after: int) -> None:
    straight, resumed = tmp_path / "straight.jsonl", tmp_path / "resumed.jsonl"
    judge(NoisyJudge(), straight)
    with pytest.raises(BrokenRunError):
        judge(NoisyJudge(breaks_after=broken_after), resumed)
    assert resumed.read_bytes() == b"".join(straight.read_bytes().splitlines(keepends=True)[:broken_after])
    chooser = NoisyJudge()
    judge(chooser, resumed)
    assert resumed.read_bytes() == straight.read_bytes()
    assert len(chooser.asked) == len(straight.read_bytes().splitlines()) - broken_after


def test_a_new_model_is_placed_without_judging_old_pairs(tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    judge(NoisyJudge(), out, models=MODELS[:4], width=None)
    before = out.read_bytes()
    chooser = NoisyJudge()
    judge(chooser, out, width=150)
    assert out.read_bytes().startswith(before)
    assert chooser.asked
    assert all("e" in models for _, *models in chooser.asked)
    assert len(chooser.asked) < 60 * 4


def test_no_interval_is_narrow_that_rests_on_few_instructions(tmp_path: Path) -> None:
    judging = judge(NoisyJudge(), tmp_path / "pairs.jsonl", width=10_000)
    for model in MODELS:
        there = {pair.instruction for pair in judging.verdicts().pairs if model in pair.models}
        assert 30 <= len(there) < 60


def test_the_number_of_pairs_may_be_bounded(tmp_path: Path) -> None:
    chooser = NoisyJudge()
    judge(chooser, tmp_path / "pairs.jsonl", width=1, most=50)
    assert len(chooser.asked) == 50
    judge(chooser, tmp_path / "pairs.jsonl", width=1, most=60)
    assert len(chooser.asked) == 60


def test_pairs_that_cannot_be_narrow_enough_are_all_judged() -> None:
    chooser = NoisyJudge()
    judge(chooser, None, width=0.001)
    assert len(chooser.asked) == 600
