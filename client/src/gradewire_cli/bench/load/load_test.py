"""One load test from its options to its output: prepare the server, measure, and write tables and files."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire import AsyncClient
from gradewire.items import ItemProblem, encode_item
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_cli.bench.load.calls import Objective
from gradewire_cli.bench.load.content import MIXES, OwnRows
from gradewire_cli.bench.load.output import document_of, load_manifest, load_notes, load_page, step_table
from gradewire_cli.bench.load.processes import LoadOptions, LoadProcesses
from gradewire_cli.bench.load.run import LoadResult, LoadRun, Step, read_usage
from gradewire_cli.options.connection import BATCH_DEADLINE_S, server_of
from gradewire_cli.pages.page import write_page
from gradewire_cli.problems import InputError, one_line_errors, redacted
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.manifest_entries import RunClock, forget_manifest, manifest_path_of, save_manifest
from gradewire_cli.results.table_formats import write_json
from gradewire_cli.results.tables import show_tables
from gradewire_cli.rows.input_file import input_file
from gradewire_proto.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradewire_proto.v1 import types_pb2


_METRICS: Final = {"judge": "lave"}
_USUAL_METRIC: Final = "smile"
_MOST_ITEM_BYTES: Final = 1 << 20
_LAG_SHARE: Final = 0.1
_LEAST_LAG_S: Final = 0.005
_SINGLE_STEP_S: Final = 30.0
_SEEDS: Final = 1_000_000
_UNCHANGED: Final = ("files", "client_processes", "batch", "deadline_s", "wait_s", "seed", "metrics_url")
_PARAMETERS: Final = (
    "mix", "batch", "deadline_s", "slo_s", "seed", "client_processes", "start_rate", "max_rate", "rate", "duration",
)  # fmt: skip


def load_options_of(options: Mapping[str, Any]) -> LoadOptions:
    """Read the options and the files' rows; raise click.ClickException if an option or a file is unusable."""
    _check_together(options)
    if options["seed"] is None:
        # With an earlier run's seed, the server could answer from its cache.
        options = {**options, "seed": secrets.randbelow(_SEEDS)}
    rate, slo_s = options["rate"], options["slo_s"]
    with one_line_errors():
        metrics = choose_metrics(options["metrics"] or _METRICS.get(options["mix"], _USUAL_METRIC), MetricDefaults())
    outputs = {"--json": options["json_path"], "--html": options["html"]}
    left_out = {"mix"} if options["files"] else set()
    return LoadOptions(
        endpoint=server_of(options),
        metrics=metrics,
        rows=_own_rows(options) if options["files"] else MIXES[options["mix"]],
        objective=Objective(p99_s=slo_s, max_lag_s=max(_LEAST_LAG_S, _LAG_SHARE * slo_s)),
        step_s=options["duration"] or (None if rate is None else _SINGLE_STEP_S),
        rate_per_s=rate,
        start_per_s=options["start_rate"],
        most_per_s=options["max_rate"] or math.inf,
        parameters={name: options[name] for name in _PARAMETERS if options[name] is not None and name not in left_out},
        outputs={**outputs, "--manifest": manifest_path_of(options["manifest"], *outputs.values())},
        **{name: options[name] for name in _UNCHANGED},
    )


async def _prepare(given: LoadOptions) -> tuple[Mapping[str, str], str]:
    """Send each answer of the pool once. Return metric identifiers by label, and the server's version."""
    if given.metrics_url is not None:
        read_usage(given.metrics_url, given.endpoint.token)
    endpoint, names = given.endpoint, given.metrics.named
    async with AsyncClient(endpoint.address, token=endpoint.token, tls=endpoint.tls) as client:
        listed = await client.models(deadline_s=given.wait_s)
        report = await client.score([], metrics=names)
        pool = [
            {"question": each.question, "references": list(each.references), "prediction": each.prediction}
            for each in given.rows.pool()
        ]
        await client.score(pool, metrics=names, deadline_s=BATCH_DEADLINE_S)
    return {label: provenance.line for label, provenance in report.provenance.items()}, listed.server_version


def _measured(given: LoadOptions, on_step: Callable[[Step], None]) -> tuple[LoadResult, BaseException | None]:
    """Return the results and the error that ended the run early; the error is None if the run was complete.

    If no step has ended, raise the error instead.
    """
    result = LoadResult()
    try:
        with LoadProcesses(given) as processes:
            run = LoadRun(processes, given, on_step, result)
            if given.rate_per_s is None:
                run.search()
            else:
                run.step(given.rate_per_s)
    except BaseException as error:
        if not result.steps:
            raise
        result.error = redacted(" ".join(str(error).split())) or type(error).__name__
        return result, error
    return result, None


def _check_together(options: Mapping[str, Any]) -> None:
    for name in ("start_rate", "max_rate"):
        if options["rate"] is not None and options[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} is only for the search. Leave it out with --rate")
    url = options["metrics_url"]
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--metrics-url {url} is invalid. Use http://HOST:PORT/metrics")


def _own_rows(options: Mapping[str, Any]) -> OwnRows:
    items: list[types_pb2.Item] = []
    for row in input_file({**options, "where": ()}).open().rows:
        item: types_pb2.Item | ItemProblem = ItemProblem("", row.problem)
        if row.item is not None:
            item = encode_item(row.index, row.item, max_bytes=_MOST_ITEM_BYTES)
        if isinstance(item, ItemProblem):
            raise InputError(f"{row.position}: {item.message}")
        items.append(item)
    if not items:
        raise InputError(f"{options['files'][0]} has no rows")
    # Files are often sorted, so steps would differ without shuffling.
    random.Random(options["seed"]).shuffle(items)  # noqa: S311 - test data, not a secret
    return OwnRows(items)


def run_load_test(options: Mapping[str, Any]) -> ExitCode:
    """Test the server, show and write the results, and return the exit code.

    Raises:
        click.ClickException: An option or a file is unusable, or the server did not answer.
    """
    clock = RunClock()
    given = load_options_of(options)
    check_outputs(given.outputs.items(), {path: path for path in given.files})
    with one_line_errors():
        lines, version = asyncio.run(_prepare(given))
        result, broken = _measured(given, (lambda _: None) if options["quiet"] else _show_step)
    notes = load_notes(result, given)
    table = step_table(result)
    show_tables([table], notes, ())
    outputs = given.outputs
    forget_manifest(outputs["--manifest"])
    if outputs["--json"] is not None:
        write_json(outputs["--json"], document_of(result, given, lines))
    if outputs["--html"] is not None:
        write_page(outputs["--html"], [load_page(result, given, table, notes)])
    if outputs["--manifest"] is not None:
        save_manifest(outputs["--manifest"], load_manifest(result, given, lines, version, clock))
    if broken is not None:
        with one_line_errors():
            raise broken
    if result.stopped:
        return ExitCode.INTERRUPTED
    return ExitCode.GATE if result.has_failed else ExitCode.DONE


def _show_step(step: Step) -> None:
    counts = step.counts
    click.echo(
        f"{step.rate_per_s:.4g} calls/s{' (twice the knee)' if step.over_knee else ''}: {counts.due} calls, p50 "
        f"{step.latency_s(50) * 1e3:.1f} ms, p99 {step.latency_s(99) * 1e3:.1f} ms, refused "
        f"{step.share(counts.refused):.1%}, client lag p99 {step.lag_s * 1e3:.1f} ms: {step.outcome.value}",
        err=True,
    )
