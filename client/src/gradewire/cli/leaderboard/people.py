"""What people preferred, beside what the judge did."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gradewire.agreement.papers.pairwise import LENGTH, RANDOM, JudgedPairs, PairwiseReport, pairwise_agreement
from gradewire.cli.leaderboard.reading import majority
from gradewire.cli.leaderboard.verdicts import Verdicts, instruction_numbers
from gradewire.ratings import SystemRanks, system_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.agreement.papers.pairwise import Choice
    from gradewire.cli.choosing.pairs import Winner
    from gradewire.cli.leaderboard.pairs import JudgedPair

_CHOICES: Mapping[Winner | None, Choice] = {"model_a": "A", "model_b": "B", "tie": "tie", None: "tie"}
_JUDGE = "judge"
# Of a line, its name.
_METRIC = re.compile(r"\w+")
_Turn = tuple[tuple[str, frozenset[str]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement:
    """How far the judge says what people say.

    Attributes:
        pairs: Pairs that both know.
        unmatched: Pairs that only people know.
        without_words: Pairs that do not say how many words both answers have; with one such, the baseline that takes
            the longer answer is left out, for it would be of other pairs.
        strata: Share of the majority votes that the judge reproduces, beside the baselines.
        systems: Correlation of the ratings.
    """

    pairs: int
    unmatched: int
    without_words: int
    strata: PairwiseReport
    systems: SystemRanks


def voted(pairs: Sequence[JudgedPair]) -> Verdicts:
    """The pairs of people, each turn of a conversation once; the winner is the majority of the votes of all rows.

    A row without votes is one vote, its winner.
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
    """Holds the judge against people on the pairs that both know; None where there is none.

    A pair on which the judge has no verdict is a tie of the judge's.
    """
    exact = {(pair.key, pair.turn): pair for pair in judged.pairs}
    any_turn = {pair.key: pair for pair in judged.pairs}

    def of_judge(theirs: JudgedPair) -> JudgedPair | None:
        # A side that does not tell turns apart has one verdict for all of them.
        ours = exact.get((theirs.key, 0)) if theirs.turn else any_turn.get(theirs.key)
        return exact.get((theirs.key, theirs.turn), ours)

    both = [(pair, our) for pair in people.pairs if (our := of_judge(pair)) is not None]
    if not both:
        return None
    sides = [(theirs, our if our.models == theirs.models else our.turned()) for theirs, our in both]
    words = [our.words for _, our in sides]
    without_words = sum(bool(np.isnan(each).any()) for each in words)
    strata = pairwise_agreement(
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
    numbers = instruction_numbers(judged, people)
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
    """What judged, as the table calls it."""
    found = _METRIC.match(by)
    return found[0] if found and found[0] not in {LENGTH, RANDOM} else _JUDGE
