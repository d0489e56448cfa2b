import json
from pathlib import Path

import pytest
from tests.client.cli.choosing.samples import LengthChooser, pair

from gradewire.cli.choosing.pair_file import PairFile, choose_all
from gradewire.cli.choosing.pairs import Choice
from gradewire.cli.problems import InputError

PAIRS = [pair(number) for number in range(5)]


async def run(path: Path, chooser: LengthChooser, *, resume: bool = False, finish: bool = True) -> list[str | None]:
    with PairFile(path, chooser.identity) as file:
        file.open(resume=resume)
        chosen = await choose_all(PAIRS, chooser, file)
        if finish:
            file.finish()
    return [choice.winner for _, choice in chosen]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_line_has_what_a_leaderboard_reads(tmp_path: Path) -> None:
    await run(tmp_path / "pairs.jsonl", LengthChooser())
    first, *_ = lines(tmp_path / "pairs.jsonl")
    assert first | {"digest": ""} == {
        "id": "q0",
        "instruction_id": "q0",
        "family": "",
        "question": "question 0?",
        "model_a": "base",
        "model_b": "new",
        "winner": "model_b",
        "status": "OK",
        "probability_a": 0.25,
        "probability_b": None,
        "probability_tie": None,
        "orders": [{"first": "model_a"}],
        "length_a_words": 2,
        "length_b_words": 4,
        "answer_a": "a cat",
        "answer_b": "a dog, I think",
        "scores": {"smile": {"a": 0.2, "b": 0.8}},
        "by": "length/1",
        "digest": "",
    }


@pytest.mark.parametrize("cut", [0, 1, 40, 700, 1500, 100_000])
async def test_what_was_chosen_before_a_break_is_not_asked_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "pairs.jsonl"
    await run(path, LengthChooser())
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    again = LengthChooser()
    assert await run(path, again, resume=True) == ["model_b"] * 5
    assert again.asked == list(range(kept, 5))
    assert path.read_bytes() == whole
    assert not path.with_name("pairs.jsonl.resume").exists()


async def test_a_break_while_it_goes_on_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    await run(path, LengthChooser())
    whole = path.read_bytes()
    with PairFile(path, LengthChooser().identity) as file:
        file.open(resume=True)  # and the process dies here, with the file empty
    assert not path.read_bytes()
    again = LengthChooser()
    await run(path, again, resume=True)
    assert (again.asked, path.read_bytes()) == ([], whole)


async def test_pairs_that_had_no_answer_in_time_are_asked_again_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    late = {1: Choice(winner=None, status="TIMEOUT"), 3: Choice(winner=None, status="INCONSISTENT")}
    assert await run(path, LengthChooser(late)) == ["model_b", None, "model_b", None, "model_b"]
    again = LengthChooser()
    assert await run(path, again, resume=True) == ["model_b", "model_b", "model_b", None, "model_b"]
    assert again.asked == [1]
    assert [line["id"] for line in lines(path)] == [f"q{number}" for number in range(5)]


async def test_another_chooser_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    await run(path, LengthChooser())
    whole = path.read_bytes()
    with pytest.raises(InputError, match=r"was chosen with by 'length/1' and this run chooses with 'length/2'"):
        await run(path, LengthChooser(by="length/2"), resume=True)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"digest": "x"}', "[" * 100_000])
async def test_a_file_of_something_else_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="line 1 is no pair of gradewire compare"):
        await run(path, LengthChooser(), resume=True)
    assert path.read_text() == line + "\n"


async def test_a_run_that_keeps_nothing_asks_for_all() -> None:
    chooser = LengthChooser()
    done: list[int] = []
    chosen = await choose_all(PAIRS, chooser, None, done=done.append)
    assert [each.index for each, _ in chosen] == chooser.asked == list(range(5))
    assert done[-1] == 5
