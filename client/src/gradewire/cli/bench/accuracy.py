"""`gradewire bench accuracy`: the accuracy of models as each metric sees it, and as people do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradewire.cli.bench.engine import TableSpec
from gradewire.cli.bench.verdicts import VerdictRows, cut_option
from gradewire.cli.run.accuracy_tables import accuracy_headline, accuracy_intervals, accuracy_tables
from gradewire.cli.run.labelled_run import labelled_run_options

if TYPE_CHECKING:
    from gradewire.cli.bench.engine import TableCall, TableResult

# SMILE's paper cuts all continuous scores where its own bins begin to count as right (appendix: 0.67).
_CUT = 2 / 3


def _compute(call: TableCall) -> TableResult:
    rows = VerdictRows.read(call, cut=_CUT)
    from gradewire.agreement.papers.verdicts import model_accuracy  # noqa: PLC0415 - after the scores, as scipy is slow

    table, people = model_accuracy(rows.judged, **rows.draws), rows.people
    return rows.result(
        {"human": table.cells, "evaluators": table.evaluators},
        headline=accuracy_headline(table, people),
        tables=accuracy_tables(table, people),
        intervals=accuracy_intervals(table, people),
    )


accuracy_command = TableSpec(
    name="accuracy",
    about="Accuracy of the models in FILE by data set: the human one, and how far each metric's is from it.",
    metrics="smile,exact_match,easy_match,rouge_l,sbert",
    options=[
        labelled_run_options,
        cut_option("Default: 2/3 for metrics without a verdict of their own (cider has none)."),
    ],
    compute=_compute,
    has_headline=True,
    epilog="""\b
Examples:
  gradewire bench accuracy answers.jsonl
  gradewire bench accuracy answers.jsonl --metrics smile,sbert,rouge_l --cut 0.5 --cut sbert=0.7
  gradewire bench accuracy answers.jsonl --scores scores.jsonl --markdown table.md
  gradewire bench accuracy unlabelled.jsonl --metrics smile,exact_match --against lave

The deviation is the share of answers that a metric calls right minus the share that people call right, both on the
rows for which the metric has a verdict; 0 is best. The last column is the mean of its size over the cells. Where a
metric has no verdict on some rows, human accuracy on the others stands below its own.
""",
).command()
