"""Draws so far, of single cells and of pairs of metrics."""

import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from gradewire.agreement.bootstrap.part import Draws, JudgedPart
from gradewire.agreement.bootstrap.sample import Sample
from gradewire.agreement.estimates import CellsMean, Estimate, difference, estimate
from gradewire.agreement.point_estimates import VERDICT_STATISTICS, Statistic
from gradewire.agreement.resample import joined
from gradewire.agreement.result_tables import Comparison


class CellDraws:
    """One sample of a part: its point values, and its values in all draws so far."""

    def __init__(self, part: JudgedPart, number: int) -> None:
        self.part = part
        self.number = number
        self._draws: dict[Statistic, list[NDArray[np.float64]]] = {}

    @property
    def sample(self) -> Sample:
        """The rows."""
        return self.part.samples[self.number]

    @property
    def values(self) -> dict[Statistic, float]:
        """Point values; the part has to be settled."""
        return self.part.values[self.number]

    def take(self, found: Sequence[Draws]) -> None:
        """Takes in what `JudgedPart.resample` found."""
        for statistic, values in found[self.number].items():
            self._draws.setdefault(statistic, []).append(values)

    def draws(self, statistic: Statistic) -> NDArray[np.float64]:
        """Values of all draws, float64[draws]; NaN where undefined, empty where it cannot be computed at all."""
        return joined(self._draws.get(statistic, []))

    def questions(self, statistic: Statistic) -> int:
        """Questions behind a statistic that a draw can take otherwise."""
        return self.part.questions(self.number, statistic)

    def estimate(self, statistic: Statistic) -> Estimate:
        """A statistic with its interval; all draws have to be taken."""
        return estimate(self.values[statistic], self.draws(statistic), questions=self.questions(statistic))


class PairDraws:
    """Two metrics on the rows that both scored: their differences in all draws so far."""

    def __init__(self, parts: Sequence[JudgedPart], names: tuple[str, str], statistics: Sequence[Statistic]) -> None:
        self._names = names
        # Of each part that matters: the finest ones for the mean of cells, the last one for all rows.
        self._places = [number for number, part in enumerate(parts) if part.part.level in {"cell", "all"}]
        self._sides = [
            [
                CellDraws(parts[place], parts[place].add(name, statistics, beside=other))
                for name, other in (names, names[::-1])
            ]
            for place in self._places
        ]
        self._statistics = statistics
        # Differences are kept, not sides: a draw of a pair is two numbers, however many cells there are.
        self._means: dict[Statistic, list[NDArray[np.float64]]] = {statistic: [] for statistic in statistics}
        self._all: dict[Statistic, list[NDArray[np.float64]]] = {statistic: [] for statistic in statistics}

    def take(self, found: Sequence[Sequence[Draws]]) -> None:
        """Takes in what `JudgedPart.resample` found, for every part of the table."""
        for statistic in self._statistics:
            differences = [
                _difference(found[place][first.number], found[place][second.number], statistic)
                for place, (first, second) in zip(self._places, self._sides, strict=True)
            ]
            defined = [differences[cell] for cell in self._defined_cells(statistic)]
            if defined:
                self._means[statistic].append(_mean_of_draws(defined))
            self._all[statistic].append(differences[-1])

    def comparison(self, statistic: Statistic) -> Comparison:
        """The difference in a statistic with its intervals; all draws have to be taken."""
        cells = self._defined_cells(statistic)
        last, everything = len(self._sides) - 1, self._sides[-1][0]
        # Both sides have the same rows, hence the same questions.
        questions = min((self._sides[cell][0].questions(statistic) for cell in cells), default=0)
        mean = _mean_of_defined([self._point(cell, statistic) for cell in cells])
        return Comparison(
            *self._names,
            statistic,
            rows=everything.sample.judged if statistic in VERDICT_STATISTICS else len(everything.sample.scores),
            mean_of_cells=difference(mean, joined(self._means[statistic]), questions=questions),
            all_rows=difference(
                self._point(last, statistic), joined(self._all[statistic]), questions=everything.questions(statistic)
            ),
            cells=len(cells),
            cells_in_all=sum(first.part.part.level == "cell" for first, _ in self._sides),
        )

    def _defined_cells(self, statistic: Statistic) -> list[int]:
        return [
            number
            for number, (first, _) in enumerate(self._sides)
            if first.part.part.level == "cell" and not math.isnan(self._point(number, statistic))
        ]

    def _point(self, number: int, statistic: Statistic) -> float:
        first, second = self._sides[number]
        return first.values[statistic] - second.values[statistic]


def mean_over(cells: Sequence[CellDraws], statistic: Statistic, *, absolute: bool = False) -> CellsMean:
    """Mean of a statistic, or of its size, over the cells in which it is defined; all draws have to be taken.

    A cell that is undefined as it stands stays out; one that a draw left undefined makes that draw undefined.
    """
    defined = [cell for cell in cells if not math.isnan(cell.values[statistic])]
    values, draws = [cell.values[statistic] for cell in defined], [cell.draws(statistic) for cell in defined]
    if absolute:
        values, draws = [abs(value) for value in values], [np.abs(drawn) for drawn in draws]
    # A mean is as uncertain as each of its cells: one without an interval takes that of the mean.
    questions = min((cell.questions(statistic) for cell in defined), default=0)
    mean = estimate(_mean_of_defined(values), _mean_of_draws(draws), questions=questions)
    return CellsMean(**asdict(mean), cells=len(defined), cells_in_all=len(cells))


def _difference(first: Draws, second: Draws, statistic: Statistic) -> NDArray[np.float64]:
    if statistic not in first or statistic not in second:
        return np.array([])
    # Kendall's tau ends early where labels have many levels, which failures can make different on the two sides.
    shortest = min(len(first[statistic]), len(second[statistic]))
    return first[statistic][:shortest] - second[statistic][:shortest]


def _mean_of_draws(cells: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of cells in every draw that all of them have, float64[draws]; NaN where a cell is undefined in the draw."""
    shortest = min(map(len, cells), default=0)
    if not shortest:
        return np.array([])
    average: NDArray[np.float64] = np.mean([values[:shortest] for values in cells], axis=0)
    return average


def _mean_of_defined(values: Sequence[float]) -> float:
    """Mean of values that are all defined; NaN of none."""
    return sum(values) / len(values) if values else math.nan
