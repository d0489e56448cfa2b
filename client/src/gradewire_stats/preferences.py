"""Compare evaluators' preferences between two answers with the annotators' majority (VisIT-Bench, section 4.3)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, check_lengths, question_clusters, ratio_estimates

Choice = Literal["A", "B", "tie"]
LENGTH, RANDOM = "length", "random"


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Pairs of answers A and B to the same instruction, with annotators' votes.

    Attributes:
        choices: Each evaluator's choice for each pair. None means that the evaluator failed, and excludes the pair from
            the evaluator's statistics.
        lengths_words: Numbers of words in answers A and in answers B, for the baseline that prefers the longer answer.
        instructions: Key of each pair's instruction. Pairs with the same key are drawn together. If empty, every pair
            has its own instruction. The same instruction about a different image needs a different key.
    """

    votes: Sequence[Sequence[Choice]]
    choices: Mapping[str, Sequence[Choice | None]]
    lengths_words: tuple[Sequence[float], Sequence[float]] | None = None
    instructions: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class StratumAgreement:
    """An evaluator's agreement on pairs with equally large majorities.

    Attributes:
        stratum: Votes for the majority out of all votes, for example "4/5"; "all" stands for all pairs with a majority.
        pairs: Number of pairs that the evaluator judged.
        ties: Number of judged pairs that the evaluator called a tie, so that a coin decided.
        reproduced: Share of the judged pairs on which the evaluator agrees with the majority, 0 to 1.
    """

    stratum: str
    pairs: int
    failed: int
    ties: int
    reproduced: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorPairs:
    """An evaluator's (or baseline's) agreement by stratum, with the largest majority first and "all" last."""

    evaluator: str
    strata: Sequence[StratumAgreement]


@dataclass(frozen=True, slots=True)
class PreferenceReport:
    """The result of `preference_agreement`.

    Attributes:
        evaluators: The given evaluators, then the baselines "length" (if lengths are known) and "random".
        no_majority: Number of pairs left out because no choice got more than half of the votes.
        voted_tie: Number of pairs left out because the majority voted for a tie, which a forced choice cannot
            reproduce.
    """

    evaluators: Sequence[EvaluatorPairs]
    no_majority: int
    voted_tie: int


def choices_from_scores(scores_a: NDArray[np.float64], scores_b: NDArray[np.float64]) -> list[Choice | None]:
    """Return the answer with the higher score in each pair, "tie" if scores are equal, or None if a score is NaN.

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

    A coin decides an evaluator's ties, so that evaluators with and without ties can be compared. For each pair, all
    evaluators use the same coin.

    Args:
        pairs: Votes and choices.
        resamples: Number of draws of whole instructions for the intervals.
        seed: Seed for coins and draws.

    Raises:
        ValueError: Columns differ in length; a vote or choice is not A, B or tie; or an evaluator has a baseline's
            name.
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
    # Draw new random numbers, because with the same coins this baseline would agree with the evaluators' ties.
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
        raise ValueError(f"{taken.pop()} is the name of a baseline. Give the evaluator a different name")
    allowed = {"A", "B", "tie"}
    votes = {vote for given in pairs.votes for vote in given}
    choices = {choice for column in pairs.choices.values() for choice in column if choice is not None}
    for name, values in (("vote", votes), ("choice", choices)):
        if strange := values - allowed:
            raise ValueError(f"a {name} is {min(map(repr, strange))}. Use A, B or tie")


def _majority(votes: Sequence[Choice]) -> tuple[Choice | None, str]:
    """Return the choice with more than half of the votes, or None, and the share of the most frequent choice."""
    if not votes:
        return None, ""
    winner, count = Counter(votes).most_common(1)[0]
    return (winner if 2 * count > len(votes) else None), f"{count}/{len(votes)}"


def _sureness(stratum: str) -> tuple[float, int]:
    count, total = map(int, stratum.split("/"))
    return -count / total, -total


def _shares(masks: Sequence[_Masks], clusters: NDArray[np.intp], *, resamples: int, seed: int) -> list[Estimate]:
    right, judged = [mask.right for mask in masks], [mask.judged for mask in masks]
    return ratio_estimates(right, judged, clusters, resamples=resamples, seed=seed)
