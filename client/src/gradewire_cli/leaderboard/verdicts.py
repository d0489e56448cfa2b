"""Judged pairs as matches for ratings, and a comparison of the judge's and the annotators' preferences."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self

import numpy as np

from gradewire_cli.leaderboard.reading import INCONSISTENT, OK, JudgedPair, judged_pair, majority
from gradewire_cli.rows.cells import LeftOut
from gradewire_cli.rows.formats import shown_id
from gradewire_stats.preferences import LENGTH, RANDOM, Choice, JudgedPairs, PreferenceReport, preference_agreement
from gradewire_stats.ratings import Matches, SystemRanks, system_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire_cli.rows.formats import Record
    from gradewire_cli.scoring.choosers import DrawsOver
    from gradewire_cli.scoring.pair_engine import Winner


_SCORES: Mapping[Winner, float] = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class ModelFamilies:
    """Families of models and of the judges made from them.

    Attributes:
        patterns: Each family's patterns for names of models and for identifiers of judges, as in file names.
    """

    patterns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """Return the first family of a model or judge, or ""."""
        return next(
            (family for family, patterns in self.patterns.items() if any(fnmatchcase(name, each) for each in patterns)),
            "",
        )

    def own_side(self, pair: JudgedPair) -> int:
        """Return 1 if only answer A is from the judge's family, -1 if only B is, otherwise 0."""
        judge = self.of(pair.by) if pair.by else ""
        if not judge:
            return 0
        a, b = (self.of(model) == judge for model in pair.models)
        return int(a) - int(b)


@dataclass(slots=True)
class Verdicts:
    """Judged pairs in file order, and the number of skipped rows by reason.

    Attributes:
        pairs: All pairs, also those that ratings leave out because they have no winner (see `JudgedPair.counted`).
    """

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
        """Names of the models with a rated pair, sorted."""
        return sorted({model for pair in self.rated for model in pair.models})

    @property
    def unrated_models(self) -> list[str]:
        """Names of the models without a rated pair, sorted."""
        return sorted({model for pair in self.pairs for model in pair.models}.difference(self.models))

    @property
    def rated(self) -> list[JudgedPair]:
        """The pairs with a winner or a tie."""
        return [pair for pair in self.pairs if pair.counted is not None]

    @property
    def groups(self) -> list[str]:
        """Names of the groups, sorted. Empty if there is only one group."""
        found = sorted({pair.group for pair in self.rated} - {""})
        return found if len(found) > 1 else []

    @property
    def without_winner(self) -> Counter[str]:
        """Number of pairs that ratings leave out because they have no winner, by status."""
        return Counter(pair.status for pair in self.pairs if pair.counted is None)

    @property
    def examples_without_winner(self) -> dict[str, list[JudgedPair]]:
        """The first pairs without a winner, by status."""
        found: dict[str, list[JudgedPair]] = {}
        for pair in self.pairs:
            if pair.counted is None and len(found.setdefault(pair.status, [])) < _EXAMPLES:
                found[pair.status].append(pair)
        return found

    @property
    def contradictory(self) -> int:
        """Number of pairs whose two orders have different verdicts. These pairs count as ties."""
        return sum(pair.status == INCONSISTENT and pair.counted == "tie" for pair in self.pairs)

    def without_winner_sentence(self) -> str:
        """Return a sentence on the pairs without a winner, with reasons and examples, or "" if there are none."""
        missing, examples = self.without_winner, self.examples_without_winner
        if not missing:
            return ""
        listed = ", ".join(
            f"{status} {times} (for example {', '.join(map(place_of, examples[status]))})"
            for status, times in sorted(missing.items())
        )
        pairs = "1 pair" if missing.total() == 1 else f"{missing.total()} pairs"
        return f"left out {pairs} without a winner: {listed}"

    @property
    def lost_blank(self) -> int:
        """Number of pairs in which a blank answer lost without a judge."""
        return sum(pair.winner is None and pair.counted in {"model_a", "model_b"} for pair in self.pairs)

    def both_orders(self) -> tuple[int, int]:
        """Return the number of pairs with two readable orders, and how many have the same winner in both orders."""
        read = [
            {order.winner for order in pair.orders}
            for pair in self.pairs
            if len(pair.orders) == 2 and all(order.winner is not None for order in pair.orders)
        ]
        return len(read), sum(len(winners) == 1 for winners in read)

    def drawn_over(self, unit: DrawsOver) -> Verdicts:
        """Return the pairs with the units of draws. A pair without a text is drawn with its instruction."""
        if unit == "instructions":
            return self
        return Verdicts([replace(pair, drawn_with=pair.question.strip()) for pair in self.pairs], self.left_out)

    def each_vote(self) -> Verdicts:
        """Return a pair for each vote instead of each pair whose winner is the majority of the votes."""
        split = [
            replace(pair, winner=vote, votes=(), by_votes=False)
            for pair in self.pairs
            for vote in (pair.votes if pair.by_votes else [pair.winner])
        ]
        return Verdicts(split, self.left_out)

    def matches(self, models: Sequence[str] | None = None, numbers: Mapping[str, int] | None = None) -> Matches:
        """Return a match for each rated pair. `models` and `numbers` fix the indices of the models and instructions."""
        rows = [(pair, winner, 0, 1.0) for pair in self.pairs if (winner := pair.counted) is not None]
        return _matches(rows, models or self.models, numbers)

    def ordered(self, families: ModelFamilies | None = None) -> Matches:
        """Return a match for each known order of a rated pair, or one match for a rated pair without known orders.

        With `families`, the matches say which answer is from the judge's own family.
        """
        rows: list[tuple[JudgedPair, Winner, int, float]] = []
        for pair in self.pairs:
            if (winner := pair.counted) is None:
                continue
            read = [(order.first, order.winner) for order in pair.orders if order.winner is not None]
            rows += [(pair, won, 1 if first == "model_a" else -1, 1 / len(read)) for first, won in read] or [
                (pair, winner, 0, 1.0)
            ]
        return _matches(rows, self.models, None, families)

    def of_group(self, group: str) -> Verdicts:
        """Return the pairs of one group."""
        return Verdicts([pair for pair in self.pairs if pair.group == group])


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
    rows: Sequence[tuple[JudgedPair, Winner, int, float]],
    models: Sequence[str],
    numbers: Mapping[str, int] | None,
    families: ModelFamilies | None = None,
) -> Matches:
    number_of = {model: number for number, model in enumerate(models)}
    instructions = dict(numbers or {})
    for pair, *_ in rows:
        instructions.setdefault(pair.unit, len(instructions))
    matches = Matches.of(
        models,
        [number_of[pair.models[0]] for pair, *_ in rows],
        [number_of[pair.models[1]] for pair, *_ in rows],
        [_SCORES[winner] for _, winner, *_ in rows],
        [instructions[pair.unit] for pair, *_ in rows],
        shown_first=[first for _, _, first, _ in rows],
        words=[pair.words for pair, *_ in rows],
        own_family=None if families is None else [families.own_side(pair) for pair, *_ in rows],
    )
    return replace(matches, weights=np.array([weight for *_, weight in rows], dtype=np.float64))


