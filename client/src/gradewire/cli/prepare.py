"""`gradewire prepare`: gets the references of a file ready before answers come."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.connection import connection_of, connection_options
from gradewire.cli.files import ALIAS_HELP, input_file, input_options
from gradewire.cli.metric_options import metric_options, metrics_help, over_a_file, plan_of, with_all_metrics
from gradewire.cli.problems import EXIT_INTERRUPTED, EXIT_ROWS_FAILED, InputError, exit_codes, one_line_errors
from gradewire.cli.terminal import progress
from gradewire.metric_choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from gradewire import AsyncClient
    from gradewire.cli.files import InputFile
    from gradewire.cli.pipeline import ScorePlan
    from gradewire.preparation import PrepareReport

_FIELDS = ("question", "references", "synthetic_answers")
# Failures told one by one; a file in which every row is wrong needs no further examples.
_SHOWN_FAILURES = 10


@dataclass(slots=True)
class Entries:
    """The distinct references of a file.

    Attributes:
        entries: What `Client.prepare` takes.
        places: Where each was seen first.
        problems: Of rows that cannot be read.
        rows: Rows of the file.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: int = 0

    @classmethod
    def read(cls, source: InputFile) -> tuple[Entries, bool]:
        """Reads a file; also says whether its first rows carry synthetic answers."""
        found = cls()
        opened = source.open()
        seen = set()
        for row in opened.rows:
            found.rows += 1
            if row.item is None:
                found.problems.append(row.problem)
                continue
            entry = {name: row.item[name] for name in _FIELDS if name in row.item}
            key = json.dumps(entry, sort_keys=True, default=repr)
            if key not in seen:
                seen.add(key)
                found.entries.append(entry)
                found.places.append(row.place)
        if not found.entries:
            raise InputError(f"{source.path}: there is no row with references")
        return found, opened.has_synthetic


@click.command(
    "prepare",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire prepare references.jsonl --server 127.0.0.1:50051
  SET=$(gradewire prepare references.jsonl --synthetic inline --quiet)
  gradewire score answers.jsonl --synthetic prepared --reference-set $SET
  SET=$(gradewire prepare captions.jsonl --metrics cider,bertscore?idf=prepared --quiet)
  gradewire score captions.jsonl --metrics cider,bertscore?idf=prepared --reference-set $SET

{metrics_help()}

The same references again compute nothing, and after a break the same command goes on where it stopped.

{exit_codes(failed_rows="some rows could not be prepared")}""",
)
@input_options
@metric_options
@connection_options
@click.option("--quiet", is_flag=True, help="Print the name of the reference set and nothing else.")
@click.pass_context
def prepare_command(ctx: click.Context, /, *, quiet: bool, **options: Any) -> None:
    """Embed the references of FILE, store their synthetic answers, and count their words, before answers come.

    Prints the name of the reference set. It is made of the content: the same references have the same name everywhere.
    """
    if options["reference_set"] is not None:
        raise click.UsageError("--reference-set: the name is made of the content, leave it out")
    plan, connection = plan_of(options, scoring=False), connection_of(options)
    source = input_file(options, needed=("references",))
    given = ctx.get_parameter_source("deadline_s") is not click.core.ParameterSource.DEFAULT
    try:
        with one_line_errors():
            found, has_synthetic = Entries.read(source)
            if plan.synthetic is None:
                plan = plan.with_synthetic("prepared" if has_synthetic else "none")
            deadline_s = connection.deadline_s if given else None
            report = asyncio.run(_prepare(connection.client(ctx.obj), found, plan, deadline_s, quiet=quiet))
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on from here", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    problems = [
        *found.problems,
        *(f"{found.places[failure.index]}: {failure.status} {failure.message}" for failure in report.failures),
    ]
    if not quiet:
        _print_report(found, report, problems)
    click.echo(report.reference_set)
    if problems:
        ctx.exit(EXIT_ROWS_FAILED)


async def _prepare(
    client: AsyncClient, found: Entries, plan: ScorePlan, deadline_s: float | None, *, quiet: bool
) -> PrepareReport:
    async with client:
        arguments = (await with_all_metrics(client, plan, quiet=quiet)).arguments()
        del arguments["reference_set"]
        chosen = choose_metrics(arguments["metrics"], MetricDefaults()).metrics
        arguments["metrics"] = [over_a_file(metric) for metric in chosen]
        with progress("preparing", len(found.entries), quiet=quiet) as shown:
            return await client.prepare(
                found.entries, **arguments, deadline_s=deadline_s, progress=lambda step: shown.done(step.entries_done)
            )


def _print_report(found: Entries, report: PrepareReport, problems: list[str]) -> None:
    hits = report.cache_hits
    before = hits.memory + hits.disk + hits.redis
    click.echo(
        f"{len(found.entries)} reference lists in {found.rows} rows: {hits.computed} texts encoded, "
        f"{before} were there, {report.synthetic_answers_stored} synthetic answers stored",
        err=True,
    )
    for problem in problems[:_SHOWN_FAILURES]:
        click.echo(f"not prepared: {problem}", err=True)
    if len(problems) > _SHOWN_FAILURES:
        click.echo(f"not prepared: {len(problems) - _SHOWN_FAILURES} more", err=True)
