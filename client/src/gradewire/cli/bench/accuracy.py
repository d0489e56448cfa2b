"""`gradewire bench accuracy`: how right a model is, as each metric sees it and as people do."""

from __future__ import annotations

from typing import Any

import click

from gradewire.cli.bench.run import bench_of, bench_options
from gradewire.cli.input.files import ALIAS_HELP
from gradewire.cli.problems import exit_codes
from gradewire.cli.run.accuracy_tables import accuracy_headline, accuracy_intervals, accuracy_tables, people_of

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
  gradewire bench accuracy unlabelled.jsonl --metrics smile,exact_match --against lave

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
    people = people_of(rows.labelled.against)
    bench.tell(
        rows,
        list(accuracy_tables(table, people)),
        {"human": table.cells, "evaluators": table.evaluators},
        headline=list(accuracy_headline(table, people)),
        intervals=accuracy_intervals(table, people),
    )
