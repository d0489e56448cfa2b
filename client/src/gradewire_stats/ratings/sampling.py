"""Choose the pairs to judge next, to make the least certain ratings certain with the fewest judgements."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import PairCounts
from gradewire_stats.ratings.strengths import bradley_terry

# Information about a model without matches: as much as one match with an equal gives.
_PRIOR_INFORMATION = 0.25


@dataclass(frozen=True, slots=True, order=True)
class ChosenPair:
    """Two models by number, the lower one first, and the key of the instruction to compare them on."""

    instruction: str
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class PairPool:
    """All pairs of answers that can be judged.

    Attributes:
        answered: Models with an answer, by key of the instruction.
    """

    models: int
    answered: Mapping[str, Collection[int]]

    @property
    def pairs(self) -> int:
        """Number of pairs, as in a full round robin."""
        return sum(len(models) * (len(models) - 1) // 2 for models in self.answered.values())

    def all_pairs(self) -> list[ChosenPair]:
        """Return the pairs of a full round robin, by instruction."""
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
    """Choose pairs in turn, each one assuming the results of the ones before it.

    The value of a pair is the reduction of the variances of the uncertain models' ratings, from the Fisher information
    of Bradley and Terry's model: matches between models of about equal strength tell most, and matches of little-known
    models. Among the instructions on which the two were not compared, it takes the one on which they were compared with
    others least often, and then a seeded order: answers to many instructions say more than many verdicts on one answer.

    Args:
        pool: All pairs.
        judged: Known pairs.
        counts: Results of the known pairs, as one draw.
        uncertain: Models whose ratings need narrower intervals.
        at_most: Maximum number of pairs.
        seed: Seed of the order of instructions.

    Returns:
        Distinct pairs outside `judged`; fewer than `at_most` if no more pairs of the uncertain models are left.
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
    """Return the reduction of the wanted variances by one more match of each two models, float64[models, models]."""
    centred = variances - variances.mean(axis=0, keepdims=True)
    towards = centred[:, :, None] - centred[:, None, :]
    spread = variances.diagonal()[:, None] + variances.diagonal()[None, :] - 2 * variances
    return np.asarray((wanted[:, None, None] * towards**2).sum(axis=0) * worth / (1 + worth * spread))


class _OpenInstructions:
    """Instructions on which two models can still be compared."""

    def __init__(self, pool: PairPool, judged: Collection[ChosenPair], seed: int) -> None:
        self._known = set(judged)
        self._order = {key: _draw_key(seed, key) for key in pool.answered}
        self._times = Counter[tuple[str, int]]()
        has = np.zeros((len(pool.answered), pool.models), dtype=np.intp)
        for row, models in enumerate(pool.answered.values()):
            has[row, list(models)] = 1
        keys = list(pool.answered)
        self._answered = [{keys[row] for row in np.flatnonzero(column)} for column in has.T]
        # Number of instructions left for each two models, the lower number first.
        self.left = np.triu(has.T @ has, 1)
        for pair in self._known:
            self._times.update(((pair.instruction, pair.first), (pair.instruction, pair.second)))
            if pair.instruction in pool.answered:
                self.left[pair.first, pair.second] -= 1

    def take(self, one: int, other: int) -> ChosenPair:
        """Return the pair on the next instruction, and mark it as known."""
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
