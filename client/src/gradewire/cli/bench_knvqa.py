"""`gradewire bench knvqa`: how far each evaluator's verdicts are the human ones, by model under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from gradewire.cli.agree_tables import FigureTable, estimated
from gradewire.cli.agree_text import TITLES
from gradewire.cli.bench_run import bench_of, bench_options
from gradewire.cli.files import ALIAS_HELP
from gradewire.cli.problems import exit_codes
from gradewire.cli.terminal import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.agreement.knvqa import EvaluatorOnModel, KnvqaTable

# The paper's evaluators without an LLM: a VQA score is a verdict from the first annotator that agrees.
METRICS = "lexical_match,vqa_accuracy,bertscore?with_question=true&threshold=0.5"
_Figure = Literal["accuracy", "f1", "macro_f1", "precision", "recall"]
_FIGURES: tuple[_Figure, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall")
_HUMAN = "human"


@click.command(
    "knvqa",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire bench knvqa answers.jsonl
  gradewire bench knvqa answers.jsonl --without-flag time-dependent --without-flag bad-gold
  gradewire bench knvqa answers.jsonl --metrics lexical_match,smile,rouge_l --cut rouge_l=0.5

F1 is that of the right answers, which the paper prints as Macro-F1; macro-F1 is the mean of the F1 of right and wrong
ones. The positive rate is the share of answers called right, the paper's score, with the rank of the evaluator among
all for this model.

{exit_codes(failed_rows="")}""",
)
@bench_options(cut_help="Metrics without a verdict have none otherwise.")
@click.pass_context
def knvqa_command(ctx: click.Context, /, **options: Any) -> None:
    """Compare the verdicts of evaluators on FILE with the human ones, for each model under test.

    Rows that failed, or have no verdict, enter no figure; the JSON output counts them.
    """
    bench = bench_of(ctx, options, metrics=METRICS, cut=None)
    run = bench.run(ctx)
    from gradewire.agreement.knvqa import knvqa_table  # noqa: PLC0415 - after the scores: scipy takes a second to load

    table = knvqa_table(
        run.rows,
        lengths_words=run.columns.lengths_words(),
        resamples=bench.judging.resamples,
        seed=bench.judging.seed,
    )
    bench.tell(run, list(_tables(table)), {"models": table.models, "evaluators": table.lines})


def _tables(table: KnvqaTable) -> Iterator[FigureTable]:
    names = [model.model or "all rows" for model in table.models]
    evaluators = list(dict.fromkeys(line.evaluator for line in table.lines))
    lines = {(line.evaluator, line.model): line for line in table.lines}
    yield FigureTable(
        "Models as people judge them",
        ["", *names],
        [
            ["rows", *(str(model.rows) for model in table.models)],
            ["right", *(estimated(model.human_rate) for model in table.models)],
            ["rank", *(_rank(model.human_rank) for model in table.models)],
            ["words an answer", *(number(model.mean_length_words, digits=1) for model in table.models)],
        ],
    )
    yield FigureTable(
        "Positive rate (rank of the evaluator)",
        ["evaluator", *names],
        [[name, *(_rate(lines[name, model.model]) for model in table.models)] for name in evaluators]
        + [[_HUMAN, *(estimated(model.human_rate) for model in table.models)]],
    )
    for figure in _FIGURES:
        yield FigureTable(
            TITLES[figure][0].upper() + TITLES[figure][1:],
            ["evaluator", *names],
            [
                [name, *(estimated(lines[name, model.model].estimates[figure]) for model in table.models)]
                for name in evaluators
            ],
        )
    if any(line.failed for line in table.lines):
        yield FigureTable(
            "Rows without a verdict",
            ["evaluator", *names],
            [[name, *(str(lines[name, model.model].failed) for model in table.models)] for name in evaluators],
        )


def _rate(line: EvaluatorOnModel) -> str:
    return f"{estimated(line.estimates['positive_rate'])} ({_rank(line.rank)})"


def _rank(rank: float | None) -> str:
    return "-" if rank is None else f"{rank:g}"
