"""`gradewire bench accuracy`: how right a model is, as each metric sees it and as people do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.bench.run import bench_of, bench_options
from gradewire.cli.input.files import ALIAS_HELP
from gradewire.cli.output.figure_names import CELLS_MEAN, cell_names
from gradewire.cli.output.figures import Figure, cells_mean, count, estimated, measured
from gradewire.cli.output.interval_notes import PlacedEstimate
from gradewire.cli.output.tables import FigureTable
from gradewire.cli.problems import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.agreement import Estimate
    from gradewire.agreement.papers.model_accuracy import ModelAccuracyTable

METRICS = "smile,exact_match,easy_match,rouge_l,sbert"
# SMILE's paper cuts all continuous scores where its own bins begin to count as right (appendix: 0.67).
CUT = 2 / 3


@click.command(
    "accuracy",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire bench accuracy answers.jsonl
  gradewire bench accuracy answers.jsonl --metrics smile,sbert,rouge_l --cut 0.5 --cut sbert=0.7
  gradewire bench accuracy answers.jsonl --scores scores.jsonl --markdown table.md

The deviation is the share of answers that a metric calls right minus the share that people call right, both on the
rows for which the metric has a verdict; 0 is best. The last column is the mean of its size over the cells. Where a
metric has no verdict on some rows, human accuracy on the others stands below its own.

{exit_codes(failed_rows="")}""",
)
@bench_options(cut_help="Default: 2/3 for metrics without a verdict of their own (cider has none).")
@click.pass_context
def accuracy_command(ctx: click.Context, /, **options: Any) -> None:
    """Accuracy of the models in FILE by data set: the human one, and how far each metric's is from it."""
    bench = bench_of(ctx, options, metrics=METRICS, cut=CUT)
    rows = bench.rows(ctx.obj)
    from gradewire.agreement.papers.model_accuracy import model_accuracy  # noqa: PLC0415 - after the scores, as scipy is slow

    table = model_accuracy(rows.judged, resamples=bench.run.resamples, seed=bench.run.seed)
    bench.tell(
        rows,
        list(_tables(table)),
        {"human": table.cells, "evaluators": table.evaluators},
        headline=list(_headline(table)),
        intervals=_intervals(table),
    )


def _headline(table: ModelAccuracyTable) -> Iterator[FigureTable]:
    """How far each metric is from people over all cells, and how right each sees them, a line for each cell."""
    cells = len(table.cells)
    if cells > 1:
        yield FigureTable(
            f"Deviation from human accuracy: mean size over {cells} cells (data set and model)",
            ["metric", "mean size"],
            [[found.evaluator, cells_mean(found.mean_absolute_deviation)] for found in table.evaluators],
        )
    written = estimated if cells == 1 else _bare
    yield FigureTable(
        "Accuracy, on the rows that the metric judged",
        ["", "human, all rows", *(found.evaluator for found in table.evaluators)],
        [
            [name, written(cell.human), *(written(found.cells[place].accuracy) for found in table.evaluators)]
            for place, (name, cell) in enumerate(zip(_cell_names(table, between=" "), table.cells, strict=True))
        ],
    )


def _bare(estimate: Estimate) -> Figure:
    return measured(estimate.value)


def _cell_names(table: ModelAccuracyTable, *, between: str = "\n") -> list[str]:
    return cell_names([(cell.dataset, cell.model) for cell in table.cells], between=between)


def _tables(table: ModelAccuracyTable) -> Iterator[FigureTable]:
    names = _cell_names(table)
    yield FigureTable(
        "Human accuracy, over all labelled rows",
        ["", *names],
        [
            ["rows", *(count(cell.rows) for cell in table.cells)],
            ["human accuracy", *(estimated(cell.human) for cell in table.cells)],
        ],
    )
    yield FigureTable(
        "Deviation from human accuracy, on the rows that the metric judged",
        ["metric", *names, "mean size"],
        [
            [
                found.evaluator,
                *(estimated(cell.deviation) for cell in found.cells),
                cells_mean(found.mean_absolute_deviation),
            ]
            for found in table.evaluators
        ],
    )
    yield FigureTable("Accuracy, on the rows that the metric judged", ["metric", *names], list(_accuracies(table)))
    if any(cell.failed for found in table.evaluators for cell in found.cells):
        yield FigureTable(
            "Rows without a verdict",
            ["metric", *names],
            [[found.evaluator, *(count(cell.failed) for cell in found.cells)] for found in table.evaluators],
        )


def _intervals(table: ModelAccuracyTable) -> Iterator[PlacedEstimate]:
    names = _cell_names(table, between=" ")
    for name, cell in zip(names, table.cells, strict=True):
        yield PlacedEstimate("human", "human accuracy", name, cell.human)
    for found in table.evaluators:
        for name, judged in zip(names, found.cells, strict=True):
            yield PlacedEstimate(found.evaluator, "accuracy", name, judged.accuracy)
            yield PlacedEstimate(found.evaluator, "human accuracy", name, judged.human)
            yield PlacedEstimate(found.evaluator, "deviation", name, judged.deviation)
        yield PlacedEstimate(found.evaluator, "mean size", CELLS_MEAN, found.mean_absolute_deviation)


def _accuracies(table: ModelAccuracyTable) -> Iterator[list[Figure | str]]:
    for found in table.evaluators:
        yield [found.evaluator, *(estimated(cell.accuracy) for cell in found.cells)]
        # Where it judged all rows, the human figure is the one over all rows.
        if any(cell.failed for cell in found.cells):
            yield [f"human, rows of {found.evaluator}", *(estimated(cell.human) for cell in found.cells)]
    yield ["human, all rows", *(estimated(cell.human) for cell in table.cells)]
