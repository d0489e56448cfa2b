"""Agreement of scores with human labels, or with another evaluator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradewire_stats.agreement.joint_bootstrap import JointBootstrap, PartDraws, StatisticDifference, mean_over
from gradewire_stats.agreement.rows import JudgedRows, Level, parts_of
from gradewire_stats.agreement.statistics import ALL_STATISTICS, Statistic
from gradewire_stats.bootstrap import CellsMean, Estimate

COMPARED_STATISTICS: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")


@dataclass(frozen=True, slots=True)
class CellAgreement:
    """A metric's agreement on a part of the rows: a data set, a model, both together, a group, or all rows.

    Attributes:
        dataset: Data set name, or "" at the levels "model", "group" and "all".
        model: Model name, or "" at the levels "dataset", "group" and "all".
        group: Group name, or "" at levels other than "group".
        rows: Number of rows with a score.
        judged: Number of rows with a verdict. Accuracy, kappa, F1, precision, recall, positive rate and deviation use
            only these rows.
        questions: Number of the scored rows' questions that can vary between draws: all questions, minus one for each
            data set after the first. With fewer than `bootstrap.LEAST_QUESTIONS`, no statistic has an interval.
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
    """A metric's agreement on all parts.

    Attributes:
        cells: Agreement on each part: the level "cell" first, all rows last.
        headline: Mean of each statistic over the parts of the level "cell" in which the statistic is defined.
    """

    metric: str
    cells: Sequence[CellAgreement]
    headline: Mapping[Statistic, CellsMean]


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """The result of `agreement`."""

    metrics: Sequence[MetricAgreement]
    comparisons: Sequence[StatisticDifference] = field(default=())
    seed: int = 0


def agreement(  # noqa: PLR0913 - one table and five options
    rows: JudgedRows,
    *,
    compare: Sequence[tuple[str, str]] = (),
    compare_statistics: Sequence[Statistic] = COMPARED_STATISTICS,
    statistics: Sequence[Statistic] = ALL_STATISTICS,
    resamples: int = 5000,
    seed: int = 0,
) -> AgreementReport:
    """Compare scores with labels.

    Intervals are percentiles over draws of whole questions, stratified by data set. All metrics, parts and comparisons
    use the same draws, but Spearman, Kendall and AUC use only the first `RANK_DRAWS`. docs/reference/statistics.md
    defines every statistic.

    Args:
        rows: Scores and labels of at least one row. To compare with an evaluator instead, use
            `JudgedRows.beside_evaluator`.
        compare: Pairs of metric labels to compare.
        compare_statistics: Statistics to compare.
        statistics: Statistics in the tables.
        resamples: Number of draws.
        seed: Seed for the draws.

    Returns:
        A table for each metric in the order of `rows.scores`, and a comparison for each pair and statistic.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There are no rows, columns differ in length, a label is not finite, or `compare` names an unknown
            metric.
    """
    unknown = {name for pair in compare for name in pair} - rows.scores.keys()
    if unknown:
        raise ValueError(f"cannot compare {', '.join(sorted(unknown))}. Scored metrics are {', '.join(rows.scores)}")
    bootstrap = JointBootstrap(rows, parts_of(rows))
    tables = {metric: bootstrap.add_metric(metric, statistics) for metric in rows.scores}
    pairs = [bootstrap.add_pair(names, compare_statistics) for names in compare]
    bootstrap.run(resamples=resamples, seed=seed)
    return AgreementReport(
        [_metric_agreement(metric, table, statistics) for metric, table in tables.items()],
        [pair.comparison(statistic) for pair in pairs for statistic in compare_statistics],
        seed,
    )


def _metric_agreement(metric: str, table: list[PartDraws], statistics: Sequence[Statistic]) -> MetricAgreement:
    lines = []
    for cell in table:
        part, sample = cell.part, cell.sample
        estimates = {statistic: cell.estimate(statistic) for statistic in statistics}
        counts = len(sample.scores), sample.failed, sample.judged
        names = part.level, part.dataset, part.model, part.group
        lines.append(CellAgreement(*names, *counts, estimates, questions=cell.questions("pearson")))
    finest = [cell for cell in table if cell.part.level == "cell"]
    return MetricAgreement(metric, lines, {statistic: mean_over(finest, statistic) for statistic in statistics})
