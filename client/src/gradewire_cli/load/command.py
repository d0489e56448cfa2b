"""`gradewire bench load`: the rate that a server keeps up with, and its behaviour at twice that rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from gradewire_cli.load.content import MIXES
from gradewire_cli.load.options import load_options_of, measured, prepared
from gradewire_cli.load.output import load_notes, step_table, write_document, write_load_manifest, write_page
from gradewire_cli.options.common import OUTPUT_FILE, FiniteRange, option_group
from gradewire_cli.options.connection import SERVER_VARIABLE, credential_options, wait_option
from gradewire_cli.problems import exit_codes, one_line_errors
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.manifest import RunClock
from gradewire_cli.results.manifest_file import manifest_option
from gradewire_cli.results.tables import show_tables
from gradewire_cli.rows.input_file import ALIAS_HELP, column_options
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from gradewire_cli.load.run import LoadResult
    from gradewire_cli.load.steps import Step

_POSITIVE: Final = FiniteRange(min=0, min_open=True)
_RATE: Final = FiniteRange(min=0.01, max=1e6)
_load_options = option_group(
    click.argument("files", metavar="[FILE]...", nargs=-1),
    click.option(
        "--server",
        metavar="HOST:PORT",
        envvar=SERVER_VARIABLE,
        show_envvar=True,
        default="127.0.0.1:50051",
        help="The server under load; `gradewire serve` starts one.",
    ),
    credential_options,
    wait_option,
    click.option("--mix", type=click.Choice(list(MIXES)), default="short", help="Send these answers; listed below."),
    column_options,
    click.option("--metrics", help="Metrics, as in gradewire score. Default: smile; lave with --mix judge."),
    click.option("--batch", type=click.IntRange(1, 1000), default=1, help="Answers of a call."),
    click.option("--deadline-s", type=_POSITIVE, default=5.0, help="Deadline of a call, seconds."),
    click.option("--rate", type=_RATE, help="Measure these calls per second in one step, in place of the search."),
    click.option(
        "--duration",
        type=_POSITIVE,
        help="Seconds of a step. Default: 30 with --rate, else 10, and up to 60 until there are 500 calls.",
    ),
    click.option("--slo-s", type=_POSITIVE, default=0.25, help="Most that p99 may be at the knee, seconds."),
    click.option("--start-rate", type=_RATE, help="First rate of the search. Default: from a short probe."),
    click.option("--max-rate", type=_RATE, help="Highest rate of the search; twice the knee may be more."),
    click.option(
        "--seed",
        type=click.IntRange(0),
        help="Repeat the arrivals and answers of a run: a server that has seen them answers from its cache. Default: "
        "drawn for each run, and printed.",
    ),
    click.option("--client-processes", type=click.IntRange(1, 256), default=1, help="Processes that send calls."),
    click.option(
        "--metrics-url",
        metavar="URL",
        help="Read the server's CPU time and memory from its page of metrics: http://HOST:PORT/metrics.",
    ),
    click.option("--json", "json_path", type=OUTPUT_FILE, help="Write all figures here."),
    click.option("--html", type=OUTPUT_FILE, help="Write a page with a plot here; it loads nothing."),
    manifest_option,
    click.option("--quiet", is_flag=True, help="Show no progress."),
)


@click.command(
    "load",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire serve --port 50051 --http-port 9100            in another terminal
  gradewire bench load --metrics-url http://127.0.0.1:9100/metrics --html load.html
  gradewire bench load --server 10.0.0.7:50051 --mix verbose --metrics smile:fast --json verbose.json
  gradewire bench load answers.jsonl --rate 200 --duration 60

Calls leave on a schedule, whether or not earlier ones have returned, and latency counts from when a call was due, so a
stall is seen by all calls that it kept waiting. If the client itself is late (p99 of its lag above a tenth of --slo-s),
a step shows nothing about the server and is void: give more --client-processes, or run them on another machine.

The knee is the highest rate at which the 99th percentile of scored calls is at most --slo-s, at most 0.1 % of the calls
are refused and as many fail, and at least 99 % are scored before the step is over (and --slo-s has passed). It is found
within 10 %. Then twice that rate is offered, and the server's promises under overload are checked.

\b
Mixes (answers to questions about pictures, made up; those that are not repeated are new to the server):
  short     3 to 6 words
  verbose   40 to 60 words
  repeats   as short; half of them were sent before
  judge     as short, for a metric that asks a judge (default: lave)

{
        exit_codes(
            failed_rows="",
            condition="a promise was not kept at twice the knee, or there is no result: no rate held, the client was "
            "the bottleneck, or the server could not be reached any more",
        )
    }""",
)
@_load_options
@click.pass_context
def load_command(ctx: click.Context, /, **options: Any) -> None:
    """Put a load on a server: raise the rate to the knee, then offer twice as much; or one fixed --rate.

    With FILE, its rows are sent in place of a --mix: each is new until it has been sent once, so a search needs
    thousands. Ctrl-C ends the run; what was measured until then, or until something broke, is shown as partial.
    """
    clock = RunClock()
    given = load_options_of(options)
    check_outputs(given.outputs, {path: path for path in given.files})
    with one_line_errors():
        lines, version = prepared(given)
        result, broken = measured(given, _silent if options["quiet"] else _show_step)
    notes = load_notes(result, given)
    table = step_table(result)
    show_tables([table], notes, ())
    write_document(result, given, lines)
    write_page(result, given, table, notes)
    write_load_manifest(result, given, lines, version, clock)
    if broken is not None:
        with one_line_errors():
            raise broken
    if result.stopped:
        ctx.exit(ExitCode.INTERRUPTED)
    if _has_failed(result):
        ctx.exit(ExitCode.GATE)


def _has_failed(result: LoadResult) -> bool:
    knee = result.knee
    if knee is None:
        return any(step.client_limited or step.is_lost for step in result.steps)
    no_result = knee.rate_per_s is None or knee.client_limited or knee.lost
    late = any(step.over_knee and step.client_limited for step in result.steps)
    return no_result or late or any(check.holds is False for check in result.checks)


def _show_step(step: Step) -> None:
    """Print a line on standard error after each step."""
    counts = step.counts
    click.echo(
        f"{step.rate_per_s:.4g} calls/s{' (twice the knee)' if step.over_knee else ''}: {counts.due} calls, p50 "
        f"{step.latency_s(50) * 1e3:.1f} ms, p99 {step.latency_s(99) * 1e3:.1f} ms, refused "
        f"{step.share(counts.refused):.1%}, client lag p99 {step.lag_s * 1e3:.1f} ms: {step.outcome.value}",
        err=True,
    )


def _silent(step: Step) -> None:
    """Print nothing."""
