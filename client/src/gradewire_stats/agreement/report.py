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
    """A row of the table: a data set and model, one of the two, a group, or all rows.

    Attributes:
        level: The common property of the rows.
        dataset: Name, or "" at the levels "model", "group" and "all".
        model: Name, or "" at the levels "dataset", "group" and "all".
        group: Name at the level "group", else "".
        rows: Rows with a score.
        failed: Rows without a score.
        judged: Rows with a verdict, the basis of accuracy, F1, precision, recall, positive rate and deviation.
        questions: Questions behind the scored rows that can vary between draws: all, less one for each data set after
            the first. With fewer than `bootstrap.LEAST_QUESTIONS`, no statistic has an interval.
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
        cells: Rows of the table, the finest level first, all rows last.
        headline: Mean over the level "cell", of the parts that define the statistic.
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
    share the draws; Spearman, Kendall and AUC use the first `RANK_DRAWS`. docs/reference/statistics.md defines every
    statistic.

    Args:
        rows: Scores and labels; at least one row. `JudgedRows.beside_evaluator` compares with an evaluator instead.
        compare: Pairs of metric labels to compare.
        compare_statistics: Statistics to compare.
        statistics: Statistics of the tables.
        resamples: Number of draws.
        seed: Seed of the draws.

    Returns:
        One table per metric in the order of `rows.scores`, and one comparison per pair and statistic.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There are no rows, columns differ in length, a label is not finite, or `compare` names an unknown
            metric.
    """
    unknown = {name for pair in compare for name in pair} - rows.scores.keys()
    if unknown:
        raise ValueError(f"cannot compare {', '.join(sorted(unknown))}: name scored metrics: {', '.join(rows.scores)}")
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
