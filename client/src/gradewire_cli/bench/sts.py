"""`gradewire bench sts`: compute the STS average of metrics, from SemEval's, the STS benchmark's and SICK's files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from gradewire_cli.bench.paper_tables import TableCall, TableResult, described_tallies, table_command
from gradewire_cli.options.common import OUTPUT_FILE, choice_option
from gradewire_cli.options.help import option
from gradewire_cli.problems import InputError
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import Cell, Table, count, estimated, measured
from gradewire_cli.rows.official.sts import SUBSETS, missing_files
from gradewire_cli.scoring.labelled_run import RESAMPLES, described_draws, draw_options, labelled_run_of
from gradewire_cli.scoring.plan import scoring_options
from gradewire_stats.agreement.ranks import RANK_DRAWS
from gradewire_stats.sts import StsPairs, StsResult, sts_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_stats.agreement.rows import JudgedRows

_DIGITS = 1
_AVERAGE = "average"


def _compute(call: TableCall) -> TableResult:
    options = call.options
    if options["columns"]:
        raise click.UsageError("Leave out --map: bench sts reads the test sets' own files")
    run = labelled_run_of({**options, "where": (), "labels": None, "without_flags": ()})
    labelled = run.collect(call.transport)
    judged = labelled.judged(with_groups=True)
    read = _subsets(judged)
    aggregation = options["aggregate"]
    found = {
        label: sts_result(
            StsPairs(scores, judged.labels, judged.datasets, judged.groups), aggregation=aggregation, **run.draws
        )
        for label, scores in judged.scores.items()
    }
    missing = missing_files(read)
    tasks = [task for task in SUBSETS if task in read]
    headline = _headline(found, tasks, is_whole=not missing)
    return TableResult(
        tables=[headline, _by_subset(found)],
        headline=[headline],
        notes=[tally.summary(label) for label, tally in labelled.tallies.items()],
        intervals=_intervals(found, is_whole=not missing),
        drawn="pairs",
        left_out=[
            *([f"left out pairs without a grade: {labelled.unlabelled}"] if labelled.unlabelled else []),
            *([f"no average: {'; '.join(missing)}"] if missing else []),
        ],
        document={
            "file": ", ".join(options["files"]),
            "aggregate": aggregation,
            "pairs": {task: judged.datasets.count(task) for task in tasks},
            "missing": missing,
            "ungraded": labelled.unlabelled,
            "bootstrap": described_draws(min(run.resamples, RANK_DRAWS), run.seed, unit="pair"),
            "evaluators": {
                label: {
                    "tasks": each.tasks,
                    "average": None if missing else each.average,
                    "subsets": each.subsets,
                }
                for label, each in found.items()
            },
            "metrics": described_tallies(labelled.tallies),
        },
        parameters={"aggregate": aggregation},
        rows=len(labelled),
        tallies=labelled.tallies,
        server_version=labelled.server_version,
        run=run,
    )


def _subsets(judged: JudgedRows) -> dict[str, list[str]]:
    """Return the subsets that were read by test set; raise InputError if a test set was read in two forms."""
    read: dict[str, list[str]] = {}
    for task, subset in dict.fromkeys(zip(judged.datasets, judged.groups, strict=True)):
        read.setdefault(task, []).append(subset)
    for task, subsets in read.items():
        if "" in subsets and len(subsets) > 1:
            raise InputError(f"{task} was read as one file and as files of its subsets. Name only one of the forms")
    return read


def _headline(found: Mapping[str, StsResult], tasks: Sequence[str], *, is_whole: bool) -> Table:
    rows: list[list[Cell]] = []
    for label, each in found.items():
        row: list[Cell] = [label, *(estimated(each.tasks[task], digits=_DIGITS) for task in tasks)]
        row.append(estimated(each.average, digits=_DIGITS) if is_whole else measured(math.nan))
        rows.append(row)
    return Table("Spearman's correlation with human grades, times 100", ["metric", *tasks, _AVERAGE], rows)


def _by_subset(found: Mapping[str, StsResult]) -> Table:
    rows: list[list[Cell]] = [
        [
            label,
            each.task,
            each.subset or "(all)",
            measured(each.correlation, digits=_DIGITS),
            count(each.pairs),
            count(each.failed),
        ]
        for label, result in found.items()
        for each in result.subsets
    ]
    columns = ["metric", "test set", "subset", "Spearman, times 100", "pairs", "failed"]
    return Table("Correlation by subset", columns, rows, heads=3)


def _intervals(found: Mapping[str, StsResult], *, is_whole: bool) -> Iterator[NamedEstimate]:
    for label, each in found.items():
        for task, estimate in each.tasks.items():
            yield NamedEstimate(label, "Spearman", task, estimate)
        if is_whole:
            yield NamedEstimate(label, _AVERAGE, "seven test sets", each.average)


sts_command = table_command(
    "sts",
    scoring_options,
    option("--scores", type=OUTPUT_FILE, multiple=True),
    choice_option("--aggregate", among=("all", "mean", "weighted-mean")),
    draw_options(resamples=RESAMPLES),
    compute=_compute,
    has_headline=True,
)
