"""What a judge is asked with: options that several commands share, and what users are told before they pay for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradewire.cli.options.plan import GivenPrompt
from gradewire.cli.problems import InputError
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire.metric_types.prompt_text import read_prompt_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradewire import AsyncClient, ModelList
    from gradewire.cli.options.plan import ScorePlan
    from gradewire.metric_types import Metric

Command = TypeVar("Command", bound="Callable[..., Any]")

# How often a row that the judge could not take is sent again.
RETRIES = 2


def judge_options(command: Command) -> Command:
    """Adds the options of judge metrics; `plan_of` reads them."""
    for option in reversed(
        (
            click.option("--judge", metavar="NAME[@DIGEST]", help="Judge of the metrics that ask one."),
            click.option(
                "--prompt",
                "prompts",
                metavar="FILE",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                multiple=True,
                help="Prompt file for the metric that it names, where --metrics names no other. May be repeated.",
            ),
            click.option(
                "--retries",
                type=click.IntRange(min=0),
                default=RETRIES,
                show_default=True,
                help="How often rows are sent again when the judge is away or its queue is full.",
            ),
        )
    ):
        command = option(command)
    return command


def read_prompt_file(path: Path) -> GivenPrompt:
    """Reads a prompt file.

    Raises:
        InputError: It cannot be read.
        InvalidRequest: It is no prompt file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return GivenPrompt(path, read_prompt_text(data, str(path)))


def with_prompts(plan: ScorePlan) -> ScorePlan:
    """Puts the text of each --prompt file into its metric: where that names the file, or no prompt at all.

    Raises:
        InputError: A file is for none of the metrics, or two are for the same.
        GradewireError: A metric is not to be understood.
    """
    if not plan.prompts:
        return plan
    used: set[Path] = set()
    metrics = []
    for metric in choose_metrics(plan.metrics, MetricDefaults()).metrics:
        fitting = _fitting(metric, plan.prompts)
        if len(fitting) > 1:
            paths = " and ".join(str(given.path) for given in fitting)
            raise InputError(
                f"--prompt: {paths} are both for {metric.name}: say which in --metrics "
                f"('{metric.name}?prompt={fitting[0].prompt.name}'), or leave one out"
            )
        for given in fitting:
            changes: dict[str, Any] = {"prompt": given.prompt.text}
            metric = replace(metric, **changes)  # noqa: PLW2901 - at most one fits
            used.add(given.path)
        metrics.append(metric)
    for given in plan.prompts:
        if given.path not in used:
            raise InputError(
                f"--prompt {given.path}: it is {given.prompt.name} for {given.prompt.metric}, which is not among "
                "--metrics, or says another prompt there"
            )
    return replace(plan, metrics=metrics)


def _fitting(metric: Metric, prompts: Sequence[GivenPrompt]) -> list[GivenPrompt]:
    named = getattr(metric, "prompt", None)
    return [
        given
        for given in prompts
        if given.prompt.metric == metric.name and (not named or given.prompt.is_named_by(named))
    ]


async def tell_about_judges(client: AsyncClient, plan: ScorePlan) -> None:
    """Says on standard error, once, what is to be known of the judges and metrics that are asked for.

    Nobody should pay for a worse answer, or trust a judge that is for tests, without having been told.

    Raises:
        GradewireError: The server is not there, or a metric is not to be understood.
    """
    asked = [metric for metric in plan.choice().metrics if metric.needs_judge]
    if asked:
        for line in dict.fromkeys(_remarks(asked, await client.models())):
            click.echo(line, err=True)


def _remarks(asked: Sequence[Metric], listed: ModelList) -> list[str]:
    advice = {metric.name: metric.advice for metric in listed.metrics if metric.advice}
    lines = [f"{metric.name}: {advice[metric.name]}" for metric in asked if metric.name in advice]
    judges = {str(getattr(metric, "model", None) or "").partition("@")[0] for metric in asked}
    for model in listed.models:
        if model.kind == "judge" and (model.name in judges or (model.is_default and "" in judges)):
            lines += [f"judge {model.name}: {remark}" for remark in model.remarks]
    return lines
