"""`gradewire agree`: holds scores against human labels."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.agree_text import comparison_lines, print_metric, to_json
from gradewire.cli.clashes import refuse_clashes
from gradewire.cli.connection import Connection, connection_of, connection_options
from gradewire.cli.files import ALIAS_HELP, InputFile, input_file, input_options
from gradewire.cli.judged_rows import JudgedColumns, with_earlier_scores
from gradewire.cli.metric_options import metric_options, plan_of
from gradewire.cli.pipeline import Run, ScorePlan
from gradewire.cli.problems import EXIT_INTERRUPTED, InputError, exit_codes, one_line_errors
from gradewire.cli.terminal import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.agreement import AgreementReport
    from gradewire.transport import Transport

RESAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeOptions:
    """The command's own options.

    Attributes:
        scores: Output of an earlier run in place of a run.
        compare: Pairs of labels.
        resamples: Draws of the bootstrap.
        seed: Of the bootstrap.
        quiet: No progress.
    """

    scores: Path | None
    compare: Sequence[tuple[str, str]]
    resamples: int
    seed: int
    quiet: bool


@click.command(
    "agree",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire agree answers.jsonl --metrics smile,exact_match
  gradewire agree answers.jsonl --where model=gpt35,gpt4 --metrics smile:v1,smile:fast --compare smile:fast smile:v1
  gradewire agree answers.jsonl --scores scores.jsonl --json agreement.json

Labels in [0, 1] count as right from 0.5 upward; with other labels there is no accuracy and no AUC. Intervals are 95 %
percentile intervals over draws of whole questions; Spearman and Kendall use 1000 draws at most, because every draw has
to be ranked anew. The headline is the mean over the cells (data set and model).

Rows that failed are counted beside the figures and do not change the exit code.

{exit_codes(failed_rows="")}""",
)
@input_options
@metric_options
@connection_options
@click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only rows with these values. May be repeated.")
@click.option(
    "--scores",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take the scores from this output of gradewire score; nothing is scored.",
)
@click.option(
    "--compare",
    nargs=2,
    multiple=True,
    metavar="A B",
    help="Pearson of A minus Pearson of B, with a paired interval; A and B as the table calls them. May be repeated.",
)
@click.option("--resamples", type=click.IntRange(min=100), default=RESAMPLES, show_default=True, help="Draws.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same intervals.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def agree_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    scores: Path | None,
    compare: Sequence[tuple[str, str]],
    resamples: int,
    seed: int,
    json_path: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Score the answers of FILE and compare the scores with its human labels.

    Prints, for each metric and each data set and model: Pearson, Spearman, Kendall's tau-b, accuracy of the metric's
    own verdict, and ROC-AUC, with 95 % intervals. Rows that failed are counted and enter no figure.
    """
    chosen = AgreeOptions(scores=scores, compare=compare, resamples=resamples, seed=seed, quiet=quiet)
    source = input_file(options, needed=("references", "prediction", "label"))
    if json_path is not None:
        read = {"the input": source.path} | ({"--scores": scores} if scores is not None else {})
        refuse_clashes([json_path], "--json", read)
    plan, connection = plan_of(options), connection_of(options)
    try:
        with one_line_errors():
            columns = asyncio.run(_collect(source, plan, connection, chosen, transport=ctx.obj))
            report = _agreement(columns, chosen)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    for metric in report.metrics:
        print_metric(metric, columns.tallies[metric.metric].line)
    for comparison in report.comparisons:
        for line in comparison_lines(comparison):
            click.echo(line)
    if columns.unlabelled:
        click.echo(f"{columns.unlabelled} rows have no label and were left out", err=True)
    if columns.unreadable:
        click.echo(f"{columns.unreadable_labels}; they were left out", err=True)
    if json_path is not None:
        document = to_json(report, columns, source=source, resamples=resamples, seed=seed)
        try:
            json_path.write_text(document, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{json_path}: {error.strerror or error}") from error


async def _collect(
    source: InputFile, plan: ScorePlan, connection: Connection, options: AgreeOptions, *, transport: Transport | None
) -> JudgedColumns:
    opened = source.open()
    columns = JudgedColumns()
    rows = columns.labelled(opened.rows)
    if options.scores is not None:
        for row, output in with_earlier_scores(rows, options.scores):
            columns.add(row, output)
        return columns
    began = time.monotonic()
    done = 0
    async with connection.client(transport) as client:
        run = Run(client, plan.with_default_synthetic(present=opened.has_synthetic))
        await run.begin()
        with progress("scoring", source.count(), quiet=options.quiet) as shown:
            async with contextlib.aclosing(run.score(rows)) as batches:
                async for batch in batches:
                    for scored in batch:
                        columns.add(scored.row, scored.output)
                    done += len(batch)
                    shown.done(done)
    if not options.quiet:
        click.echo(f"{done} rows scored in {time.monotonic() - began:.1f} s by {connection.place}", err=True)
    return columns


def _agreement(columns: JudgedColumns, options: AgreeOptions) -> AgreementReport:
    from gradewire.agreement import MissingScipyError, agreement  # noqa: PLC0415 - nothing else needs numpy's half

    rows = columns.judged()
    for pair in options.compare:
        if unknown := [name for name in pair if name not in rows.scores]:
            raise InputError(
                f"--compare {' '.join(pair)}: there is no {unknown[0]}, there are {', '.join(rows.scores)}"
            )
    try:
        return agreement(rows, compare=options.compare, resamples=options.resamples, seed=options.seed)
    except MissingScipyError as error:
        raise InputError(str(error)) from error
