"""Resolve metrics, judges and corpora from options and the server, once for all rows."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.errors import InvalidRequest
from gradewire.metrics import METRIC_TYPES, Auto, Correctness, Smile, Synthetic
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricChoice, MetricDefaults, choose_metrics, parse_metric_line
from gradewire.options import USUAL_METRICS, usual_metrics, without_metrics
from gradewire_cli.options.connection import connection_options
from gradewire_cli.options.help import stacked
from gradewire_cli.options.judge import judge_options
from gradewire_cli.options.metrics import MetricOptions, cascade_options, metric_options, with_prompts
from gradewire_cli.problems import InputError, tell
from gradewire_cli.rows.input_file import InputFile, input_options
from gradewire_cli.scoring.corpus import over_a_file, with_file_corpus
from gradewire_proto.wire_rules import NO_GRADER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire import AsyncClient, ModelList
    from gradewire.results import ModelInfo

# The name in --metrics for all metrics that the server can compute.
ALL_METRICS = "all"
# Metrics that must read the whole file before scoring cannot be computed on standard input.
_UNREAD_CORPUS = (
    "needs to count the file's references first, but standard input cannot be read twice. Name a file, or use "
    "--reference-set"
)
_UNREAD_VALUES = "needs values in all references, but standard input cannot be checked. Name the metric to use it"
_UNREAD_CHOICES = "needs `choices` in all rows, but standard input cannot be checked. Name the metric to use it"
_FEW_REFERENCES = (
    "some rows have fewer than {least} references, but the metric compares annotators. Name the metric to compute it "
    "for the other rows"
)
_NO_NUMBERS = (
    "some rows have no number in their references, but the metric compares dates, quantities and the like. Name the "
    "metric to compute it for the other rows"
)
_NO_CHOICES = (
    "some rows have no `choices`, but the metric compares options. Name the metric to compute it for rows with options "
    "in their questions"
)
_ALL_ALIKE = "all rows have the same references, so all n-grams weigh the same"
_UNANSWERABLE = "some questions have no answer. Name the metric to compute it for the other rows"

scoring_options = stacked(input_options, metric_options, judge_options, cascade_options, connection_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePlan:
    """The metrics and settings for every row, with all options resolved.

    Attributes:
        judge_elsewhere: True if a judge runs on a separate server, which may charge for calls.
        pictures: The folder of the rows' pictures, or None if no metric shows pictures.
    """

    chosen: MetricChoice
    synthetic: Synthetic = "none"
    retries: int = 0
    judge_elsewhere: bool = False
    pictures: Path | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `Client.score`."""
        return {"metrics": self.chosen.named, "reference_set": self.chosen.reference_set or None}


async def resolve_plan(
    client: AsyncClient, options: MetricOptions, source: InputFile, *, has_synthetic: bool, quiet: bool
) -> ScorePlan:
    """Resolve `all`, prompt files, defaults and corpora, and print notes on the judges.

    By default, smile uses the rows' synthetic answers. Rows are read again if a metric counts the file's references.

    Raises:
        InputError: A prompt file or corpus fits no metric, or the corpus does not fit this file.
        GradewireError: The server is down, or a metric is invalid.
    """
    items = None if source.is_stdin else lambda: _items(source)
    written = await written_metrics(client, options, items)
    metrics = labelled_metrics(written, options)
    synthetic = options.synthetic or ("prepared" if options.reference_set else "inline" if has_synthetic else "none")
    defaults = MetricDefaults(options.preset, synthetic, options.model, options.reference_set, options.judge)
    chosen = choose_metrics(metrics, defaults)
    await _check_models(client, chosen.metrics)
    # Users must see notes on judges that cost more, are less accurate, or exist only for tests.
    elsewhere = False
    if asked := [metric for metric in chosen.metrics if metric.asks_judge()]:
        listed = await client.models()
        elsewhere = any(runs_elsewhere(listed, metric) for metric in asked)
        tell(dict.fromkeys(_advice_and_notes(asked, listed)))
    return ScorePlan(
        chosen=await with_file_corpus(client, source, chosen, quiet=quiet),
        synthetic=synthetic,
        retries=options.retries,
        judge_elsewhere=elsewhere,
        pictures=source.folder if chosen.shows_images else None,
    )


def _items(source: InputFile) -> Iterator[Mapping[str, Any]]:
    return (row.item for row in source.open().rows if row.item is not None)


