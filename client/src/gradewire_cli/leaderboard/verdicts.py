"""Judged pairs as matches for ratings, and a comparison of the judge's and the annotators' preferences."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from gradewire_cli.leaderboard.reading import INCONSISTENT, OK, JudgedPair, judged_pair, majority
from gradewire_cli.rows.cells import LeftOut
from gradewire_stats.preferences import LENGTH, RANDOM, Choice, JudgedPairs, PreferenceReport, preference_agreement
from gradewire_stats.ratings import Matches, SystemRanks, system_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire_cli.rows.formats import Record
    from gradewire_cli.scoring.pair_engine import Winner


_SCORES: Mapping[Winner | None, float] = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, None: 0.5}


@dataclass(slots=True)
class Verdicts:
    """Judged pairs in file order, and the number of skipped rows by reason."""

    pairs: list[JudgedPair] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(cls, records: Iterable[Record], names: Mapping[str, Sequence[str]]) -> Self:
        """Read judged pairs, and count the records that are not pairs."""
        found = cls()
        for record in records:
            try:
                found.pairs.append(judged_pair(record, names))
            except ValueError as error:
                found.left_out.add(str(error), record.position)
        return found

    @property
    def models(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted({model for pair in self.pairs for model in pair.models})

    @property
    def families(self) -> list[str]:
        """Names of the families, sorted. Empty if there is only one family."""
        found = sorted({pair.family for pair in self.pairs} - {""})
        return found if len(found) > 1 else []

    @property
    def without_winner(self) -> Counter[str]:
        """Number of pairs without a winner, by status. These pairs count as ties."""
        return Counter(pair.status for pair in self.pairs if pair.counted is None)

    @property
    def lost_blank(self) -> int:
        """Number of pairs in which a blank answer lost without a judge."""
        return sum(pair.counted != pair.winner for pair in self.pairs)

    def both_orders(self) -> tuple[int, int]:
        """Return the number of pairs with two readable orders, and how many have the same winner in both orders."""
        read = [
            {order.winner for order in pair.orders}
            for pair in self.pairs
            if len(pair.orders) == 2 and all(order.winner is not None for order in pair.orders)
        ]
        return len(read), sum(len(winners) == 1 for winners in read)

    def matches(self, models: Sequence[str] | None = None, numbers: Mapping[str, int] | None = None) -> Matches:
        """Return a match for each pair. `models` and `numbers` fix the indices of the models and instructions."""
        return _matches([(pair, pair.counted, 0, 1.0) for pair in self.pairs], models or self.models, numbers)

    def ordered(self) -> Matches:
        """Return a match for each known order of a pair, or one match for a pair without known orders."""
        rows: list[tuple[JudgedPair, Winner | None, int, float]] = []
        for pair in self.pairs:
            read = [order for order in pair.orders if order.winner is not None]
            rows += [(pair, order.winner, 1 if order.first == "model_a" else -1, 1 / len(read)) for order in read] or [
                (pair, pair.counted, 0, 1.0)
            ]
        return _matches(rows, self.models, None)

    def of_family(self, family: str) -> Verdicts:
        """Return the pairs of one family."""
        return Verdicts([pair for pair in self.pairs if pair.family == family])


def questionable(pairs: Iterable[JudgedPair], *, most: int) -> list[JudgedPair]:
    """Return up to `most` pairs that a person should check.

    Pairs whose two orders contradict each other come first, then pairs without a verdict, then pairs with a probability
    near 0.5.
    """

    def doubt(pair: JudgedPair) -> tuple[int, float]:
        apart = abs(pair.probability_a - 0.5)
        return (0 if pair.status == INCONSISTENT else 1 if pair.status != OK else 2), 1.0 if np.isnan(apart) else apart

    asked = [pair for pair in pairs if pair.status != OK or abs(pair.probability_a - 0.5) < 0.1]
    return sorted(asked, key=doubt)[:most]


def _matches(
    rows: Sequence[tuple[JudgedPair, Winner | None, int, float]],
    models: Sequence[str],
    numbers: Mapping[str, int] | None,
) -> Matches:
    number_of = {model: number for number, model in enumerate(models)}
    instructions = dict(numbers or {})
    for pair, *_ in rows:
        instructions.setdefault(pair.instruction, len(instructions))
    matches = Matches.of(
        models,
        [number_of[pair.models[0]] for pair, *_ in rows],
        [number_of[pair.models[1]] for pair, *_ in rows],
        [_SCORES[winner] for _, winner, *_ in rows],
        [instructions[pair.instruction] for pair, *_ in rows],
        shown_first=[first for _, _, first, _ in rows],
        words=[pair.words for pair, *_ in rows],
    )
    return replace(matches, weights=np.array([weight for *_, weight in rows], dtype=np.float64))


_CHOICES: Mapping[Winner | None, Choice] = {"model_a": "A", "model_b": "B", "tie": "tie", None: "tie"}
_JUDGE = "judge"
_METRIC = re.compile(r"\w+")
_Turn = tuple[tuple[str, frozenset[str]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """The judge's agreement with annotators.

    Attributes:
        unmatched: Number of pairs with votes but no verdict.
        without_words: Number of pairs with unknown lengths. If it is not 0, the baseline "longer answer" is omitted.
    """

    pairs: int
    unmatched: int
    without_words: int
    strata: PreferenceReport
    systems: SystemRanks


def votes_of(pairs: Sequence[JudgedPair]) -> Verdicts:
    """Merge annotated rows with the same instruction, models and turn into one pair. The majority of all votes wins.

    A row without votes counts as one vote for its winner.
    """
    first: dict[_Turn, JudgedPair] = {}
    votes: defaultdict[_Turn, list[Winner]] = defaultdict(list)
    for pair in pairs:
        key = pair.key, pair.turn
        same_way = first.setdefault(key, pair)
        turned = pair if pair.models == same_way.models else pair.turned()
        votes[key] += turned.votes or ([] if turned.winner is None else [turned.winner])
    return Verdicts(
        [
            replace(pair, votes=tuple(votes[key]), winner=majority(votes[key]), orders=())
            for key, pair in first.items()
            if votes[key]
        ]
    )


def human_agreement(judged: Verdicts, people: Verdicts, *, resamples: int, seed: int) -> HumanAgreement | None:
    """Compare the judge with annotators on the pairs that both judged. Return None if there are no such pairs.

    A pair on which the judge returned no verdict counts as a tie.
    """
    exact = {(pair.key, pair.turn): pair for pair in judged.pairs}
    any_turn = {pair.key: pair for pair in judged.pairs}

    def of_judge(theirs: JudgedPair) -> JudgedPair | None:
        # If the judge or the annotators name no turn, their verdict is valid for all turns.
        ours = exact.get((theirs.key, 0)) if theirs.turn else any_turn.get(theirs.key)
        return exact.get((theirs.key, theirs.turn), ours)

    both = [(pair, our) for pair in people.pairs if (our := of_judge(pair)) is not None]
    if not both:
        return None
    sides = [(theirs, our if our.models == theirs.models else our.turned()) for theirs, our in both]
    words = [our.words for _, our in sides]
    without_words = sum(bool(np.isnan(each).any()) for each in words)
    strata = preference_agreement(
        JudgedPairs(
            votes=[[_CHOICES[vote] for vote in theirs.votes] for theirs, _ in sides],
            choices={_name(both[0][1].by): [_CHOICES[our.counted] for _, our in sides]},
            lengths_words=None if without_words else ([a for a, _ in words], [b for _, b in words]),
            instructions=[theirs.instruction for theirs, _ in sides],
        ),
        resamples=resamples,
        seed=seed,
    )
    models = sorted({*judged.models, *people.models})
    instructions = dict.fromkeys(pair.instruction for pair in (*judged.pairs, *people.pairs))
    numbers = {instruction: number for number, instruction in enumerate(instructions)}
    systems = system_ranks(
        judged.matches(models, numbers), people.matches(models, numbers), resamples=resamples, seed=seed
    )
    return HumanAgreement(
        pairs=len(both),
        unmatched=len(people.pairs) - len(both),
        without_words=without_words,
        strata=strata,
        systems=systems,
    )


def _name(by: str) -> str:
    found = _METRIC.match(by)
    return found[0] if found and found[0] not in {LENGTH, RANDOM} else _JUDGE
