"""Resolves the options, with a connected client, to what is asked of every row."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from gradewire import AsyncClient, ModelList
from gradewire.metrics import Auto, Synthetic
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricChoice, MetricDefaults, choose_metrics
from gradewire_cli.options.common import option_group
from gradewire_cli.options.connection import connection_options
from gradewire_cli.options.metrics import (
    GivenPrompt,
    MetricOptions,
    cascade_options,
    judge_options,
    metric_options,
    with_prompts,
)
from gradewire_cli.problems import InputError
from gradewire_cli.rows.input_file import InputFile, input_options
from gradewire_cli.scoring.corpus import with_file_corpus
from gradewire_cli.scoring.metrics import written_metrics

# FILE, what it is scored by, and where.
scoring_options = option_group(input_options, metric_options, judge_options, cascade_options, connection_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePlan:
    """What is asked of every row; nothing is left to be resolved.

    Attributes:
        chosen: The metrics, with all defaults filled in, and the reference set.
        synthetic: Synthetic answers of a smile that does not say its own.
        retries: How often rows are sent again when the server says that this may help.
        pictures: Folder that rows name their pictures from, where a metric shows them; None: none does.
        judge_elsewhere: Whether a judge that is asked runs behind a server of its own, which may be paid.
    """

    chosen: MetricChoice
    synthetic: Synthetic = "none"
    retries: int = 0
    judge_elsewhere: bool = False
    pictures: Path | None = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of `Client.score`."""
        return {"metrics": self.chosen.named, "reference_set": self.chosen.reference_set or None}


async def resolve_plan(
    client: AsyncClient, options: MetricOptions, source: InputFile, *, has_synthetic: bool, quiet: bool
) -> ScorePlan:
    """Resolves `all`, prompt files, defaults and corpora; prints the remarks on the judges that are asked.

    Where no option says otherwise, smile takes the synthetic answers that the rows carry. Where a metric takes the
    references of the file as its corpus, the rows are read once more.

    Raises:
        InputError: A prompt file, or a corpus, fits none of the metrics or not this file.
        GradewireError: The server is not there, or a metric is not to be understood.
    """
    items = None if source.is_stdin else lambda: _items(source)
    written = await written_metrics(client, options, items)
    metrics = with_cascade(with_labels(written, options.prompts), options)
    synthetic = options.synthetic or ("prepared" if options.reference_set else "inline" if has_synthetic else "none")
    defaults = MetricDefaults(options.preset, synthetic, options.model, options.reference_set, options.judge)
    chosen = choose_metrics(metrics, defaults)
    await _check_models(client, chosen.metrics)
    # Nobody should pay for a worse answer, or trust a judge that is for tests, without having been told.
    elsewhere = False
    if asked := [metric for metric in chosen.metrics if metric.asks_judge()]:
        listed = await client.models()
        elsewhere = any(runs_elsewhere(listed, metric) for metric in asked)
        for line in dict.fromkeys(_remarks(asked, listed)):
            click.echo(line, err=True)
    return ScorePlan(
        chosen=await with_file_corpus(client, source, chosen, quiet=quiet),
        synthetic=synthetic,
        retries=options.retries,
        judge_elsewhere=elsewhere,
        pictures=source.folder if chosen.shows_images else None,
    )


def _items(source: InputFile) -> Iterator[Mapping[str, Any]]:
    return (row.item for row in source.open().rows if row.item is not None)


def with_labels(written: Sequence[Metric], prompts: Sequence[GivenPrompt]) -> dict[str, Metric]:
    """The metrics with their prompt files, by their labels, which go by what was written and not by what is filled in.

    Raises:
        InputError: A prompt file is for none of the metrics, or two are for the same.
    """
    labels = choose_metrics(written, MetricDefaults()).labels
    return dict(zip(labels, with_prompts(written, prompts), strict=True))


def with_cascade(metrics: Mapping[str, Metric], options: MetricOptions) -> dict[str, Metric]:
    """The metrics, with --risk or --judge-budget for an auto that says neither itself.

    Raises:
        InputError: There is no such metric.
    """
    values: dict[str, Any] = {"risk": options.risk, "judge_budget": options.judge_budget}
    told = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]
    if not told:
        return dict(metrics)
    open_ones = {
        label: replace(metric, **values)
        for label, metric in metrics.items()
        if isinstance(metric, Auto) and metric.risk is None and metric.judge_budget is None
    }
    if not open_ones:
        raise InputError(f"{told[0]} is for an auto that says neither risk nor judge_budget: name it in --metrics")
    return {**metrics, **open_ones}


async def _check_models(client: AsyncClient, metrics: Sequence[Metric]) -> None:
    """Refuses models that the server does not know, before their rows would all fail."""
    named = {
        (_kind_of_model(metric), str(model).partition("@")[0])
        for metric in metrics
        if (model := getattr(metric, "model", None))
    }
    named |= {("grader", grader.partition("@")[0]) for metric in metrics if (grader := getattr(metric, "grader", None))}
    named |= {("judge", name) for metric in metrics if metric.asks_judge() and (name := judge_name(metric))}
    if not named:
        return
    listed = (await client.models()).models
    for kind, name in sorted(named):
        known = [model.name for model in listed if model.kind == kind]
        # A server that lists none does not say what it has.
        if known and name not in known:
            raise InputError(
                f"{name}: the server knows no such {kind}, it knows {', '.join(known)} (gradewire models list)"
            )


def _kind_of_model(metric: Metric) -> str:
    if metric.needs_judge:
        return "judge"
    return "grader" if metric.needs_grader else "encoder"


def _remarks(asked: Sequence[Metric], listed: ModelList) -> list[str]:
    advice = {metric.name: metric.advice for metric in listed.metrics if metric.advice}
    lines = [f"{metric.name}: {advice[metric.name]}" for metric in asked if metric.name in advice]
    judges = {judge_name(metric) for metric in asked}
    return [*lines, *judge_remarks(listed, judges)]


def judge_name(metric: Metric) -> str:
    """The judge that a metric names, without its digest; "" for the server's default."""
    return str(getattr(metric, metric.judge_parameter or "model", None) or "").partition("@")[0]


def runs_elsewhere(listed: ModelList, metric: Metric) -> bool:
    """Whether the judge of a metric runs behind a server of its own."""
    name = judge_name(metric)
    return any(
        model.numeric_class.startswith("remote") and (model.name == name or (model.is_default and not name))
        for model in listed.models
        if model.kind == "judge"
    )


def judge_remarks(listed: ModelList, judges: Collection[str]) -> list[str]:
    """Remarks of the server on these judges; "" stands for its default judge."""
    return [
        f"judge {model.name}: {remark}"
        for model in listed.models
        if model.kind == "judge" and (model.name in judges or (model.is_default and "" in judges))
        for remark in model.remarks
    ]
