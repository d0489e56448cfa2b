"""`gradewire agree`: compares scores with human labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradewire.agreement.point_estimates import ALL_STATISTICS, Statistic
from gradewire.cli.agree.json import agreement_document
from gradewire.cli.agree.printed_tables import brief_tables, comparison_tables, detail_table, metric_lines
from gradewire.cli.agree.result import compute_agreement
from gradewire.cli.input.files import ALIAS_HELP
from gradewire.cli.options.group import OUTPUT_FILE
from gradewire.cli.output.files import FigureFiles, figure_file_options
from gradewire.cli.output.interval_notes import agreement_interval_notes
from gradewire.cli.output.tables import show_figures
from gradewire.cli.problems import InputError, exit_codes, exit_on_interrupt
from gradewire.cli.run.labelled_run import labelled_run_of, labelled_run_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gradewire.agreement import AgreementReport
    from gradewire.agreement.result_tables import Level
    from gradewire.cli.output.tables import FigureTable

SHOWN: tuple[Statistic, ...] = ("pearson", "kendall", "auc")
COMPARED: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")
LEVELS: tuple[Level, ...] = ("cell", "dataset", "model", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is printed, and what is compared.

    Attributes:
        statistics: Of the tables.
        compared: Of the comparisons.
        levels: Of the cells.
        compare: Pairs of labels.
        compare_all: Whether every metric is compared with the first.
        details: Whether each metric has a table of its own.
    """

    statistics: Sequence[Statistic]
    compared: Sequence[Statistic]
    levels: Sequence[Level]
    compare: Sequence[tuple[str, str]]
    compare_all: bool
    details: bool

    def pairs(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs to be compared; raises InputError where one names no metric."""
        for pair in self.compare:
            if unknown := [name for name in pair if name not in labels]:
                raise InputError(f"--compare {' '.join(pair)}: there is no {unknown[0]}, there are {', '.join(labels)}")
        rest = [(label, labels[0]) for label in labels[1:]] if self.compare_all else []
        return list(dict.fromkeys([*self.compare, *rest]))

    def tables(self, report: AgreementReport, *, intervals: bool) -> Iterator[FigureTable]:
        """All tables that were asked for; a single metric has its full table at once."""
        if len(report.metrics) > 1:
            yield from brief_tables(report, self.statistics, self.levels, intervals=intervals)
        if self.details or len(report.metrics) == 1:
            yield from (detail_table(metric, self.statistics, self.levels) for metric in report.metrics)
        yield from comparison_tables(report)


def _statistics(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    del ctx, parameter
    names = tuple(name.strip() for name in value.split(",")) if value else ()
    if value == "all":
        return ALL_STATISTICS
    if unknown := [name for name in names if name not in ALL_STATISTICS]:
        raise click.BadParameter(f"there is no {unknown[0]!r}, there are: {', '.join(ALL_STATISTICS)} (or all)")
    return names


@click.command(
    "agree",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire agree answers.jsonl --metrics smile,exact_match
  gradewire agree answers.jsonl --metrics smile:v1,smile:fast --compare smile:fast smile:v1 --report report.html
  gradewire agree answers.jsonl --metrics all --compare-all --statistics pearson,auc,accuracy,f1
  gradewire agree vqa.csv --map labels=rater1,rater2,rater3,rater4,rater5 --labels lave --by group
  gradewire agree answers.jsonl --scores scores.jsonl --json agreement.json --markdown agreement.md

Labels in [0, 1] count as right from 0.5 upward; with other labels there are no figures of verdicts and no AUC.
Intervals are 95 % percentile intervals over draws of whole questions; statistics of ranks use 1000 draws at most,
because every draw has to be ranked anew. "{"cells' mean"}" is the mean over the cells (data set and model).

Rows that failed are counted beside the figures and do not change the exit code.

{exit_codes(failed_rows="")}""",
)
@labelled_run_options
@click.option(
    "--statistics",
    metavar="NAME,…",
    callback=_statistics,
    help=f"What the tables show, or all: {', '.join(ALL_STATISTICS)}. Default: {','.join(SHOWN)}.",
)
@click.option(
    "--by",
    "levels",
    type=click.Choice(LEVELS),
    multiple=True,
    help="Which cells: data set and model together (cell), either, or the column group. May be repeated.",
)
@click.option("--details", is_flag=True, help="A table for each metric, with intervals for every cell.")
@click.option(
    "--compare",
    nargs=2,
    multiple=True,
    metavar="A B",
    help="A minus B with a paired interval and p value; A and B as the tables call them. May be repeated.",
)
@click.option("--compare-all", is_flag=True, help="Every metric minus the first.")
@click.option(
    "--compare-statistics",
    metavar="NAME,…",
    callback=_statistics,
    help=f"What is compared. Default: as --statistics says, else {','.join(COMPARED)}.",
)
@figure_file_options
@click.option("--report", type=OUTPUT_FILE, help="Write a report page here (HTML).")
@click.pass_context
def agree_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    statistics: Sequence[Statistic],
    levels: Sequence[Level],
    details: bool,
    compare: Sequence[tuple[str, str]],
    compare_all: bool,
    compare_statistics: Sequence[Statistic],
    report: Path | None,
    **options: Any,
) -> None:
    """Score the answers of FILE and compare the scores with its human labels.

    Prints, for all metrics side by side and for each data set and model: Pearson, Kendall's tau-b and ROC-AUC (or what
    --statistics names), with 95 % intervals. Rows that failed are counted and enter no figure.
    """
    shown = _Shown(
        statistics=statistics or SHOWN,
        compared=compare_statistics or statistics or COMPARED,
        levels=levels or ("cell", "dataset", "model"),
        compare=compare,
        compare_all=compare_all,
        details=details,
    )
    run = labelled_run_of(options)
    files = FigureFiles.of(options)
    run.refuse_overwriting([*files.named, ("--report", report)])
    with exit_on_interrupt():
        found = compute_agreement(
            run,
            run.collect(ctx.obj, keeps_rows=report is not None),
            pairs=shown.pairs,
            compared=shown.compared,
            with_groups="group" in levels,
        )
    notes = [*metric_lines(found, shown.statistics), *agreement_interval_notes(found.report, shown.statistics)]
    left_out = found.labelled.left_out()
    show_figures(shown.tables(found.report, intervals=False), notes, left_out)
    files.write(agreement_document(found), list(shown.tables(found.report, intervals=True)), [*notes, *left_out])
    if report is not None:
        from gradewire.cli.agree.report import write_page  # noqa: PLC0415 - templates are loaded where a page is wanted

        write_page(report, found)
