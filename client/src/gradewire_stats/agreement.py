"""Agreement of scores with people, or with an evaluator in their place."""

from collections.abc import Sequence

from gradewire_stats.agreement_statistics import ALL_STATISTICS, Statistic
from gradewire_stats.agreement_table import AgreementReport, CellAgreement, JudgedRows, MetricAgreement, parts_of
from gradewire_stats.table_draws import CellDraws, JointBootstrap, mean_over

COMPARED_STATISTICS: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")


def agreement(  # noqa: PLR0913 - one table, five optional choices about it
    rows: JudgedRows,
    *,
    compare: Sequence[tuple[str, str]] = (),
    compare_statistics: Sequence[Statistic] = COMPARED_STATISTICS,
    statistics: Sequence[Statistic] = ALL_STATISTICS,
    resamples: int = 5000,
    seed: int = 0,
) -> AgreementReport:
    """Compares scores with labels.

    Intervals are percentiles over draws of whole questions, stratified by data set; all metrics, cells and comparisons
    see the same draws. Spearman, Kendall and AUC use the first `RANK_DRAWS` of them. docs/reference/statistics.md
    defines every statistic.

    Args:
        rows: Scores and labels; at least one row. `JudgedRows.beside_evaluator` puts an evaluator in people's place.
        compare: Pairs of metric labels whose differences are wanted.
        compare_statistics: Which differences.
        statistics: Which statistics the tables hold.
        resamples: Number of draws.
        seed: Same seed, same intervals.

    Returns:
        One table per metric in the order of `rows.scores`, and one comparison per pair and statistic.

    Raises:
        MissingScipyError: scipy is not installed.
        ValueError: There is no row, columns differ in length, a label is not a number, or `compare` names an unknown
            metric.
    """
    unknown = {name for pair in compare for name in pair} - rows.scores.keys()
    if unknown:
        raise ValueError(f"cannot compare {', '.join(sorted(unknown))}: scored are {', '.join(rows.scores)}")
    bootstrap = JointBootstrap(rows, parts_of(rows))
    tables = {metric: bootstrap.cells(metric, statistics) for metric in rows.scores}
    pairs = [bootstrap.pair(names, compare_statistics) for names in compare]
    bootstrap.run(resamples=resamples, seed=seed)
    return AgreementReport(
        [_metric_agreement(metric, table, statistics) for metric, table in tables.items()],
        [pair.comparison(statistic) for pair in pairs for statistic in compare_statistics],
        seed,
    )


def _metric_agreement(metric: str, table: list[CellDraws], statistics: Sequence[Statistic]) -> MetricAgreement:
    lines = []
    for cell in table:
        part, sample = cell.part, cell.sample
        estimates = {statistic: cell.estimate(statistic) for statistic in statistics}
        counts = len(sample.scores), sample.failed, sample.judged
        names = part.level, part.dataset, part.model, part.group
        lines.append(CellAgreement(*names, *counts, estimates, questions=cell.questions("pearson")))
    finest = [cell for cell in table if cell.part.level == "cell"]
    return MetricAgreement(metric, lines, {statistic: mean_over(finest, statistic) for statistic in statistics})
