"""Rounds of pairs: until the ratings are certain enough, the same after a break, cheaper than all pairs."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gradewire.cli.choosing.choosers import Chosen
from gradewire.cli.choosing.engine import PairEngine
from gradewire.cli.choosing.pairs import AnswerPair, Choice
from gradewire.cli.input.rows import Row
from gradewire.cli.leaderboard.answers import Answers, texts_digest
from gradewire.cli.leaderboard.judging import PairJudging, Sampling
from gradewire.cli.leaderboard.result import RatingOptions
from gradewire.cli.leaderboard.verdicts import Verdicts
from gradewire.cli.output.journal import Journal
from gradewire.cli.output.progress import progress

MODELS = ("a", "b", "c", "d", "e")
OPTIONS = RatingOptions(resamples=100)


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
        judging = PairJudging(answers=answers(models), recorded=Verdicts(), engine=engine, options=OPTIONS)
        judging.open(resume=True)
        asyncio.run(judging.all_pairs(silent) if width is None else judging.until(Sampling(width, most), silent))
        return judging


def test_rounds_end_when_the_intervals_are_narrow_enough(tmp_path: Path) -> None:
    chooser = NoisyJudge()
    judging = judge(chooser, tmp_path / "pairs.jsonl")
    full = answers().pool(MODELS).pairs
    assert full == 60 * 10
    assert len(set(chooser.asked)) == len(chooser.asked) < full / 2
    assert list(judging._uncertain(judging.verdicts(), 190)) == []
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