def place_of(pair: JudgedPair) -> str:
    """Return a pair's id and its position in the file."""
    return f"{shown_id(pair.id or pair.instruction)} at {pair.position}"


_CHOICES: Mapping[Winner, Choice] = {"model_a": "A", "model_b": "B", "tie": "tie"}
_JUDGE = "judge"
_METRIC = re.compile(r"\w+")
_Turn = tuple[tuple[str, frozenset[str]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """The judge's agreement with annotators.

    Attributes:
        unmatched: Number of pairs with votes but no verdict.
        without_winner: Number of pairs with votes that the judge judged without a winner. They are left out.
        without_words: Number of pairs with unknown lengths. If it is not 0, the baseline "longer answer" is omitted.
    """

    pairs: int
    unmatched: int
    without_winner: int
    without_words: int
    strata: PreferenceReport
    systems: SystemRanks


def votes_of(pairs: Sequence[JudgedPair]) -> Verdicts:
    """Merge annotated rows with the same instruction, models and turn into one pair. The majority of all votes wins.

    A row without votes counts as one vote for its winner. A row without votes or a winner is left out.
    """
    first: dict[_Turn, JudgedPair] = {}
    votes: defaultdict[_Turn, list[Winner]] = defaultdict(list)
    left_out = LeftOut()
    for pair in pairs:
        if not pair.votes and pair.winner is None:
            left_out.add("no vote and no winner", pair.position)
            continue
        key = pair.key, pair.turn
        same_way = first.setdefault(key, pair)
        turned = pair if pair.models == same_way.models else pair.turned()
        votes[key] += turned.votes or filter(None, [turned.winner])
    return Verdicts(
        [
            replace(pair, votes=tuple(votes[key]), winner=majority(votes[key]), by_votes=True, orders=())
            for key, pair in first.items()
        ],
        left_out,
    )


def human_agreement(
    judged: Verdicts, people: Verdicts, *, each_vote: bool = False, resamples: int, seed: int
) -> HumanAgreement | None:
    """Compare the judge with annotators on the pairs that both judged. Return None if there are no such pairs.

    With `each_vote`, annotators' ratings count each vote as a match instead of the majority.
    """
    exact = {(pair.key, pair.turn): pair for pair in judged.pairs}
    any_turn = {pair.key: pair for pair in judged.pairs}

    def of_judge(theirs: JudgedPair) -> JudgedPair | None:
        # If the judge or the annotators name no turn, their verdict is valid for all turns.
        ours = exact.get((theirs.key, 0)) if theirs.turn else any_turn.get(theirs.key)
        return exact.get((theirs.key, theirs.turn), ours)

    found = [(pair, our) for pair in people.pairs if (our := of_judge(pair)) is not None]
    both = [(pair, our) for pair, our in found if our.counted is not None]
    if not both:
        return None
    sides = [(theirs, our if our.models == theirs.models else our.turned()) for theirs, our in both]
    words = [our.words for _, our in sides]
    without_words = sum(bool(np.isnan(each).any()) for each in words)
    strata = preference_agreement(
        JudgedPairs(
            votes=[[_CHOICES[vote] for vote in theirs.votes] for theirs, _ in sides],
            choices={_name(both[0][1].by): [_CHOICES[our.counted] for _, our in sides if our.counted is not None]},
            lengths_words=None if without_words else ([a for a, _ in words], [b for _, b in words]),
            instructions=[theirs.unit for theirs, _ in sides],
        ),
        resamples=resamples,
        seed=seed,
    )
    models = sorted({*judged.models, *people.models})
    units = dict.fromkeys(pair.unit for pair in (*judged.pairs, *people.pairs))
    numbers = {unit: number for number, unit in enumerate(units)}
    voted = people.each_vote() if each_vote else people
    systems = system_ranks(
        judged.matches(models, numbers), voted.matches(models, numbers), resamples=resamples, seed=seed
    )
    return HumanAgreement(
        pairs=len(both),
        unmatched=len(people.pairs) - len(found),
        without_winner=len(found) - len(both),
        without_words=without_words,
        strata=strata,
        systems=systems,
    )


def _name(by: str) -> str:
    found = _METRIC.match(by)
    return found[0] if found and found[0] not in {LENGTH, RANDOM} else _JUDGE