def labelled_metrics(written: Sequence[Metric], options: MetricOptions) -> dict[str, Metric]:
    """Return the metrics by label. A label contains only what the user wrote, without defaults.

    Metrics get their prompt files. If auto names neither risk nor judge_budget, it gets the values of --risk and
    --judge-budget.
    """
    labels = choose_metrics(written, MetricDefaults()).labels
    metrics = dict(zip(labels, with_prompts(written, options.prompts), strict=True))
    values: dict[str, Any] = {"risk": options.risk, "judge_budget": options.judge_budget}
    flags = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]
    if not flags:
        return metrics
    undecided = {
        label: replace(metric, **values)
        for label, metric in metrics.items()
        if isinstance(metric, Auto) and metric.risk is None and metric.judge_budget is None
    }
    if not undecided:
        raise InputError(f"{flags[0]} needs an auto metric in --metrics that sets neither risk nor judge_budget")
    return {**metrics, **undecided}


async def _check_models(client: AsyncClient, metrics: Sequence[Metric]) -> None:
    named = {
        (_kind_of_model(metric), str(model).partition("@")[0])
        for metric in metrics
        if (model := getattr(metric, "model", None))
    }
    named |= {("grader", name) for metric in metrics if (name := grader_of(metric).partition("@")[0])}
    named |= {("judge", name) for metric in metrics if metric.asks_judge() and (name := judge_name(metric))}
    if not named:
        return
    listed = (await client.models()).models
    for kind, name in sorted(named):
        known = [model.name for model in listed if model.kind == kind]
        # An empty list means that the server does not report its models.
        if known and name not in known:
            raise InputError(f"unknown {kind} {name}. Choose one of {', '.join(known)} (see gradewire models list)")


def _kind_of_model(metric: Metric) -> str:
    if metric.needs_judge:
        return "judge"
    return "grader" if metric.needs_grader else "encoder"


def _advice_and_notes(requested: Sequence[Metric], listed: ModelList) -> list[str]:
    advice = {metric.name: metric.advice for metric in listed.metrics if metric.advice}
    lines = [f"{metric.name}: {advice[metric.name]}" for metric in requested if metric.name in advice]
    judges = {judge_name(metric) for metric in requested}
    return [*lines, *judge_notes(listed, judges)]


def grader_of(metric: Metric) -> str:
    """Return the grader that a metric names in addition to its encoder, or "" if it names none."""
    grader = str(getattr(metric, "grader", None) or "")
    return "" if grader == NO_GRADER else grader


def judge_name(metric: Metric) -> str:
    """Return the judge that a metric names, without the judge's digest, or "" for the server's default judge."""
    return str(getattr(metric, metric.judge_parameter or "model", None) or "").partition("@")[0]


def runs_elsewhere(listed: ModelList, metric: Metric) -> bool:
    """Return True if a metric's judge runs on a separate server."""
    return any(model.numeric_class.startswith("remote") for model in _judges(listed, {judge_name(metric)}))


def judge_notes(listed: ModelList, judges: Collection[str]) -> list[str]:
    """Return the server's notes on these judges. The name "" means the default judge."""
    return [f"judge {model.name}: {note}" for model in _judges(listed, judges) for note in model.remarks]


def _judges(listed: ModelList, names: Collection[str]) -> Iterator[ModelInfo]:
    for model in listed.models:
        if model.kind == "judge" and (model.name in names or (model.is_default and "" in names)):
            yield model


