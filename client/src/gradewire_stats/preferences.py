"""Preferences between two answers: evaluators against the majority of annotators (VisIT-Bench, section 4.3)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, check_lengths, estimate, question_clusters, ratio_draws

Choice = Literal["A", "B", "tie"]
LENGTH, RANDOM = "length", "random"


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Pairs of answers A and B to the same instruction.

    Attributes:
        choices: Preference of each evaluator, per pair; None if it failed, which leaves the pair out of its statistics.
        lengths_words: Words of all answers A, and of all answers B, for the baseline that prefers the longer one.
        instructions: Key of the instruction of each pair: pairs with the same key are drawn together; empty if each has
            its own. The same words about another image need another key.
    """

    votes: Sequence[Sequence[Choice]]
    choices: Mapping[str, Sequence[Choice | None]]
    lengths_words: tuple[Sequence[float], Sequence[float]] | None = None
    instructions: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class StratumAgreement:
    """Pairs with the same majority among annotators.

    Attributes:
        stratum: Votes for the majority over all votes, as "4/5"; "all" for all pairs with a majority.
        pairs: Pairs that the evaluator judged.
        failed: Pairs that it did not judge.
        ties: Judged pairs that it called a tie, decided by the coin.
        reproduced: Share of the judged pairs on which it agrees with the majority, 0 to 1.
    """

    stratum: str
    pairs: int
    failed: int
    ties: int
    reproduced: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorPairs:
    """An evaluator, or the baseline "length" or "random", with the surest stratum first and "all" last."""

    evaluator: str
    strata: Sequence[StratumAgreement]


@dataclass(frozen=True, slots=True)
class PreferenceReport:
    """The result of `preference_agreement`.

    Attributes:
        evaluators: The given ones, then "length" if lengths are known, then "random".
        no_majority: Pairs left out because no choice got more than half of the votes.
        voted_tie: Pairs left out because the majority called them a tie, which a forced choice cannot reproduce.
    """

    evaluators: Sequence[EvaluatorPairs]
    no_majority: int
    voted_tie: int


def choices_from_scores(scores_a: NDArray[np.float64], scores_b: NDArray[np.float64]) -> list[Choice | None]:
    """Prefer the answer with the higher score; a tie if they are equal, None if one failed (NaN).

    Args:
        scores_a: float64[pairs].
        scores_b: float64[pairs].
    """
    return [
        None if np.isnan(a) or np.isnan(b) else "A" if a > b else "B" if b > a else "tie"
        for a, b in zip(scores_a, scores_b, strict=True)
    ]


def preference_agreement(pairs: JudgedPairs, *, resamples: int = 5000, seed: int = 0) -> PreferenceReport:
    """Measure the share of majority votes that evaluators reproduce.

    Here, and only here, a coin decides an evaluator's tie, to compare it with evaluators that never tie. The coin falls
    the same way for all evaluators.

    Args:
        pairs: Votes and choices.
        resamples: Draws of whole instructions for the intervals.
        seed: Seed of coin and draws.

    Raises:
        ValueError: Columns differ in length, a vote or choice is not A, B or tie, or an evaluator has the name of a
            baseline.
    """
    _check(pairs)
    majorities = [_majority(votes) for votes in pairs.votes]
    kept = [number for number, (winner, _) in enumerate(majorities) if winner in {"A", "B"}]
    winners = np.array([majorities[number][0] for number in kept], dtype=object)
    strata = np.array([majorities[number][1] for number in kept], dtype=object)
    random = np.random.default_rng(seed)
    coin = np.where(random.random(len(pairs.votes)) < 0.5, "A", "B")[kept]
    masks: list[_Masks] = []
    for evaluator, column in _with_baselines(pairs, random).items():
        said = np.array([column[number] for number in kept], dtype=object)
        tied = said == "tie"
        judged = np.array([choice is not None for choice in said], dtype=bool)
        right = judged & (np.where(tied, coin, said) == winners)
        for stratum in [*sorted(set(strata), key=_sureness), "all"]:
            here = (strata == stratum) | (stratum == "all")
            masks.append(
                _Masks(evaluator, stratum, here & judged, here & right, here & tied, int((here & ~judged).sum()))
            )
    instructions = [pairs.instructions[number] for number in kept] if pairs.instructions else [""] * len(kept)
    shares = _shares(masks, question_clusters([""] * len(kept), instructions), resamples=resamples, seed=seed)
    lines: dict[str, list[StratumAgreement]] = {}
    for mask, share in zip(masks, shares, strict=True):
        counts = int(mask.judged.sum()), mask.failed, int(mask.tied.sum())
        lines.setdefault(mask.evaluator, []).append(StratumAgreement(mask.stratum, *counts, share))
    all_winners = [winner for winner, _ in majorities]
    return PreferenceReport(
        [EvaluatorPairs(evaluator, strata_of_it) for evaluator, strata_of_it in lines.items()],
        all_winners.count(None),
        all_winners.count("tie"),
    )


