"""`gradewire bench load`: how much a server keeps up with, and what it does at twice as much."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from gradewire import AsyncClient
from gradewire.cli.bench.load.document import load_document, write_load_manifest
from gradewire.cli.bench.load.live import Live
from gradewire.cli.bench.load.option_group import load_options
from gradewire.cli.bench.load.options import LoadOptions, load_options_of
from gradewire.cli.bench.load.page import write_page
from gradewire.cli.bench.load.tables import load_notes, step_tables
from gradewire.cli.input.files import ALIAS_HELP
from gradewire.cli.output.files import write_json
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.output.tables import show_figures
from gradewire.cli.problems import exit_codes, one_line_errors
from gradewire.cli.url_keys import without_keys
from gradewire.load_testing.run import LoadResult, LoadRun
from gradewire.load_testing.workers.processes import LoadProcesses
from gradewire.manifests import RunClock
from gradewire_proto.conventions.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(
    "load",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire serve --port 50051 --http-port 9100            in another terminal
  gradewire bench load --metrics-url http://127.0.0.1:9100/metrics --html load.html
  gradewire bench load --server 10.0.0.7:50051 --mix verbose --metrics smile:fast --json verbose.json
  gradewire bench load --rate 200 --duration 60
  gradewire bench load answers.jsonl --replay requests.log --speed 2

Calls leave on a schedule, whether or not earlier ones are back, and latency counts from when a call was due, so a stall
is seen by all calls that it kept waiting. Where the client itself is late (p99 of its lag above a tenth of --slo-s), a
step says nothing of the server and is void: give more --client-processes, or run them on another machine.

The knee is the highest rate at which the 99th percentile of scored calls is at most --slo-s, at most 0.1 % of the calls
are refused and as many fail, and at least 99 % are scored before the step is over (and --slo-s has passed). It is found
within 10 %. Then twice that rate is offered, and the server is held to what it promises under overload.

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
@load_options
@click.pass_context
def load_command(ctx: click.Context, /, **options: Any) -> None:
    """Put a load on a server: raise the rate to the knee, then offer twice as much; or one fixed --rate.

    With FILE, its rows are sent in place of a --mix: each is new until it has been sent once, so a search needs
    thousands. Ctrl-C ends the run; what was measured until then, or until something broke, is shown as partial.
    """
    clock = RunClock()
    given = load_options_of(options)
    check_outputs(given.outputs.named, {path: path for path in given.inputs})
    with one_line_errors():
        lines, version = asyncio.run(_asked(given))
        result, broken = _measured(given)
    notes = load_notes(result, given)
    show_figures(step_tables(result), notes, ())
    if given.outputs.json is not None:
        write_json(given.outputs.json, load_document(result, given, lines))
    if given.outputs.html is not None:
        write_page(given.outputs.html, result, given, notes)
    write_load_manifest(result, given, lines, version, clock)
    if broken is not None:
        with one_line_errors():
            raise broken
    if result.stopped:
        ctx.exit(ExitCode.INTERRUPTED)
    if _is_broken(result):
        ctx.exit(ExitCode.GATE)


def _measured(given: LoadOptions) -> tuple[LoadResult, BaseException | None]:
    """What was measured, and what broke the run off; raised here where nothing had been measured."""
    result = LoadResult()
    try:
        with Live.shown(quiet=given.quiet) as live, LoadProcesses(given.setup, given.processes) as processes:
            _run(LoadRun(processes, given.plan, live, result), given)
    except BaseException as error:
        if not result.steps:
            raise
        result.error = without_keys(" ".join(str(error).split())) or type(error).__name__
        return result, error
    return result, None


def _run(run: LoadRun, given: LoadOptions) -> None:
    run.fill()
    if run.result.stopped:
        return
    if given.arrivals is not None:
        run.offer(given.arrivals, given.rate_per_s or 0.0, given.plan.step_s)
    elif given.rate_per_s is not None:
        run.step(given.rate_per_s)
    else:
        run.to_the_knee()


def _is_broken(result: LoadResult) -> bool:
    knee = result.knee
    if knee is None:
        return any(step.client_limited or step.is_lost for step in result.steps)
    no_result = knee.rate_per_s is None or knee.client_limited or knee.lost
    late = any(step.over_knee and step.client_limited for step in result.steps)
    return no_result or late or any(check.holds is False for check in result.checks)


async def _asked(given: LoadOptions) -> tuple[Mapping[str, str], str]:
    """Lines of the metrics by label, as the server computes them, and its version."""
    endpoint = given.setup.endpoint
    async with AsyncClient(endpoint.address, token=endpoint.token, tls=endpoint.tls) as client:
        listed = await client.models(deadline_s=given.setup.wait_s)
        report = await client.score([], metrics=given.metrics.named)
    return {label: provenance.line for label, provenance in report.provenance.items()}, listed.server_version
