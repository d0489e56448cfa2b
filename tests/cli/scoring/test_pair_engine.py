import json
import os
from pathlib import Path

import pytest
from tests.cli.samples import LengthChooser, pair

from gradewire_cli.problems import InputError
from gradewire_cli.results.journal import Journal
from gradewire_cli.scoring.pair_engine import Choice, PairEngine

PAIRS = [pair(number) for number in range(5)]


async def run(path: Path, chooser: LengthChooser, *, resume: bool = False, finish: bool = True) -> list[str | None]:
    with Journal(path) as journal:
        engine = PairEngine(chooser, journal)
        engine.open(resume=resume)
        chosen = await engine.judge(PAIRS)
        if finish:
            engine.finish(chosen)
    return [choice.winner for _, choice in chosen]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_line_has_what_a_leaderboard_reads(tmp_path: Path) -> None:
    await run(tmp_path / "pairs.jsonl", LengthChooser())
    first, *_ = lines(tmp_path / "pairs.jsonl")
    assert first | {"digest": ""} == {
        "id": "q0",
        "instruction_id": "q0",
        "group": "",
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
    with Journal(path) as journal:
        engine = PairEngine(LengthChooser(), journal)
        engine.open(resume=True)  # and the process dies here
    assert path.read_bytes() == whole
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
    with pytest.raises(
        InputError, match=r"was made with other settings: by was length/1, now length/2. To go on, use the same"
    ):
        await run(path, LengthChooser(by="length/2"), resume=True)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"digest": "x"}', "[" * 100_000])
async def test_a_file_of_something_else_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="line 1 is not a pair from gradewire compare"):
        await run(path, LengthChooser(), resume=True)
    assert path.read_text() == line + "\n"


async def test_a_run_that_keeps_nothing_asks_for_all() -> None:
    chooser = LengthChooser()
    engine = PairEngine(chooser)
    engine.open(resume=False)
    done: list[int] = []
    chosen = await engine.judge(PAIRS, done=lambda: done.append(engine.judged))
    assert [each.index for each, _ in chosen] == chooser.asked == list(range(5))
    assert done == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("rewritten", [0, 2])
async def test_pairs_that_version_0_left_waiting_beside_are_not_asked_again(tmp_path: Path, rewritten: int) -> None:
    """Before, a run that went on moved what was there to FILE.resume, and wrote FILE anew from it."""
    path = tmp_path / "pairs.jsonl"
    await run(path, LengthChooser())
    whole = path.read_bytes()
    path.rename(tmp_path / "pairs.jsonl.resume")
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:rewritten]) + b'{"id": "torn')
    again = LengthChooser()
    assert await run(path, again, resume=True, finish=False) == ["model_b"] * 5
    assert again.asked == []
    await run(path, again, resume=True)
    assert (again.asked, path.read_bytes(), names(tmp_path)) == ([], whole, [path.name])


async def test_pairs_of_scores_that_may_have_changed_are_chosen_anew(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    await run(path, LengthChooser({1: Choice(winner="tie")}))
    chooser = LengthChooser()
    with Journal(path) as journal:
        engine = PairEngine(chooser, journal)
        engine.open(resume=True, again=True)
        engine.finish(await engine.judge(PAIRS))
    assert chooser.asked == list(range(5))
    assert [line["winner"] for line in lines(path)] == ["model_b"] * 5


async def test_two_runs_do_not_write_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    with Journal(path) as journal:
        engine = PairEngine(LengthChooser(), journal)
        engine.open(resume=False)
        with pytest.raises(InputError, match=rf"another run is writing to .* \(process {os.getpid()} on .*Wait until"):
            await run(path, LengthChooser(), resume=True)
    await run(path, LengthChooser(), resume=True)
    assert names(tmp_path) == [path.name]