@dataclass(frozen=True, slots=True)
class _Masks:
    """An evaluator in a stratum: bool[pairs with a majority] that it judged, got right, and called a tie."""

    evaluator: str
    stratum: str
    judged: NDArray[np.bool_]
    right: NDArray[np.bool_]
    tied: NDArray[np.bool_]
    failed: int


def _with_baselines(pairs: JudgedPairs, random: np.random.Generator) -> dict[str, Sequence[Choice | None]]:
    choices: dict[str, Sequence[Choice | None]] = dict(pairs.choices)
    if pairs.lengths_words is not None:
        lengths_a, lengths_b = (np.asarray(words, dtype=np.float64) for words in pairs.lengths_words)
        choices[LENGTH] = choices_from_scores(lengths_a, lengths_b)
    # Draw again: with the coin of the others this baseline would agree with their ties.
    choices[RANDOM] = ["A" if draw < 0.5 else "B" for draw in random.random(len(pairs.votes))]
    return choices


def _check(pairs: JudgedPairs) -> None:
    count = len(pairs.votes)
    lengths = {f"choices of {name}": len(column) for name, column in pairs.choices.items()}
    if pairs.lengths_words is not None:
        lengths |= {f"lengths of {side}": len(words) for side, words in zip("AB", pairs.lengths_words, strict=True)}
    lengths |= {"instructions": len(pairs.instructions)} if pairs.instructions else {}
    check_lengths(count, "pairs with votes", lengths)
    if taken := {LENGTH, RANDOM} & pairs.choices.keys():
        raise ValueError(f"{taken.pop()} is the name of a baseline: give the evaluator another name")
    allowed = {"A", "B", "tie"}
    votes = {vote for given in pairs.votes for vote in given}
    choices = {choice for column in pairs.choices.values() for choice in column if choice is not None}
    for name, values in (("vote", votes), ("choice", choices)):
        if strange := values - allowed:
            raise ValueError(f"a {name} is {min(map(repr, strange))}: use A, B or tie")


def _majority(votes: Sequence[Choice]) -> tuple[Choice | None, str]:
    """Return the choice of more than half, or None, and its share of the votes."""
    if not votes:
        return None, ""
    winner, count = Counter(votes).most_common(1)[0]
    return (winner if 2 * count > len(votes) else None), f"{count}/{len(votes)}"


def _sureness(stratum: str) -> tuple[float, int]:
    count, total = map(int, stratum.split("/"))
    return -count / total, -total


def _shares(masks: Sequence[_Masks], clusters: NDArray[np.intp], *, resamples: int, seed: int) -> list[Estimate]:
    """Return the share of right ones among the judged, for every mask, from the same draws."""
    if not len(clusters):
        return [estimate(np.nan, np.array([]), questions=0) for _ in masks]

    def sums(columns: list[NDArray[np.bool_]]) -> NDArray[np.float64]:
        return np.stack([np.bincount(clusters, weights=column) for column in columns], axis=1)

    right, judged = sums([mask.right for mask in masks]), sums([mask.judged for mask in masks])
    with np.errstate(invalid="ignore", divide="ignore"):
        points = right.sum(axis=0) / judged.sum(axis=0)
    values = ratio_draws(right, judged, resamples=resamples, seed=seed)
    behind = np.count_nonzero(judged, axis=0)
    return [
        estimate(float(point), values[:, place], questions=int(behind[place])) for place, point in enumerate(points)
    ]
