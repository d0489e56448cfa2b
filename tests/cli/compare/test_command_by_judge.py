"""`compare --by compare`: a judge as chooser, what is printed of its orders, and a run that is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.compare import slow_judge
from tests.cli.compare.conftest import letters
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire.testing import StubTransport
from gradewire_proto.v1 import judging_pb2

Compare = Callable[..., Result]
Figures = Callable[..., dict[str, Any]]


class Judge(StubTransport):
    """Prefers the longer answer, and what stands first of equally long ones; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(slow_judge.score, compare=self._compare_pairs)
        self.asked: list[judging_pb2.Pair] = []
        self.parameters: list[judging_pb2.CompareRequest] = []

    def _compare_pairs(self, request: judging_pb2.CompareRequest) -> judging_pb2.CompareResponse:
        self.asked += [pair for pair in request.pairs if pair.id]
        self.parameters.append(request)
        return slow_judge.longer(request)


def test_a_judge_says_whose_answer_is_better(figures: Figures) -> None:
    judge = Judge()
    found = figures(
        letters(10, 20, 30, 50), letters(50, 20, 31, 10), options=("--by", "compare?references=true"), stub=judge
    )
    assert found["chooser"] == {"name": "compare", "by": "compare/1?references=true"}
    side = found["comparisons"]["new"]
    outcomes = side["outcomes"]["compare"]
    assert [outcomes[name] for name in ("wins", "ties", "losses", "undecided")] == [2, 0, 1, 1]
    assert side["choices"] == {"OK": 3, "INCONSISTENT": 1}
    # The metrics are scored all the same.
    assert side["metrics"]["smile"]["scored"] == 4
    assert {pair.references[0] for pair in judge.asked} == {"cat"}
    assert {pair.question for pair in judge.asked} == {f"question {number}?" for number in range(4)}


def test_consistency_and_position_bias_are_told_with_intervals(figures: Figures, compare: Compare) -> None:
    before, after = letters(*([20] * 12)), letters(*([20] * 4), *([30] * 8))
    orders = figures(before, after, options=("--by", "compare"), stub=Judge())["comparisons"]["new"]["orders"]
    assert (orders["pairs"], orders["consistent"]) == (12, 8)
    assert orders["consistency"]["value"] == pytest.approx(8 / 12)
    assert orders["position_bias"]["value"] == pytest.approx(4 / 12)
    assert orders["position_bias"]["low"] < 4 / 12 < orders["position_bias"]["high"]
    printed = compare(before, after, options=("--by", "compare"), stub=Judge()).stdout
    assert "The judge's verdicts with either answer first" in printed
    assert "0.667 [" in printed


def test_a_metric_as_chooser_is_shown_no_orders(figures: Figures) -> None:
    assert "orders" not in figures(letters(10), letters(20))["comparisons"]["new"]


def test_lines_of_pairs_have_both_orders(compare: Compare, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    done = compare(letters(10, 20), letters(20, 20), options=("--by", "compare", "--out", out), stub=Judge())
    assert done.exit_code == 0, done.output
    won, undecided = read_rows(out.read_text())
    assert (won["model_a"], won["model_b"], won["winner"], won["status"]) == ("base", "new", "model_b", "OK")
    assert (won["probability_b"], won["by"], won["instruction_id"] != "") == (1.0, "compare/1", True)
    assert [order["first"] for order in won["orders"]] == ["model_a", "model_b"]
    assert (undecided["winner"], undecided["status"]) == (None, "INCONSISTENT")
    assert [order["winner"] for order in undecided["orders"]] == ["model_a", "model_b"]


def test_conditions_hold_of_a_judge_too(compare: Compare) -> None:
    files = letters(*range(1, 20)), letters(*range(2, 21))
    held = compare(*files, options=("--by", "compare", "--fail-if", "compare.wins > 0.5"), stub=Judge())
    assert held.exit_code == 4, held.output
    none = compare(*files, options=("--by", "compare", "--fail-if", "compare.losses > 0.5"), stub=Judge())
    assert none.exit_code == 0, none.output
    wrong = compare(*files, options=("--by", "compare", "--fail-if", "compare.mean > 0.5"), stub=Judge())
    assert wrong.exit_code == 2
    assert "compare has no scores" in wrong.output


def test_the_judge_and_its_prompt_are_those_of_the_command_line(compare: Compare, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.toml"
    prompt.write_text('format = 1\nname = "mine"\nversion = 3\nmetric = "compare"\n')
    judge = Judge()
    options = ("--by", "compare?mode=reason", "--judge", "big", "--prompt", prompt)
    assert compare(letters(10), letters(20), options=options, stub=judge).exit_code == 0
    asked = judge.parameters[-1].parameters
    assert (asked.model, asked.prompt) == ("big", prompt.read_text())


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("compare?mode=fast", "has no mode 'fast'"),
        ("compare?shots=1", "no parameter 'shots'; its parameters"),
        ("compare:listwise", "puts lists of answers in order: use gradewire rank"),
    ],
)
def test_a_wrong_comparison_is_refused_before_any_work(compare: Compare, by: str, said: str) -> None:
    judge = Judge()
    done = compare(letters(10), letters(20), options=("--by", by), stub=judge)
    assert done.exit_code == 2
    assert said in done.output
    assert judge.parameters == []


