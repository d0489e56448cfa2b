"""`gradewire prepare`: gets the references of a file ready before answers come."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import click

from gradewire import AsyncClient
from gradewire.cli.input.files import ALIAS_HELP, input_file, input_options
from gradewire.cli.options.connection import connection_of, connection_options
from gradewire.cli.options.metrics import MetricOptions, is_usual, metric_options, metrics_help
from gradewire.cli.output.progress import progress
from gradewire.cli.prepare.generation import (
    check_output,
    generate_options,
    generation_of,
    sentences_so_far,
    write_rows,
)
from gradewire.cli.problems import exit_codes, exit_on_interrupt, one_line_errors
from gradewire.cli.run.every_metric import over_a_file, written_metrics
from gradewire.cli.run.file_references import FileReferences
from gradewire.cli.run.plan import judge_remarks
from gradewire.preparation import EntryFailure, PrepareProgress, PrepareReport, SyntheticGeneration
from gradewire_proto.conventions.exit_codes import ExitCode

# Failures told one by one; a file in which every row is wrong needs no further examples.
_SHOWN_FAILURES = 10


@click.command(
    "prepare",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire prepare references.jsonl --server 127.0.0.1:50051
  SET=$(gradewire prepare references.jsonl --synthetic inline --quiet)
  gradewire score answers.jsonl --synthetic prepared --reference-set $SET
  SET=$(gradewire prepare references.jsonl --generate --out sentences.jsonl)
  SET=$(gradewire prepare captions.jsonl --metrics cider,bertscore?idf=prepared --quiet)
  gradewire score captions.jsonl --metrics cider,bertscore?idf=prepared --reference-set $SET

{metrics_help()}

The same references again compute nothing, and after a break the same command goes on where it stopped.

{exit_codes(failed_rows="some rows could not be prepared")}""",
)
@input_options
@metric_options
@generate_options
@connection_options
@click.option(
    "--immutable",
    is_flag=True,
    help="The set is to have these references and never others; prints NAME@DIGEST, which --reference-set takes.",
)
@click.option("--quiet", is_flag=True, help="Print the name of the reference set and nothing else.")
@click.pass_context
def prepare_command(ctx: click.Context, /, **options: Any) -> None:
    """Embed the references of FILE, store their synthetic answers, and count their words, before answers come.

    Prints the name of the reference set. It is made of the content: the same references have the same name everywhere.
    """
    if options["reference_set"] is not None:
        raise click.UsageError("--reference-set: the name is made of the content, leave it out")
    with one_line_errors():
        generation = generation_of(options)
    connection = connection_of(options)
    source = input_file(options, needed=("references",))
    out = options["out"]
    if out is not None:
        check_output(out, source, overwrite=options["overwrite"])
    options["usual"] = is_usual(options["metrics"])
    deadline_given = ctx.get_parameter_source("deadline_s") is not click.core.ParameterSource.DEFAULT
    with exit_on_interrupt(lambda: "interrupted; the same command goes on from here"), one_line_errors():
        found = FileReferences.read(source)
        for note in found.notes:
            click.echo(note, err=True)
        opening = connection.open(ctx.obj)
        deadline_s = connection.deadline_s if deadline_given else None
        report = asyncio.run(_prepared(opening, found, options, generation, deadline_s))
    problems = [*found.problems, *_told(found, report.failures)]
    if out is not None:
        answers = {row: report.synthetic_answers.get(entry, ()) for row, entry in found.entry_of.items()}
        told = write_rows(out, source, answers)
        if not options["quiet"]:
            click.echo(f"{out}: {told}", err=True)
    if not options["quiet"]:
        _print_report(found, report, problems)
    click.echo(report.pinned)
    if problems:
        ctx.exit(ExitCode.FAILED)


def _told(found: FileReferences, failures: Sequence[EntryFailure]) -> list[str]:
    return [f"{found.places[failure.index]}: {failure.status} {failure.message}" for failure in failures]


async def _prepared(
    opening: AbstractAsyncContextManager[AsyncClient],
    found: FileReferences,
    options: Mapping[str, Any],
    generation: SyntheticGeneration | None,
    deadline_s: float | None,
) -> PrepareReport:
    """Prepares all entries, and shows how far it is."""
    names = ("metrics", "preset", "synthetic", "model")
    named = MetricOptions(**{name: options[name] for name in names}, usual=options["usual"])
    quiet = options["quiet"]
    prepared = found.has_synthetic or generation is not None
    began = time.monotonic()
    async with opening as client:
        metrics = await written_metrics(client, named, lambda: found.entries, quiet=quiet)
        if generation is not None and not quiet:
            # It may be one for tests alone.
            for remark in judge_remarks(await client.models(), {generation.judge.partition("@")[0]}):
                click.echo(remark, err=True)
        with progress("preparing", len(found.entries), quiet=quiet) as shown:

            def tell(step: PrepareProgress) -> None:
                note = sentences_so_far(step, time.monotonic() - began) if generation is not None else ""
                shown.done(step.entries_done, note)

            return await client.prepare(
                found.entries,
                metrics=[over_a_file(metric) for metric in metrics],
                preset=named.preset,
                synthetic=named.synthetic or ("prepared" if prepared else "none"),
                model=named.model,
                generate=generation or False,
                immutable=options["immutable"],
                deadline_s=deadline_s,
                progress=tell,
            )


def _print_report(found: FileReferences, report: PrepareReport, problems: list[str]) -> None:
    hits = report.cache_hits
    before = hits.memory + hits.disk + hits.redis
    click.echo(
        f"{len(found.entries)} reference lists in {found.rows} rows: {hits.computed} texts encoded, "
        f"{before} were there, {report.synthetic_answers_stored} synthetic answers stored",
        err=True,
    )
    if (writer := report.generation) is not None:
        click.echo(f"{report.synthetic_answers_generated} of them written now, by {writer.line}", err=True)
    _print_some("stands for itself", _told(found, report.fallbacks))
    _print_some("not prepared", problems)


def _print_some(what: str, problems: Sequence[str]) -> None:
    for problem in problems[:_SHOWN_FAILURES]:
        click.echo(f"{what}: {problem}", err=True)
    if len(problems) > _SHOWN_FAILURES:
        click.echo(f"{what}: {len(problems) - _SHOWN_FAILURES} more", err=True)
