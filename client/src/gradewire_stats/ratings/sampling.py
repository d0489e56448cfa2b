"""Choice of the pairs to judge next, so that the least certain ratings become certain with the fewest judgements."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.ratings.matches import PairCounts
from gradewire_stats.ratings.strengths import bradley_terry

# What is known of a model before it has played: as much as one match with an equal says.
_PRIOR_INFORMATION = 0.25


@dataclass(frozen=True, slots=True, order=True)
class ChosenPair:
    """Two models, by number, the lower one first, and the key of the instruction on which they are compared."""

    instruction: str
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class PairPool:
    """All pairs of answers that could be judged.

    Attributes:
        answered: Models that have an answer, by key of the instruction.
    """

    models: int
    answered: Mapping[str, Collection[int]]

    @property
    def pairs(self) -> int:
        """How many there are: those of a full round robin."""
        return sum(len(models) * (len(models) - 1) // 2 for models in self.answered.values())

    def all_pairs(self) -> list[ChosenPair]:
        """Those of a full round robin, by instruction."""
        return [
            ChosenPair(key, first, second)
            for key, models in self.answered.items()
            for first, second in itertools.combinations(sorted(models), 2)
        ]


def next_pairs(  # noqa: PLR0913 - what there is, what is known, what is wanted
    pool: PairPool,
    judged: Collection[ChosenPair],
    counts: PairCounts,
    *,
    uncertain: Sequence[int],
    at_most: int,
    seed: int,
) -> list[ChosenPair]:
    """Chooses pairs, one after the other, each with what the ones before it will have told.

    A pair is worth what it takes off the variances of the uncertain models' ratings, as the Fisher information of
    Bradley and Terry's model says: matches between models of about equal strength tell most, and matches of models of
    which little is known. Among the instructions on which the two were not compared it takes the one on which they
    have been compared with anybody least often, and a seeded order decides among these: answers to many instructions
    say more than many verdicts on one answer.

    Args:
        pool: All pairs.
        judged: Those that are known, in any number.
        counts: Their outcome, one draw.
        uncertain: Models whose ratings are wanted more narrowly.
        at_most: How many pairs.
        seed: Same seed and same verdicts, same pairs.

    Returns:
        Pairs that are not in `judged`, none twice; fewer than `at_most` where no more of the uncertain models are
        left.
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
    """What one more match of each two models takes off the wanted variances, float64[models, models]."""
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
        # Instructions on which the two, the lower number first, are still to be compared.
        self.left = np.triu(has.T @ has, 1)
        for pair in self._known:
            self._times.update(((pair.instruction, pair.first), (pair.instruction, pair.second)))
            if pair.instruction in pool.answered:
                self.left[pair.first, pair.second] -= 1

    def take(self, one: int, other: int) -> ChosenPair:
        """The pair on the instruction that comes next, which is known from then on."""
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
