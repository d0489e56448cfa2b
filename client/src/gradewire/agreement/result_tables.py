"""Result types of `agreement`: a table of cells per metric, and paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gradewire.agreement.estimates import CellsMean, Difference, Estimate
from gradewire.agreement.point_estimates import Statistic

Level = Literal["cell", "dataset", "model", "group", "all"]


@dataclass(frozen=True, slots=True)
class CellAgreement:
    """One line of the table: a data set and model, one of them, a group, or all rows.

    Attributes:
        level: What the rows have in common.
        dataset: Name, or "" at the levels "model", "group" and "all".
        model: Name, or "" at the levels "dataset", "group" and "all".
        group: Name at the level "group", else "".
        rows: Rows with a score.
        failed: Rows without.
        judged: Rows with a verdict: what accuracy, F1, precision, recall, positive rate and deviation are about.
        estimates: By statistic.
        questions: Questions behind the rows with a score that a draw can take otherwise: all, less one for each further
            data set. With fewer than `estimates.LEAST_QUESTIONS` no figure has an interval.
    """

    level: Level
    dataset: str
    model: str
    group: str
    rows: int
    failed: int
    judged: int
    estimates: Mapping[Statistic, Estimate]
    questions: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """Agreement of one metric.

    Attributes:
        metric: Its label.
        cells: Lines of the table, the finest level first, all rows last.
        headline: Mean of the "cell" lines in which the statistic is defined, which says how many these are.
    """

    metric: str
    cells: Sequence[CellAgreement]
    headline: Mapping[Statistic, CellsMean]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of `metric` minus that of `baseline`, on the rows that both scored, drawn together.

    Attributes:
        metric: Label of the first metric.
        baseline: Label of the second.
        statistic: What is compared.
        rows: Rows that both scored; for statistics of verdicts, rows that both judged.
        mean_of_cells: Difference of the means over the cells in which both sides are defined.
        cells: How many these are.
        cells_in_all: Cells that there are.
        all_rows: Difference over all rows at once.
    """

    metric: str
    baseline: str
    statistic: Statistic
    rows: int
    mean_of_cells: Difference
    all_rows: Difference
    cells: int
    cells_in_all: int


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """The result of `agreement`.

    Attributes:
        metrics: One table per metric.
        comparisons: One per pair and statistic.
        seed: Of the bootstrap.
    """

    metrics: Sequence[MetricAgreement]
    comparisons: Sequence[Comparison] = field(default=())
    seed: int = 0
