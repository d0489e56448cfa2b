"""`gradewire bulk`: scores large inputs on Ray."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.bulk.options import BulkOutput, Cluster, bulk_options, refuse_standard_input
from gradewire_cli.bulk.run import BulkJob, StoppedError
from gradewire_cli.options.common import FailOn, fail_on_option, price_options, prices_of
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.metrics import cascade_options, judge_options, metric_options, metric_options_of
from gradewire_cli.problems import exit_codes, exit_on_interrupt, one_line_errors
from gradewire_cli.results.output_check import check_outputs
from gradewire_cli.rows.input_file import ALIAS_HELP, column_options, input_file
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    "bulk",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire bulk answers.parquet scores.parquet --keep-columns model,split
  gradewire bulk 'answers/*.jsonl.gz' scores.jsonl --metrics smile:fast,exact_match
  gradewire bulk answers.parquet scores.parquet --resume
  gradewire bulk s3://bucket/answers/*.parquet s3://bucket/scores/ --ray-address auto
  gradewire bulk answers.jsonl scores.jsonl --server 127.0.0.1:50051 --workers 8

INPUT and OUTPUT are paths or URLs that fsspec knows (s3://, gs://, …; each needs its own package, for instance s3fs).
An OUTPUT that ends in / is a folder of parts, each JSONL; any other is one file in the order of the input, .jsonl,
.parquet, .csv or .tsv, as gradewire score writes it. Until it is whole its parts are in OUTPUT.parts; whatever ends a
run, the same command with --resume goes on from them.

{exit_codes(failed_rows="some rows have no score (see --fail-on)")}""",
)
@click.argument("paths", metavar="INPUT... OUTPUT", nargs=-1, required=True)
@column_options
@click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these rows. May be repeated.")
@metric_options
@judge_options
@cascade_options
@connection_options
@bulk_options
@fail_on_option
@price_options
@click.option("--quiet", is_flag=True, help="Show no progress and no summary.")
@click.pass_context
def bulk_command(ctx: click.Context, /, *, paths: Sequence[str], fail_on: FailOn, quiet: bool, **options: Any) -> None:
    """Score the answers of large INPUTs on Ray Data, and write each row once to OUTPUT, whatever breaks on the way.

    Workers hold an engine each, or are clients of --server; model and options are those of gradewire score, and so are
    the scores. Needs the extra ray.
    """
    if len(paths) < 2:
        raise click.UsageError("give at least one INPUT, and OUTPUT as the last")
    refuse_standard_input(tuple(paths))
    output = BulkOutput.of(paths[-1], options)
    source = input_file({**options, "files": paths[:-1]})
    check_outputs(output.written, source.named_paths)
    connection = connection_of(options)
    job = BulkJob(
        source=source,
        metrics=metric_options_of(options),
        connection=connection,
        output=output,
        cluster=Cluster.of(options),
        prices=prices_of(options),
        quiet=quiet,
    )
    with exit_on_interrupt(lambda: f"interrupted; {job.way_on()}"), one_line_errors():
        try:
            job.run(asyncio.run(job.ask()))
        except StoppedError as stopped:
            click.echo(stopped.format_message(), err=True)
            ctx.exit(ExitCode.INTERRUPTED)
    if job.summary.fails(fail_on):
        ctx.exit(ExitCode.FAILED)
