"""One bootstrap for all metrics, parts and comparisons of a table."""

from collections.abc import Sequence

import numpy as np

from gradewire.agreement.bootstrap.part import JudgedPart
from gradewire.agreement.bootstrap.ranked import RANK_DRAWS
from gradewire.agreement.bootstrap.sample import Columns
from gradewire.agreement.bootstrap.tallies import CellDraws, PairDraws
from gradewire.agreement.optional_imports import one_blas_thread
from gradewire.agreement.parts import Part
from gradewire.agreement.point_estimates import Statistic, right
from gradewire.agreement.resample import draws, question_clusters, strata_of
from gradewire.agreement.rows import JudgedRows


class JointBootstrap:
    """Draws of whole questions, stratified by data set, that everything asked of it sees alike.

    First ask (`cells`, `pair`), then `run` once, then read what was asked for.
    """

    def __init__(self, rows: JudgedRows, parts: Sequence[Part]) -> None:
        """Prepares the parts.

        Raises:
            ValueError: There is no row, columns differ in length, or a label is not a number.
        """
        _check(rows)
        clusters = question_clusters(rows.datasets, rows.questions)
        self._strata = strata_of(rows.datasets, clusters)
        columns = Columns(rows, clusters, self._strata, right(rows.labels))
        self._parts = [JudgedPart(columns, part) for part in parts]
        self._cells: list[list[CellDraws]] = []
        self._pairs: list[PairDraws] = []

    def cells(self, metric: str, statistics: Sequence[Statistic]) -> list[CellDraws]:
        """Asks for a metric in every part."""
        table = [CellDraws(part, part.add(metric, statistics)) for part in self._parts]
        self._cells.append(table)
        return table

    def pair(self, names: tuple[str, str], statistics: Sequence[Statistic]) -> PairDraws:
        """Asks for the differences of two metrics on the rows that both scored."""
        pair = PairDraws(self._parts, names, statistics)
        self._pairs.append(pair)
        return pair

    def run(self, *, resamples: int, seed: int) -> None:
        """Computes point values and all draws; statistics of ranks see the first `RANK_DRAWS` draws."""
        for part in self._parts:
            part.settle()
        done = 0
        with one_blas_thread():
            for weights in draws(self._strata, resamples=resamples, seed=seed):
                found = [part.resample(weights, rank_draws=max(0, RANK_DRAWS - done)) for part in self._parts]
                done += len(weights)
                for table in self._cells:
                    for cell, values in zip(table, found, strict=True):
                        cell.take(values)
                for pair in self._pairs:
                    pair.take(found)


def _check(rows: JudgedRows) -> None:
    count = len(rows.labels)
    if not count:
        raise ValueError("there is no labelled row")
    if not np.isfinite(rows.labels).all():
        raise ValueError("a label is not a number: leave such rows out")
    lengths = {"datasets": len(rows.datasets), "models": len(rows.models), "questions": len(rows.questions)}
    lengths |= {f"scores of {metric}": len(scores) for metric, scores in rows.scores.items()}
    lengths |= {f"verdicts of {metric}": len(rows.verdicts[metric]) for metric in rows.scores}
    lengths |= {"groups": len(rows.groups)} if rows.groups else {}
    for name, length in lengths.items():
        if length != count:
            raise ValueError(f"there are {count} labels and {length} {name}")
