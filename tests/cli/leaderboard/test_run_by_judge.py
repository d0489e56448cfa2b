"""`gradewire leaderboard --by compare`: a judge is asked about pairs, those first that tell most."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport, echo_comparisons
from gradewire_proto.v1 import judging_pb2

MODELS = ("a", "b", "c", "d")


def verdict(pair: judging_pb2.Pair) -> Any:
    """Answers say which model gave them; earlier letters win most of the time, and some pairs are inconsistent."""
    drawn = hashlib.blake2b(f"{pair.question}/{pair.answer_a}/{pair.answer_b}".encode(), digest_size=4).digest()
    share = int.from_bytes(drawn, "big") / 2**32
    if share > 0.95:
        return None
    return "a" if share < 0.5 + 0.1 * (ord(pair.answer_b[0]) - ord(pair.answer_a[0])) else "b"


class Judge(StubTransport):
    """Counts the pairs that it is shown."""

    def __init__(self) -> None:
        super().__init__(compare=self._count)
        self.asked: list[tuple[str, str, str]] = []

    def _count(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        self.asked += [(pair.question, pair.answer_a[0], pair.answer_b[0]) for pair in request.pairs]
        return echo_comparisons(request, winner=verdict)


def files_of(folder: Path, models: tuple[str, ...] = MODELS, *, questions: int = 50) -> list[Path]:
    return [
        write_rows(
            folder / f"{model}.jsonl",
            [
                {"question_id": f"q{number}", "question": f"What is {number}?", "prediction": f"{model} says so"}
                for number in range(questions)
            ],
        )
        for model in models
    ]


OPTIONS = ["--by", "compare", "--resamples", "100"]


def test_all_pairs_are_judged_in_both_orders(command: Command, tmp_path: Path) -> None:
    judge, out, figures = Judge(), tmp_path / "pairs.jsonl", tmp_path / "board.json"
    done = command("leaderboard", *files_of(tmp_path), *OPTIONS, "--out", out, "--json", figures, stub=judge)
    assert done.exit_code == 0, done.output
    found = json.loads(figures.read_text())
    assert (found["models"][0]["model"], found["models"][-1]["model"]) == ("a", "d")
    assert found["by"].startswith("compare")
    # The server is asked once more before, whether it can compare.
    assert len(set(judge.asked)) == 300 + 1
    lines = read_rows(out.read_text())
    inconsistent = sum(line["status"] == "INCONSISTENT" for line in lines)
    assert (found["without_winner"], found["contradictory_orders"]) == ({}, inconsistent)
    assert found["both_orders"] == {"pairs": 300, "same_winner": 300 - inconsistent}
    assert found["position_bias"]["won"]["value"] == pytest.approx(0.5, abs=0.05)
    assert f"{inconsistent} pairs count as ties, because their two orders have different verdicts" in done.output
    assert "round" not in lines[0]


def test_pairs_are_chosen_until_intervals_are_narrow(command: Command, tmp_path: Path) -> None:
    judge, out = Judge(), tmp_path / "pairs.jsonl"
    done = command("leaderboard", *files_of(tmp_path), *OPTIONS, "--out", out, "--target-width", "180", stub=judge)
    assert done.exit_code == 0, done.output
    judged = len(read_rows(out.read_text()))
    assert judged == len(judge.asked) - 1 < 200
    assert f"{300 - judged} of the 300 pairs in a full round robin were not needed" in done.output


def test_a_new_model_joins(command: Command, tmp_path: Path) -> None:
    out, judge = tmp_path / "pairs.jsonl", Judge()
    done = command("leaderboard", *files_of(tmp_path, MODELS[:3]), *OPTIONS, "--out", out, stub=Judge())
    assert done.exit_code == 0, done.output
    before = out.read_bytes()
    done = command(
        "leaderboard", *files_of(tmp_path), *OPTIONS, "--out", out, "--resume", "--target-width", "150", stub=judge
    )
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(before)
    assert all("d" in models for _, *models in judge.asked[1:])
    assert 0 < len(judge.asked[1:]) < 150


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("compare?colour=red", "compare has no parameter 'colour'"),
        ("compare?decision=most", "decision"),
    ],
)
def test_wrong_comparisons_are_told(command: Command, tmp_path: Path, by: str, message: str) -> None:
    done = command("leaderboard", *files_of(tmp_path), "--by", by, stub=Judge())
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    "column",
    [{"question_id": '["turn {number}"]'}, {"question_id": "{number}\ud800"}, {"model": "{model}\ud800"}],
    ids=["an id like a list of turns", "an id that UTF-8 cannot hold", "a model that UTF-8 cannot hold"],
)
def test_a_judged_pair_is_found_again_whatever_it_is_called(
    command: Command, tmp_path: Path, column: dict[str, str]
) -> None:
    files = files_of(tmp_path, MODELS[:3], questions=32)
    for model, path in zip(MODELS, files, strict=False):
        rows = read_rows(path.read_text())
        named = [
            {name: text.format(number=number, model=model) for name, text in column.items()}
            for number in range(len(rows))
        ]
        write_rows(path, [row | more for row, more in zip(rows, named, strict=True)])
    judge = Judge()
    options = [*OPTIONS, "--out", tmp_path / "pairs.jsonl", "--target-width", "1"]
    for more in ([], ["--resume"]):
        done = command("leaderboard", *files, *options, *more, "--max-pairs", "200", stub=judge)
        assert done.exit_code == 0, done.output
    # Each run asks once more, whether the server can compare.
    assert len(judge.asked) - 2 == len(read_rows((tmp_path / "pairs.jsonl").read_text())) == 3 * 32


def test_a_model_that_loses_all_is_asked_about_once_an_instruction(command: Command, tmp_path: Path) -> None:
    """Its rating has no bound, so that no number of pairs makes its interval narrow."""

    def hopeless(pair: judging_pb2.Pair) -> Any:
        return {"d": "b"}.get(pair.answer_a[0]) or {"d": "a"}.get(pair.answer_b[0]) or verdict(pair)

    judge, out, figures = (
        StubTransport(compare=lambda request: echo_comparisons(request, winner=hopeless)),
        *(tmp_path / name for name in ("pairs.jsonl", "board.json")),
    )
    options = [*OPTIONS, "--target-width", "180", "--out", out, "--json", figures]
    done = command("leaderboard", *files_of(tmp_path), *options, stub=judge)
    assert done.exit_code == 0, done.output
    last = json.loads(figures.read_text())["models"][-1]
    assert (last["model"], last["bounded"], last["bradley_terry"]["low"]) == ("d", False, None)
    of_it = [row["instruction_id"] for row in read_rows(out.read_text()) if "d" in {row["model_a"], row["model_b"]}]
    assert len(set(of_it)) == 50
    assert len(of_it) < 100
    assert "ratings that depend only on the added matches have no interval" in done.output


@pytest.mark.parametrize("named", [{"image": "0.png"}, {"images": ["0.png"]}, {"images": ["0.png", "0.png"]}])
def test_a_judge_that_sees_is_shown_the_pictures_that_rows_name(
    command: Command, tmp_path: Path, named: dict[str, Any]
) -> None:
    (tmp_path / "0.png").write_bytes(b"a picture")
    row = {"question_id": "q", "question": "What is it?", **named}
    files = [write_rows(tmp_path / f"{model}.jsonl", [{**row, "prediction": f"{model} says so"}]) for model in "ab"]
    shown: list[list[bytes]] = []

    def seen(request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        shown.extend([image.data for image in pair.images] for pair in request.pairs if pair.answer_a != pair.answer_b)
        return echo_comparisons(request, winner=verdict)

    options = ("--by", "compare?image=true", "--resamples", "100")
    done = command("leaderboard", *files, *options, stub=StubTransport(compare=seen))
    assert done.exit_code == 0, done.output
    number = len(named["images"]) if "images" in named else 1
    assert shown == [[b"a picture"] * number]
