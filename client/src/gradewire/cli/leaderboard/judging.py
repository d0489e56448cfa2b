"""Has pairs judged: all of them, or round by round those that tell most, until the ratings are certain enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gradewire.cli.input.record import Record
from gradewire.cli.leaderboard.answers import texts_digest
from gradewire.cli.leaderboard.reading import PAIR_COLUMNS, judged_pair
from gradewire.cli.leaderboard.verdicts import Verdicts
from gradewire.cli.problems import InputError
from gradewire.ratings import ChosenPair, next_pairs, pair_counts, rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradewire.cli.choosing.engine import PairEngine
    from gradewire.cli.leaderboard.answers import Answers
    from gradewire.cli.leaderboard.pairs import JudgedPair
    from gradewire.cli.leaderboard.result import RatingOptions
    from gradewire.cli.output.progress import Progress
    from gradewire.ratings import ModelRating

# Draws of fewer instructions hardly differ: an interval over them looks narrow before it is.
LEAST_INSTRUCTIONS = 30
LEAST_ROUND, ROUNDS = 32, 50
"""Pairs of a round, at least; and how many rounds a full round robin would be."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """When to stop.

    Attributes:
        target_width: Of every model's interval (Bradley and Terry, 95 %), points.
        most: Pairs that are judged at most, over all runs; None for no bound.
    """

    target_width: float
    most: int | None = None


@dataclass(slots=True, kw_only=True)
class PairJudging:
    """Judges pairs of answers that are not known yet.

    Attributes:
        answers: What is compared.
        recorded: Pairs that were judged elsewhere; those of the same models and instruction are not judged again.
        engine: Has the pairs judged; made with `texts_digest`, and opened here.
        options: Of the ratings.
        pairs: What this run and those before have judged, by instruction and models, in the order in which they first
            were.
        models: All of them, sorted: those with answers and those of pairs that are judged.
        before: Pairs of runs before.
        outdated: Of these, those whose answers have changed since: they are left out and judged anew.
    """

    answers: Answers
    recorded: Verdicts
    engine: PairEngine
    options: RatingOptions
    pairs: dict[tuple[str, frozenset[str]], JudgedPair] = field(default_factory=dict)
    models: list[str] = field(init=False)
    before: int = field(init=False)
    outdated: int = field(init=False)

    def open(self, *, resume: bool) -> None:
        """Take in what earlier runs have judged; raises InputError as `PairEngine.open` does."""
        self.engine.take = self._take
        self.engine.open(resume=resume)
        self.before = len(self.pairs)
        for key, pair in list(self.pairs.items()):
            rows = self.answers.rows.get(key[0], {})
            if all(model in rows for model in pair.models):
                chosen = ChosenPair(key[0], 0, 1)
                if texts_digest(self.answers.pair(chosen, pair.models, 0)) != pair.digest:
                    del self.pairs[key]
        self.outdated = self.before - len(self.pairs)
        judged = self.verdicts().pairs
        self.models = sorted({*self.answers.models, *(model for pair in judged for model in pair.models)})

    def _take(self, number: int, line: Mapping[str, Any]) -> None:
        """Take in a line of the file."""
        try:
            pair = judged_pair(Record(number - 1, f"line {number}", line), PAIR_COLUMNS)
        except ValueError as error:
            path = self.engine.journal and self.engine.journal.path
            raise InputError(f"{path}: line {number}: {error}: give another --out") from error
        # An id that looks like a list of turns is read as their text elsewhere; here it has to be what answers have.
        if isinstance(instruction := line.get("instruction_id"), str):
            pair = replace(pair, instruction=instruction)
        self.pairs[pair.key] = pair

    def verdicts(self) -> Verdicts:
        """Recorded pairs, then those that were judged here."""
        return Verdicts([*self.recorded.pairs, *self.pairs.values()], self.recorded.left_out)

    async def all_pairs(self, shown: Progress) -> None:
        """Judges every pair; raises GradewireError as the chooser does."""
        await self._judge(list(self.answers.pool(self.models).all_pairs()), None, shown)

    async def until(self, sampling: Sampling, shown: Progress) -> None:
        """Judges round by round until every model that has answers is known well enough, or no pair is left.

        A round is chosen by what the rounds before it said, and its number stands beside its pairs. So a run that is
        taken up finds its last round again, judges what is left of it, and ends with the pairs of a run without a
        break.

        Raises:
            GradewireError: As the chooser does.
        """
        number = max((pair.round for pair in self.pairs.values() if pair.round is not None), default=-1)
        last = {key for key, pair in self.pairs.items() if pair.round == number}
        before = [pair for key, pair in self.pairs.items() if key not in last]
        batch = self._round(sampling, before)
        # Of another field or other options the last round is another one: it stays as it is.
        if last and last <= {self._key(chosen) for chosen in batch}:
            await self._judge(batch, number, shown)
        while batch := self._round(sampling, list(self.pairs.values())):
            number += 1
            await self._judge(batch, number, shown)

    def _round(self, sampling: Sampling, judged: list[JudgedPair]) -> list[ChosenPair]:
        """What to judge next where these pairs are judged."""
        pool = self.answers.pool(self.models)
        numbers = {model: number for number, model in enumerate(self.models)}
        verdicts = Verdicts([*self.recorded.pairs, *judged])
        room = pool.pairs if sampling.most is None else sampling.most - len(judged)
        uncertain = [numbers[model] for model in self._uncertain(verdicts, sampling.target_width)]
        if room <= 0 or not uncertain:
            return []
        known = {
            ChosenPair(pair.instruction, *sorted(numbers[model] for model in pair.models)) for pair in verdicts.pairs
        }
        return next_pairs(
            pool,
            known,
            pair_counts(verdicts.matches(self.models)),
            uncertain=uncertain,
            at_most=min(room, max(LEAST_ROUND, pool.pairs // ROUNDS)),
            seed=self.options.seed,
        )

    def _uncertain(self, verdicts: Verdicts, width: float) -> Iterator[str]:
        """Models with answers whose interval is wider, or whose instructions are too few to say."""
        table = None
        if verdicts.pairs:
            anchor = self.options.anchor if self.options.anchor in verdicts.models else None
            table = rate(
                verdicts.matches(),
                anchor=anchor,
                resamples=self.options.resamples,
                seed=self.options.seed,
                with_elo=False,
            )
        lines = {} if table is None else {line.model: line for line in table.models}
        for model in self.answers.models:
            line = lines.get(model)
            there = sum(model in rows and len(rows) > 1 for rows in self.answers.rows.values())
            if line is None or self._is_uncertain(line, there, width):
                yield model

    @staticmethod
    def _is_uncertain(line: ModelRating, instructions: int, width: float) -> bool:
        found = line.bradley_terry
        if line.matches and not line.bounded:
            # Of a model that loses all its matches more of them say little: one on each instruction is enough.
            return found.questions < instructions
        few = found.questions < min(LEAST_INSTRUCTIONS, instructions)
        return few or math.isnan(found.low) or found.high - found.low > width

    async def _judge(self, chosen: Sequence[ChosenPair], number: int | None, shown: Progress) -> None:
        """Has the pairs judged that are not known yet."""
        elsewhere = {pair.key for pair in self.recorded.pairs}
        left = [each for each in chosen if (key := self._key(each)) not in elsewhere and key not in self.pairs]
        asked = [self.answers.pair(each, self.models, place) for place, each in enumerate(left)]
        told = {} if number is None else {"round": number}
        await self.engine.judge(asked, anew=True, told=told, done=lambda: shown.done(len(self.pairs)))

    def _key(self, chosen: ChosenPair) -> tuple[str, frozenset[str]]:
        return chosen.instruction, frozenset((self.models[chosen.first], self.models[chosen.second]))
