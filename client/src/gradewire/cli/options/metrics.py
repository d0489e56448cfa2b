"""What to score with: options that several commands share."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradewire.cli.options.judges import read_prompt_file
from gradewire.cli.options.plan import ScorePlan
from gradewire.cli.problems import one_line_errors
from gradewire.metric_types import METRIC_TYPES, PRESETS, SYNTHETIC_MODES, Cider, Smile
from gradewire.metric_types.line import parse_metric_line
from gradewire.metric_types.wire import Kind, WireParameter, wire_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gradewire import AsyncClient
    from gradewire.metric_types import Metric
    from gradewire.model_list import ModelList

Command = TypeVar("Command", bound="Callable[..., Any]")

# Stands in --metrics for every metric that the server can compute.
ALL_METRICS = "all"
_UNREAD = (
    "it counts the references of the file first, and standard input cannot be read twice: give a file, or "
    "--reference-set"
)
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
                "or whole lines as a summary prints them; all: every metric that the server can compute without a "
                "judge. Listed below.",
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


async def with_all_metrics(
    client: AsyncClient, plan: ScorePlan, *, reads_twice: bool = True, quiet: bool = False
) -> ScorePlan:
    """Puts the server's metrics in the place of `all`, but for those written beside it with nothing more to say.

    Says on standard error which metrics of this client are left out, and why. Smile is there even where its encoder is
    not: its rows say so.

    Args:
        client: Where the scoring will be done.
        plan: What is asked.
        reads_twice: Whether the input can be read twice; if not, and no reference set is named, cider is left out.
        quiet: Say nothing.

    Raises:
        GradewireError: The server is not there, or a metric is not to be understood.
    """
    written = [name.strip() for name in plan.metrics.split(",")] if isinstance(plan.metrics, str) else []
    if ALL_METRICS not in written:
        return plan
    # A judge takes seconds for a row, or money: nobody asks one by accident.
    every_kind = {name: kind for name, kind in METRIC_TYPES.items() if not kind.needs_judge}
    left_out = dict.fromkeys(every_kind, "the server does not have it")
    listed = await client.models()
    beyond = _beyond(listed, plan.model)
    for metric in listed.metrics:
        if metric.name in left_out and metric.name in beyond:
            left_out[metric.name] = beyond[metric.name]
        elif metric.available:
            left_out.pop(metric.name, None)
        elif metric.name in left_out:
            left_out[metric.name] = metric.missing or "the server cannot compute it"
    left_out.pop(Smile.name, None)
    if not (reads_twice or plan.reference_set or "reference_set=" in ",".join(written)):
        left_out.setdefault(Cider.name, _UNREAD)
    beside = [_with_defaults(parse_metric_line(line)) for line in written if line != ALL_METRICS]
    every = [name for name, kind in every_kind.items() if name not in left_out and _with_defaults(kind()) not in beside]
    place = written.index(ALL_METRICS)
    rest = [line for line in written[place + 1 :] if line != ALL_METRICS]
    if not quiet:
        named = {metric.name for metric in beside}
        _tell_left_out({name: reason for name, reason in left_out.items() if name not in named})
    return replace(plan, metrics=",".join([*written[:place], *every, *rest]))


def _beyond(listed: ModelList, model: str | None) -> Mapping[str, str]:
    """What the plan's encoder cannot compute as it is built, and why; nothing where it is not known."""
    name = (model or "").partition("@")[0]
    for encoder in listed.models:
        if encoder.kind == "encoder" and (encoder.name == name if name else encoder.is_default):
            return encoder.without_metrics
    return {}


def _tell_left_out(left_out: Mapping[str, str]) -> None:
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        click.echo(f"left out of {ALL_METRICS}: {names} ({reason})", err=True)


def _with_defaults(metric: Metric) -> Metric:
    """What the metric's name alone asks for, where the metric says no more than that."""
    metric = over_a_file(replace(metric, version=None))
    return replace(metric, preset=metric.preset or "v1") if isinstance(metric, Smile) else metric


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
    judged = ", ".join(name for name, kind in METRIC_TYPES.items() if kind.needs_judge)
    asked = textwrap.wrap(
        f"{judged} ask a judge, a language model: seconds for a row on a CPU. They are no part of all; "
        "all,lave has both.",
        _HELP_COLUMNS,
    )
    return "\n".join(["\b", "Metrics, and what NAME?KEY=VALUE&KEY=VALUE takes:", *lines, "", "\b", *asked])


def _written(parameter: WireParameter) -> str:
    values = "|".join(parameter.choices) if parameter.kind is Kind.CHOICE else _PLACEHOLDERS[parameter.kind]
    return f":{values}" if parameter.name == "preset" else f"{parameter.name}={values}"


def plan_of(options: Mapping[str, Any], *, scoring: bool = True) -> ScorePlan:
    """Reads the options of `metric_options`, and those of `judge_options` where answers are scored.

    Args:
        options: Values of the command's options by name; others are not looked at.
        scoring: Whether prepared answers are used, and their set has to be named, or are made.

    Raises:
        click.UsageError: --synthetic prepared and --reference-set do not go together.
        InputError: A --prompt is no prompt file.
    """
    named = options["reference_set"] or "reference_set=" in options["metrics"]
    if scoring and options["synthetic"] == "prepared" and not named:
        raise click.UsageError("--synthetic prepared needs --reference-set: the name that `gradewire prepare` prints")
    names = ("metrics", "preset", "synthetic", "model", "reference_set")
    plan = ScorePlan(**{name: options[name] for name in names})
    if not scoring:
        return plan
    with one_line_errors():
        prompts = [read_prompt_file(path) for path in options["prompts"]]
    return replace(plan, judge=options["judge"], prompts=prompts, retries=options["retries"])
