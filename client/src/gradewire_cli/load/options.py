"""The options of `gradewire bench load` as settings of a run, and the run itself."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire import AsyncClient
from gradewire.items import ItemProblem, encode_item
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire_cli.load.content import MIXES, OwnRows
from gradewire_cli.load.processes import LoadProcesses, WorkerSetup
from gradewire_cli.load.run import LoadPlan, LoadResult, LoadRun
from gradewire_cli.load.steps import Objective, read_usage
from gradewire_cli.options.connection import BATCH_DEADLINE_S, server_of
from gradewire_cli.problems import InputError, one_line_errors, redacted
from gradewire_cli.results.manifest_file import manifest_path_of
from gradewire_cli.rows.input_file import input_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gradewire.metrics.choice import MetricChoice
    from gradewire_cli.load.steps import Step
    from gradewire_proto.v1 import types_pb2

_METRICS: Final = {"judge": "lave"}
_USUAL_METRIC: Final = "smile"
_MOST_ITEM_BYTES: Final = 1 << 20
_LAG_SHARE: Final = 0.1
_LEAST_LAG_S: Final = 0.005
_SINGLE_STEP_S: Final = 30.0
_SEEDS: Final = 1_000_000
_PARAMETERS: Final = (
    "mix", "batch", "deadline_s", "slo_s", "seed", "client_processes", "start_rate", "max_rate", "rate", "duration",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The options.

    Attributes:
        setup: Settings of the client processes.
        processes: Number of client processes.
        plan: The load that is offered.
        metrics: Metrics of every call.
        rate_per_s: Rate of the single step; None for the search.
        files: Files whose rows are sent.
        parameters: Options that change the results, by name.
        outputs: Option and file of each output; None for nowhere.
    """

    setup: WorkerSetup
    processes: int
    plan: LoadPlan
    metrics: MetricChoice
    rate_per_s: float | None
    files: Sequence[str]
    parameters: Mapping[str, Any]
    outputs: Sequence[tuple[str, Path | None]]

    @property
    def file_rows(self) -> int | None:
        """Rows of the files; None for a mix."""
        return len(self.setup.rows) if isinstance(self.setup.rows, OwnRows) else None

    def output(self, option: str) -> Path | None:
        """Return the file of an output option."""
        return dict(self.outputs)[option]


def load_options_of(options: Mapping[str, Any]) -> LoadOptions:
    """Read the options, and the rows of the files.

    Raises:
        click.ClickException: An option or a row cannot be used.
    """
    _check_together(options)
    if options["seed"] is None:
        # Answers of an earlier run's seed are known to its server, and would be measured as new ones.
        options = {**options, "seed": secrets.randbelow(_SEEDS)}
    rate, slo_s = options["rate"], options["slo_s"]
    with one_line_errors():
        metrics = choose_metrics(options["metrics"] or _METRICS.get(options["mix"], _USUAL_METRIC), MetricDefaults())
    setup = WorkerSetup(
        endpoint=server_of(options),
        metrics=[spec.SerializeToString() for spec in metrics.specs],
        rows=_own_rows(options) if options["files"] else MIXES[options["mix"]],
        batch=options["batch"],
        deadline_s=options["deadline_s"],
        seed=options["seed"],
        wait_s=options["wait_s"],
    )
    plan = LoadPlan(
        step_s=options["duration"] or (None if rate is None else _SINGLE_STEP_S),
        seed=options["seed"],
        batch=options["batch"],
        objective=Objective(p99_s=slo_s, max_lag_s=max(_LEAST_LAG_S, _LAG_SHARE * slo_s)),
        start_per_s=options["start_rate"],
        most_per_s=options["max_rate"] or math.inf,
        metrics_url=options["metrics_url"],
    )
    left_out = {"mix"} if options["files"] else set()
    outputs = [("--json", options["json_path"]), ("--html", options["html"])]
    manifest = manifest_path_of(options["manifest"], *(path for _, path in outputs))
    return LoadOptions(
        setup=setup,
        processes=options["client_processes"],
        plan=plan,
        metrics=metrics,
        rate_per_s=rate,
        files=options["files"],
        parameters={name: options[name] for name in _PARAMETERS if options[name] is not None and name not in left_out},
        outputs=[*outputs, ("--manifest", manifest)],
    )


def prepared(given: LoadOptions) -> tuple[Mapping[str, str], str]:
    """Send what the run repeats, once; return the lines of the metrics by label, and the server's version.

    Raises:
        GradewireError: The server does not answer, or its page of metrics cannot be read: nothing was sent.
    """
    if given.plan.metrics_url is not None:
        read_usage(given.plan.metrics_url)
    return asyncio.run(_prepare(given))


async def _prepare(given: LoadOptions) -> tuple[Mapping[str, str], str]:
    endpoint, names = given.setup.endpoint, given.metrics.named
    async with AsyncClient(endpoint.address, token=endpoint.token, tls=endpoint.tls) as client:
        listed = await client.models(deadline_s=given.setup.wait_s)
        report = await client.score([], metrics=names)
        pool = [
            {"question": each.question, "references": list(each.references), "prediction": each.prediction}
            for each in given.setup.rows.pool()
        ]
        await client.score(pool, metrics=names, deadline_s=BATCH_DEADLINE_S)
    return {label: provenance.line for label, provenance in report.provenance.items()}, listed.server_version


def measured(given: LoadOptions, on_step: Callable[[Step], None]) -> tuple[LoadResult, BaseException | None]:
    """Run it; return the results, and the error that broke the run off, raised here if nothing had been measured."""
    result = LoadResult()
    try:
        with LoadProcesses(given.setup, given.processes) as processes:
            run = LoadRun(processes, given.plan, on_step, result)
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
            raise click.UsageError(f"--{name.replace('_', '-')} is for the search: leave it out with --rate")
    url = options["metrics_url"]
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--metrics-url {url}: write http://HOST:PORT/metrics")


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
        raise InputError(f"{options['files'][0]}: it holds no rows")
    # Files are often sorted, by data set or by length, and steps would have different answers.
    random.Random(options["seed"]).shuffle(items)  # noqa: S311 - test data, not a secret
    return OwnRows(items)
