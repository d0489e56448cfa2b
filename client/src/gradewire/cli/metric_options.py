"""What to score with: options that several commands share."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradewire.cli.pipeline import ScorePlan
from gradewire.metric_types import METRIC_TYPES, PRESETS, SYNTHETIC_MODES, Cider, Smile
from gradewire.metric_types.wire import Kind, WireParameter, wire_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradewire import AsyncClient
    from gradewire.metric_types import Metric

Command = TypeVar("Command", bound="Callable[..., Any]")

# Stands in --metrics for every metric that the server can compute.
ALL_METRICS = "all"
_HELP_COLUMNS = 78
_PLACEHOLDERS = {Kind.FLAG: "true|false", Kind.COUNT: "N", Kind.NUMBER: "X", Kind.TEXT: "NAME"}


def metric_options(command: Command) -> Command:
    """Adds the options that choose metrics; `plan_of` reads them."""
    for option in reversed(
        (
            click.option(
                "--metrics",
                default="smile",
                show_default=True,
                help="Comma-separated: names, names with parameters ('bertscore?layer=5&measure=recall'), NAME:PRESET, "
                "or whole lines as a summary prints them; all: every metric that the server can compute. Listed below.",
            ),
            click.option("--preset", type=click.Choice(PRESETS), help="For smile where --metrics names none."),
            click.option(
                "--synthetic",
                type=click.Choice(SYNTHETIC_MODES),
                help="What smile compares sentences with: the reference itself (none), the file's synthetic answers "
                "(inline), or prepared ones. Default: inline where the rows have them, else none.",
            ),
            click.option(
                "--reference-set",
                metavar="NAME",
                help="With --synthetic prepared, corpus=prepared or idf=prepared: what prepare printed.",
            ),
            click.option("--model", metavar="NAME[@DIGEST]", help="Encoder; default: the server's default."),
        )
    ):
        command = option(command)
    return command


async def with_all_metrics(client: AsyncClient, plan: ScorePlan) -> ScorePlan:
    """Puts the server's metrics in the place of `all`; smile is there even where its encoder is not, and says so.

    Args:
        client: Where the scoring will be done.
        plan: What is asked.

    Raises:
        GradewireError: The server is not there.
    """
    written = [name.strip() for name in plan.metrics.split(",")] if isinstance(plan.metrics, str) else []
    if ALL_METRICS not in written:
        return plan
    listed = {metric.name for metric in (await client.models()).metrics if metric.available} | {Smile.name}
    every = [name for name in METRIC_TYPES if name in listed]
    place = written.index(ALL_METRICS)
    return replace(plan, metrics=",".join([*written[:place], *every, *written[place + 1 :]]))


def over_a_file(metric: Metric) -> Metric:
    """A cider that names no corpus takes the prepared one.

    Its default, the items of one request, would be a batch of rows here, and give a row another score in another file.
    """
    return replace(metric, corpus="prepared") if isinstance(metric, Cider) and metric.corpus is None else metric


def metrics_help() -> str:
    """The metrics with their parameters, as a block for a command's help."""
    width = max(map(len, METRIC_TYPES)) + 2
    lines = []
    for name in METRIC_TYPES:
        parameters = sorted(_written(parameter) for parameter in wire_parameters(name).values())
        lines += textwrap.wrap(
            "  ".join(parameters) or "-",
            _HELP_COLUMNS,
            initial_indent=f"  {name:<{width}}",
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(["\b", "Metrics, and what NAME?KEY=VALUE&KEY=VALUE takes:", *lines])


def _written(parameter: WireParameter) -> str:
    values = "|".join(parameter.choices) if parameter.kind is Kind.CHOICE else _PLACEHOLDERS[parameter.kind]
    return f":{values}" if parameter.name == "preset" else f"{parameter.name}={values}"


def plan_of(options: Mapping[str, Any], *, scoring: bool = True) -> ScorePlan:
    """Reads the options of `metric_options`.

    Args:
        options: Values of the command's options by name; others are not looked at.
        scoring: Whether prepared answers are used, and their set has to be named, or are made.

    Raises:
        click.UsageError: --synthetic prepared and --reference-set do not go together.
    """
    named = options["reference_set"] or "reference_set=" in options["metrics"]
    if scoring and options["synthetic"] == "prepared" and not named:
        raise click.UsageError("--synthetic prepared needs --reference-set: the name that `gradewire prepare` prints")
    names = ("metrics", "preset", "synthetic", "model", "reference_set")
    return ScorePlan(**{name: options[name] for name in names})
