"""The command `gradewire agree`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire_cli.agree.result import agreement_document, compute_agreement
from gradewire_cli.agree.tables import (
    agreement_tables,
    annotator_lines,
    headline_by_model,
    metric_lines,
    optional_intervals,
    optional_tables,
    positions_by_level,
    system_notes,
    verdict_lines,
    write_page,
)
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.problems import NOTHING_SCORED, InputError, check_something_scored, exit_on_interrupt
from gradewire_cli.results.interval_notes import agreement_interval_notes
from gradewire_cli.results.table_formats import table_files, write_tables
from gradewire_cli.results.tables import all_tables_option, html_option, show_tables, table_file_options
from gradewire_cli.results.tallies import statuses_of
from gradewire_cli.scoring.class_judging import error_classes_option
from gradewire_cli.scoring.labelled_rows import label_named
from gradewire_cli.scoring.labelled_run import labelled_run_of, labelled_run_options
from gradewire_stats.agreement.statistics import ALL_STATISTICS, VERDICT_STATISTICS, Statistic
from gradewire_stats.model_ranks import models_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire_cli.agree.result import AgreementResult
    from gradewire_stats.agreement.rows import Level

SHOWN: tuple[Statistic, ...] = ("pearson", "kappa", "kendall", "auc")
COMPARED: tuple[Statistic, ...] = ("pearson", "auc", "accuracy")
LEVELS: tuple[Level, ...] = ("cell", "dataset", "model", "group")
SHOWN_LEVELS: tuple[Level, ...] = ("cell", "dataset", "model")


def _statistics(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    del ctx, parameter
    names = tuple(name.strip() for name in value.split(",")) if value else ()
    if value == "all":
        return ALL_STATISTICS
    if unknown := [name for name in names if name not in ALL_STATISTICS]:
        raise click.BadParameter(f"unknown statistic {unknown[0]!r}. Choose from: {', '.join(ALL_STATISTICS)} (or all)")
    return names


def _pairs(labels: Sequence[str], compare: Sequence[tuple[str, str]], *, compare_all: bool) -> list[tuple[str, str]]:
    named = [(label_named(labels, one, "--compare"), label_named(labels, other, "--compare")) for one, other in compare]
    for (one, other), given in zip(named, compare, strict=True):
        if one == other:
            raise InputError(f"--compare {' '.join(given)} names one metric twice. Name two metrics")
    rest = [(label, labels[0]) for label in labels[1:]] if compare_all else []
    return list(dict.fromkeys([*named, *rest]))


def _shown(result: AgreementResult) -> tuple[Statistic, ...]:
    """Return the statistics to print by default, without statistics of verdicts if no metric has verdicts."""
    judged = any(not np.isnan(verdicts).all() for verdicts in result.rows.verdicts.values())
    return SHOWN if judged else tuple(name for name in SHOWN if name not in VERDICT_STATISTICS)


def _all_tables_hint(result: AgreementResult) -> list[str]:
    names = [f"by {name}" for name in positions_by_level(result.report.metrics[0], SHOWN_LEVELS)]
    if result.systems and result.labelled.against is None:
        names.append("means by model")
    if result.annotators is not None:
        names.append("pairs of annotators")
    return [f"more tables with --all-tables: {', '.join(names)}"] if names else []


@command("agree", failed_rows=NOTHING_SCORED, statistics=", ".join(ALL_STATISTICS))
@labelled_run_options
@error_classes_option
@stacked(
    option("--statistics", callback=_statistics),
    option("--group-by", "levels", type=click.Choice(LEVELS), multiple=True),
    option("--compare", nargs=2, multiple=True),
    option("--compare-all", is_flag=True),
    option("--compare-statistics", callback=_statistics),
)
@all_tables_option
@table_file_options
@stacked(
    html_option,
    option("--details", is_flag=True),
)
@click.pass_context
def agree_command(
    ctx: click.Context, /, *, statistics: Sequence[Statistic], levels: Sequence[Level], details: bool, **options: Any
) -> None:
    """Score the answers in FILE and compare the scores with the file's human labels.

    The command prints each metric's --statistics with 95 % intervals, over all rows and as the mean over data sets and
    models. Use --group-by or --all-tables to print the statistics for each data set and model. Failed rows are counted
    but not compared.
    """
    run, report = labelled_run_of(options), options["html"]
    if run.against and report is not None:
        raise click.UsageError("--html shows annotators' labels, so it cannot be used with --against. Leave one out")
    files = table_files(options)
    run.check_outputs([*files.items(), ("--html", report)])
    pairs = functools.partial(_pairs, compare=options["compare"], compare_all=options["compare_all"])
    with exit_on_interrupt():
        found = compute_agreement(
            run,
            run.collect(ctx.obj, keeps_rows=report is not None, check=pairs),
            pairs=pairs,
            compared=options["compare_statistics"] or statistics or COMPARED,
            with_groups="group" in levels,
        )
    shown, all_levels, against = statistics or _shown(found), levels or SHOWN_LEVELS, found.labelled.against
    lines = list(metric_lines(found, shown))
    left_out = [*found.labelled.left_out(), *found.labelled.proposal_notes()]
    proposals = [*found.labelled.proposal_tables(), *found.labelled.wrong.tables()]
    systems = list(system_notes(found.systems, len(models_of(found.rows))))
    every_note = [
        *lines,
        *annotator_lines(found.annotators, pairs=True),
        *verdict_lines(found.verdicts),
        *agreement_interval_notes(found.report, shown),
        *systems,
        *optional_intervals(found),
    ]
    agreement = functools.partial(agreement_tables, found.report, shown, details=details)
    if options["all_tables"]:
        tables = [*agreement(all_levels, intervals=False), *optional_tables(found), *proposals]
        show_tables(tables, every_note, left_out)
    else:
        printed = levels or (SHOWN_LEVELS if details else ())
        notes = [*lines, *annotator_lines(found.annotators, pairs=False)]
        notes += agreement_interval_notes(found.report, shown, levels=printed)
        further = [] if levels or details else _all_tables_hint(found)
        tables = [*agreement(printed, intervals=False), *headline_by_model(found)]
        show_tables(tables, [*notes, *(systems if against is not None else ())], [*left_out, *further])
    tables = [*agreement(all_levels, intervals=True), *optional_tables(found), *proposals]
    write_tables(files, agreement_document(found), tables, [*every_note, *left_out])
    if report is not None:
        write_page(report, found)
    check_something_scored("no row could be scored", statuses_of(found.labelled.tallies))
