"""Choose the pairs to judge next, to make uncertain ratings certain with as few judgements as possible."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import PairCounts
from gradewire_stats.ratings.strengths import bradley_terry

# Information about a model without matches: as much as one match against an equally strong model gives.
_PRIOR_INFORMATION = 0.25


@dataclass(frozen=True, slots=True, order=True)
class ChosenPair:
    """An instruction's key and two models' numbers, the lower number first."""

    instruction: str
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class PairPool:
    """All pairs of answers that can be judged.

    Attributes:
        answered: Numbers of the models with an answer, by instruction key.
    """

    models: int
    answered: Mapping[str, Collection[int]]

    @property
    def pairs(self) -> int:
        """Number of pairs in a full round robin."""
        return sum(len(models) * (len(models) - 1) // 2 for models in self.answered.values())

    def all_pairs(self) -> list[ChosenPair]:
        """Return the pairs in a full round robin, sorted by instruction."""
        return [
            ChosenPair(key, first, second)
            for key, models in self.answered.items()
            for first, second in itertools.combinations(sorted(models), 2)
        ]


def next_pairs(  # noqa: PLR0913 - available and known pairs, and three options
    pool: PairPool,
    judged: Collection[ChosenPair],
    counts: PairCounts,
    *,
    uncertain: Sequence[int],
    at_most: int,
    seed: int,
) -> list[ChosenPair]:
    """Choose pairs one after the other, each as if all earlier pairs were already judged.

    A pair's value is the expected reduction in the variances of the uncertain models' ratings, from the Fisher
    information in Bradley and Terry's model. Two models are compared on a new instruction, and preferably on the
    instruction with the fewest comparisons of either model, because answers to many instructions are more informative
    than many verdicts on the same answer. A seeded order breaks ties.

    Args:
        pool: All pairs.
        judged: Pairs that are already judged.
        counts: Results of the judged pairs, as a `PairCounts` with a single draw.
        uncertain: Numbers of the models that need narrower intervals.
        at_most: Maximum number of pairs.
        seed: Seed for the order of instructions.

    Returns:
        Distinct pairs that are not in `judged`. There are fewer than `at_most` if no informative pairs are left.
    """
    open_ = _OpenInstructions(pool, judged, seed)
    strengths = np.nan_to_num(bradley_terry(counts).values[0])
    expected = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    worth = expected * (1 - expected)
    met = (counts.points + counts.points.transpose(0, 2, 1))[0]
    information = -met * worth
    diagonal = np.arange(pool.models)
    information[diagonal, diagonal] = (met * worth).sum(axis=1) + _PRIOR_INFORMATION
    variances = np.linalg.inv(information)
    wanted = np.zeros(pool.models)
    wanted[list(uncertain)] = 1.0
    chosen: list[ChosenPair] = []
    while len(chosen) < at_most:
        gains = np.where(open_.left > 0, _gains(variances, worth, wanted), 0.0)
        one, other = divmod(int(np.argmax(gains)), pool.models)
        if gains[one, other] <= 0:
            break
        chosen.append(open_.take(one, other))
        towards = variances[:, one] - variances[:, other]
        variances = variances - worth[one, other] * np.outer(towards, towards) / (
            1 + worth[one, other] * (towards[one] - towards[other])
        )
    return chosen


def _gains(
    variances: NDArray[np.float64], worth: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much a match between any two models would reduce the wanted variances, float64[models, models]."""
    centred = variances - variances.mean(axis=0, keepdims=True)
    towards = centred[:, :, None] - centred[:, None, :]
    spread = variances.diagonal()[:, None] + variances.diagonal()[None, :] - 2 * variances
    return np.asarray((wanted[:, None, None] * towards**2).sum(axis=0) * worth / (1 + worth * spread))


class _OpenInstructions:
    """The instructions that remain for comparing each pair of models."""

    def __init__(self, pool: PairPool, judged: Collection[ChosenPair], seed: int) -> None:
        self._known = set(judged)
        self._order = {key: _draw_key(seed, key) for key in pool.answered}
        self._times = Counter[tuple[str, int]]()
        has = np.zeros((len(pool.answered), pool.models), dtype=np.intp)
        for row, models in enumerate(pool.answered.values()):
            has[row, list(models)] = 1
        keys = list(pool.answered)
        self._answered = [{keys[row] for row in np.flatnonzero(column)} for column in has.T]
        # Number of remaining instructions for every two models. The row is the lower model number.
        self.left = np.triu(has.T @ has, 1)
        for pair in self._known:
            self._times.update(((pair.instruction, pair.first), (pair.instruction, pair.second)))
            if pair.instruction in pool.answered:
                self.left[pair.first, pair.second] -= 1

    def take(self, one: int, other: int) -> ChosenPair:
        """Return a pair of these models on their next instruction, and mark the pair as known."""
        shared = self._answered[one] & self._answered[other]
        key = min(
            (key for key in shared if ChosenPair(key, one, other) not in self._known),
            key=lambda key: (self._times[key, one] + self._times[key, other], self._order[key]),
        )
        pair = ChosenPair(key, one, other)
        self._known.add(pair)
        self._times.update(((key, one), (key, other)))
        self.left[one, other] -= 1
        return pair


def _draw_key(seed: int, key: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{key}".encode(errors="surrogatepass"), digest_size=8).digest()