def test_outputs_have_no_answers_to_show_a_judge(command: Command, tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        rows = write_rows(tmp_path / f"{name}.rows.jsonl", letters(10, 20))
        paths.append(tmp_path / f"{name}.jsonl")
        assert command("score", rows, "--out", paths[-1], "--quiet").exit_code == 0
    done = command("compare", *paths, "--by", "compare", "--quiet", stub=Judge())
    assert done.exit_code == 2
    assert "a judge must read the answers" in done.output


def test_a_run_that_is_killed_goes_on_with_the_same_pairs_and_verdicts(tmp_path: Path) -> None:
    files = [
        write_rows(tmp_path / "base.jsonl", letters(*(10 + number % 7 for number in range(300)))),
        write_rows(tmp_path / "new.jsonl", letters(*(10 + number % 5 for number in range(300)))),
    ]
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    run_command(files, whole)
    killed = subprocess.Popen(
        arguments(files, broken), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    give_up = time.monotonic() + 60
    while not (broken.exists() and broken.read_bytes().count(b"\n") > 20) and time.monotonic() < give_up:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    written = broken.read_bytes()
    assert 20 < written.count(b"\n") < 300
    assert whole.read_bytes().startswith(written[: written.rindex(b"\n")])

    run_command(files, broken, "--resume")
    assert broken.read_bytes() == whole.read_bytes()
    assert len({json.loads(line)["digest"] for line in broken.read_text().splitlines()}) == 300


def arguments(files: list[Path], out: Path, *more: str) -> list[str]:
    command = [sys.executable, "-m", "tests.cli.compare.slow_judge", "compare", *map(str, files)]
    return [*command, "--by", "compare", "--out", str(out), "--quiet", "--resamples", "100", *more]


def run_command(files: list[Path], out: Path, *more: str) -> None:
    done = subprocess.run(arguments(files, out, *more), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_judge_that_sees_is_shown_the_pictures_that_rows_name(compare: Compare, tmp_path: Path) -> None:
    """And a pair whose picture is another one is judged again."""
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(f"picture {number}".encode())
    files = [
        [{**row, "image": f"{number}.png"} for number, row in enumerate(letters(*counts))]
        for counts in ((10, 20, 30), (20, 10, 40))
    ]
    options = ("--by", "compare?image=true", "--out", tmp_path / "pairs.jsonl")
    judge = Judge()
    assert compare(*files, options=options, stub=judge).exit_code == 0
    assert [[image.data for image in pair.images] for pair in judge.asked] == [[f"picture {n}".encode()] for n in "012"]

    (tmp_path / "1.png").write_bytes(b"another picture")
    judge = Judge()
    assert compare(*files, options=(*options, "--resume"), stub=judge).exit_code == 0
    assert [[image.data for image in pair.images] for pair in judge.asked] == [[b"another picture"]]


def test_lists_of_pictures_are_shown_and_one_that_is_missing_fails_its_pair_alone(
    compare: Compare, tmp_path: Path
) -> None:
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(f"picture {number}".encode())
    lists = (["0.png", "1.png"], ["0.png", "gone.png"], ["1.png"], ["gone.png"])
    files = [
        [{**row, "images": each} for row, each in zip(letters(*counts), lists, strict=True)]
        for counts in ((10, 20, 30, 40), (20, 10, 40, 50))
    ]
    judge = Judge()
    out = tmp_path / "pairs.jsonl"
    assert compare(*files, options=("--by", "compare?image=true", "--out", out), stub=judge).exit_code == 0
    shown = [[image.data for image in pair.images] for pair in judge.asked]
    assert shown == [[b"picture 0", b"picture 1"], [b"picture 1"]]
    lines = read_rows(out.read_text())
    assert [line["status"] for line in lines] == ["OK", "INVALID_INPUT", "OK", "INVALID_INPUT"]
    assert lines[1]["message"] == "picture 2 of 2 gone.png: the file is not in the folder of the rows"


def test_a_judge_of_texts_is_shown_no_picture(compare: Compare, tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(b"picture")
    judge = Judge()
    files = [[{**row, "image": "0.png"} for row in letters(count)] for count in (10, 20)]
    assert compare(*files, options=("--by", "compare"), stub=judge).exit_code == 0
    assert [len(pair.images) for pair in judge.asked] == [0]
