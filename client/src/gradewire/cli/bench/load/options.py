"""Reads the options of `gradewire bench load` into what is offered, by whom, and where figures go."""

from __future__ import annotations

import math
import random
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from gradewire.cli.input.files import input_file
from gradewire.cli.options.connection import server_of
from gradewire.cli.problems import InputError, named_errors, one_line_errors
from gradewire.cli.run.manifest_file import manifest_beside
from gradewire.items import ItemProblem, encode_item
from gradewire.load_testing.arrivals import replayed
from gradewire.load_testing.content.mixes import MIXES
from gradewire.load_testing.content.own_rows import OwnRows
from gradewire.load_testing.run import LoadPlan
from gradewire.load_testing.steps import Objective
from gradewire.load_testing.workers.worker import WorkerSetup
from gradewire.metric_types.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire.load_testing.arrivals import Offsets
    from gradewire.load_testing.content.mixes import Mix
    from gradewire.metric_types.choice import MetricChoice
    from gradewire_proto.v1 import types_pb2

_METRICS: Final = {"judge": "lave"}
_USUAL_METRIC: Final = "smile"
_MOST_ITEM_BYTES: Final = 1 << 20
_LAG_SHARE: Final = 0.1
_LEAST_LAG_S: Final = 0.005
_SINGLE_STEP_S: Final = 30.0
_STEP_S: Final = 10.0
_SEEDS: Final = 1_000_000
_MADE_UP: Final = ("mix", "words")
_PARAMETERS: Final = (
    *_MADE_UP, "repeat_share", "batch", "call", "deadline_s", "slo_s", "arrivals", "speed", "seed", "min_calls",
    "client_processes", "connections", "start_rate", "max_rate", "rate",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutputs:
    """Where figures go; None for nowhere."""

    json: Path | None
    html: Path | None
    manifest: Path | None

    @property
    def named(self) -> list[tuple[str, Path | None]]:
        """Option and file of each, as `check_outputs` takes them."""
        return [("--json", self.json), ("--html", self.html), ("--manifest", self.manifest)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The options.

    Attributes:
        setup: Of the client processes.
        processes: How many.
        plan: What is offered.
        metrics: What is computed.
        rate_per_s: Of the single step; None for the search.
        arrivals: Those of the single step that are replayed; None where none are.
        inputs: Files that are read.
        rows_from: Those of them whose rows are sent.
        parameters: Options that change what comes out, by name.
        outputs: Where figures go.
        quiet: Show no progress.
    """

    setup: WorkerSetup
    processes: int
    plan: LoadPlan
    metrics: MetricChoice
    rate_per_s: float | None
    arrivals: Offsets | None
    inputs: Sequence[str]
    rows_from: Sequence[str]
    parameters: Mapping[str, Any]
    outputs: LoadOutputs
    quiet: bool

    @property
    def own_rows(self) -> OwnRows | None:
        """Rows of the user's that are sent; None for a mix."""
        return self.setup.rows if isinstance(self.setup.rows, OwnRows) else None


def load_options_of(options: Mapping[str, Any]) -> LoadOptions:
    """Reads them, and the rows of the files.

    Raises:
        click.ClickException: An option or a row cannot be used.
    """
    _check_together(options)
    if options["seed"] is None:
        # Answers of an earlier run's seed are known to its server, and would be measured as new ones.
        options = {**options, "seed": secrets.randbelow(_SEEDS)}
    arrivals, rate, duration_s = _single_step(options)
    with one_line_errors():
        metrics = choose_metrics(options["metrics"] or _METRICS.get(options["mix"], _USUAL_METRIC), MetricDefaults())
    setup = WorkerSetup(
        endpoint=server_of(options),
        connections=options["connections"],
        call=options["call"],
        metrics=[spec.SerializeToString() for spec in metrics.specs],
        rows=_own_rows(options) if options["files"] else _mix(options),
        batch=options["batch"],
        deadline_s=options["deadline_s"],
        seed=options["seed"],
        wait_s=options["wait_s"],
    )
    left_out = _MADE_UP if options["files"] else ()
    told = {name: options[name] for name in _PARAMETERS if options[name] is not None and name not in left_out}
    return LoadOptions(
        setup=setup,
        processes=options["client_processes"],
        plan=_plan(options, rate, duration_s),
        metrics=metrics,
        rate_per_s=rate,
        arrivals=arrivals,
        inputs=[*options["files"], *([str(options["replay"])] if options["replay"] else [])],
        rows_from=options["files"],
        parameters={**told, "duration_s": duration_s},
        outputs=LoadOutputs(
            json=options["json_path"],
            html=options["html"],
            manifest=manifest_beside(options["manifest"], options["json_path"], options["html"]),
        ),
        quiet=options["quiet"],
    )


def _plan(options: Mapping[str, Any], rate: float | None, duration_s: float) -> LoadPlan:
    return LoadPlan(
        arrivals=options["arrivals"],
        step_s=duration_s,
        min_calls=options["min_calls"] if rate is None else 1,
        seed=options["seed"],
        batch=options["batch"],
        objective=Objective(p99_s=options["slo_s"], max_lag_s=max(_LEAST_LAG_S, _LAG_SHARE * options["slo_s"])),
        start_per_s=options["start_rate"],
        most_per_s=options["max_rate"] or math.inf,
        metrics_url=options["metrics_url"],
    )


def _check_together(options: Mapping[str, Any]) -> None:
    if options["rate"] is not None and options["replay"] is not None:
        raise click.UsageError("--replay says when calls arrive: leave out --rate (--speed replays faster)")
    single = options["rate"] is not None or options["replay"] is not None
    for name in ("start_rate", "max_rate"):
        if single and options[name] is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for the search: leave it out with --rate or --replay"
            )
    if options["files"] and options["words"] is not None:
        raise click.UsageError("--words is for a --mix: leave it out with FILE")
    url = options["metrics_url"]
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--metrics-url {url}: write http://HOST:PORT/metrics")


def _single_step(options: Mapping[str, Any]) -> tuple[Offsets | None, float | None, float]:
    """Arrivals that are replayed, calls per second of a single step, and seconds of a step."""
    if options["replay"] is None:
        usual_s = _STEP_S if options["rate"] is None else _SINGLE_STEP_S
        return None, options["rate"], options["duration"] or usual_s
    with one_line_errors(), named_errors(options["replay"]):
        arrivals = replayed(options["replay"], options["speed"])
    if options["duration"] is not None:
        arrivals = arrivals[arrivals < options["duration"]]
    duration_s = max(float(arrivals[-1]), 1e-3)
    return arrivals, len(arrivals) / duration_s, duration_s


def _mix(options: Mapping[str, Any]) -> Mix:
    mix = MIXES[options["mix"]]
    if options["words"] is not None:
        mix = replace(mix, min_words=options["words"], max_words=options["words"])
    return mix if options["repeat_share"] is None else replace(mix, repeat_share=options["repeat_share"])


def _own_rows(options: Mapping[str, Any]) -> OwnRows:
    items: list[types_pb2.Item] = []
    for row in input_file({**options, "where": ()}).open().rows:
        item: types_pb2.Item | ItemProblem = ItemProblem("", row.problem)
        if row.item is not None:
            item = encode_item(row.index, row.item, max_bytes=_MOST_ITEM_BYTES)
        if isinstance(item, ItemProblem):
            raise InputError(f"{row.place}: {item.message}")
        items.append(item)
    if not items:
        raise InputError(f"{options['files'][0]}: it holds no rows")
    # Files are often sorted, by data set or by length, and steps would have different answers.
    random.Random(options["seed"]).shuffle(items)  # noqa: S311 - test data, not a secret
    return OwnRows.of(items, options["repeat_share"] or 0.0)