def metrics_not_for(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the metrics that cannot score some or all of these items, with the reasons.

    If no item has references, return {}, because every row then fails with its own message.
    """
    has_question, fewest, has_digits, has_choices = False, sys.maxsize, True, True
    first_list, lists_differ = "", False
    for item in items:
        references = item.get("references") or ()
        if references or item.get("answerable") is False:
            has_question = has_question or bool(str(item.get("question") or "").strip())
            fewest = min(fewest, len(references))
            digits = (sign.isdigit() for text in references for sign in str(text))
            has_digits = has_digits and (not references or any(digits))
            has_choices = has_choices and (not references or bool(item.get("choices")))
            this_list = json.dumps(sorted(set(map(str, references)))) if references else first_list
            first_list = first_list or this_list
            lists_differ = lists_differ or this_list != first_list
    if not first_list:
        return {}
    rules: tuple[tuple[Callable[[type[Metric]], bool], str], ...] = (
        (lambda kind: kind.needs_corpus and not fewest, _UNANSWERABLE),
        (lambda kind: kind.needs_corpus and not lists_differ, _ALL_ALIKE),
        (lambda kind: kind.needs_question and not has_question, "no row has a question"),
        (lambda kind: max(fewest, 1) < kind.least_references, _FEW_REFERENCES),
        (lambda kind: kind.needs_values and not has_digits, _NO_NUMBERS),
        (lambda kind: kind.needs_choices and not has_choices, _NO_CHOICES),
    )
    missing = {}
    for name, kind in METRIC_TYPES.items():
        if not kind.asks_judge():  # `all` includes no judges
            reason = next((reason for lacks, reason in rules if lacks(kind)), None)
            if reason is not None:
                missing[name] = reason.format(least=kind.least_references)
    return missing


def without_all(metrics: str) -> str:
    """Return the names in --metrics without `all`."""
    return ",".join(name for name in metrics.split(",") if name.strip() != ALL_METRICS)


def single_metric(line: str, metrics: str, option: str) -> tuple[str, tuple[str, ...]]:
    """Return the label of an option's metric, and the labels in --metrics.

    Raises:
        click.UsageError: A metric is invalid, or the option names several metrics.
    """
    others = without_all(metrics)
    try:
        named = choose_metrics(line, MetricDefaults()).labels
        asked = choose_metrics(others, MetricDefaults()).labels if others else ()
    except InvalidRequest as error:
        raise click.UsageError(f"{option} {line}: {error}") from error
    if len(named) != 1:
        raise click.UsageError(f"{option} {line}: name one metric only")
    return named[0], asked


async def written_metrics(
    client: AsyncClient,
    options: MetricOptions,
    items: Callable[[], Iterable[Mapping[str, Any]]] | None,
    *,
    quiet: bool = False,
) -> list[Metric]:
    """Parse --metrics and replace `all` with the server's metrics.

    Unless `quiet`, print on stderr which metrics are left out and why. Keep smile even without its encoder, because the
    rows' results report the problem.
    """
    if isinstance(options.metrics, Metric):
        return [options.metrics]
    texts = options.metrics.split(",")
    written = [None if text.strip() == ALL_METRICS else parse_metric_line(text) for text in texts]
    beside = [metric for metric in written if metric is not None]
    if None not in written:
        return await _usual_metrics(client, options, beside, quiet=quiet) if options.usual else beside
    place = written.index(None)
    left_out = await _unavailable_metrics(client, options.model)
    lacking: dict[str, str] = _unread() if items is None else metrics_not_for(items())
    if options.reference_set or any(getattr(metric, "reference_set", None) for metric in beside):
        # The named set is the corpus, so the file's references do not matter.
        lacking = {name: reason for name, reason in lacking.items() if not METRIC_TYPES[name].needs_corpus}
    for name, reason in lacking.items():
        left_out.setdefault(name, reason)
    asked = [_with_defaults(metric) for metric in beside]
    # `all` includes no judge, because a judge needs seconds per row or costs money.
    every = [kind() for name, kind in METRIC_TYPES.items() if not kind.asks_judge() and name not in left_out]
    if not quiet:
        named = {metric.name for metric in beside}
        _report_left_out({name: reason for name, reason in left_out.items() if name not in named})
    return [*beside[:place], *(metric for metric in every if _with_defaults(metric) not in asked), *beside[place:]]


async def _usual_metrics(
    client: AsyncClient, options: MetricOptions, written: list[Metric], *, quiet: bool
) -> list[Metric]:
    metrics, note = usual_metrics(await client.models(), options.model)
    if note and not quiet:
        click.echo(note, err=True)
    if metrics == USUAL_METRICS:
        return written
    return [metric for metric in written if metric != Correctness()] or [Smile()]


async def _unavailable_metrics(client: AsyncClient, model: str | None) -> dict[str, str]:
    left_out = {name: "not available on the server" for name, kind in METRIC_TYPES.items() if not kind.asks_judge()}
    listed = await client.models()
    beyond = without_metrics(listed, model)
    for metric in listed.metrics:
        if metric.name in left_out and metric.name in beyond:
            left_out[metric.name] = beyond[metric.name]
        elif metric.available:
            left_out.pop(metric.name, None)
        elif metric.name in left_out:
            left_out[metric.name] = metric.missing or "the server cannot compute it"
    left_out.pop(Smile.name, None)
    return left_out


def _unread() -> dict[str, str]:
    corpus = {name: _UNREAD_CORPUS for name, kind in METRIC_TYPES.items() if kind.needs_corpus}
    values = {name: _UNREAD_VALUES for name, kind in METRIC_TYPES.items() if kind.needs_values}
    return corpus | values | {name: _UNREAD_CHOICES for name, kind in METRIC_TYPES.items() if kind.needs_choices}


def _report_left_out(left_out: Mapping[str, str]) -> None:
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        click.echo(f"left out of {ALL_METRICS}: {names} ({reason})", err=True)


def _with_defaults(metric: Metric) -> Metric:
    """Return the metric with defaults and without its version, to compare it with a bare metric name."""
    metric = over_a_file(replace(metric, version=None))
    return replace(metric, preset=metric.preset or "v1") if isinstance(metric, Smile) else metric
