"""Reads --metrics: names and lines, and the server's metrics in the place of `all`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import click

from gradewire import AsyncClient
from gradewire.cli.options.metrics import MetricOptions
from gradewire.cli.run.file_gaps import metrics_not_for
from gradewire.metric_types import METRIC_TYPES, Correctness, Smile
from gradewire.metric_types.base import Metric
from gradewire.metric_types.line import parse_metric_line
from gradewire.metric_types.usual import USUAL_METRICS, usual_metrics, without_metrics

# Stands in --metrics for every metric that the server can compute.
ALL_METRICS = "all"
# Why a metric that looks through the file first cannot where that is standard input.
_UNREAD_CORPUS = (
    "it counts the references of the file first, and standard input cannot be read twice: give a file, or "
    "--reference-set"
)
_UNREAD_VALUES = "whether all references have values is not known of standard input: name it to have it"


async def written_metrics(
    client: AsyncClient,
    options: MetricOptions,
    items: Callable[[], Iterable[Mapping[str, Any]]] | None,
    *,
    quiet: bool = False,
) -> list[Metric]:
    """Reads --metrics, and puts the server's metrics in the place of `all`.

    A metric that is written beside `all`, with nothing more to say than its name, is not there twice. Says on standard
    error, unless `quiet`, which metrics of this client are left out, and why: the server cannot compute them, or no
    item has what they need. Smile is there even where its encoder is not: its rows say so.

    Args:
        client: Asked what the server has.
        options: Those of the command.
        items: Gives what is to be scored, as `Client.score` takes it; None where it can be read only once, as standard
            input.
        quiet: Say nothing.

    Raises:
        GradewireError: The server is not there, or a metric is not to be understood.
        InputError: The items cannot be read at all.
    """
    if isinstance(options.metrics, Metric):
        return [options.metrics]
    texts = options.metrics.split(",")
    written = [None if text.strip() == ALL_METRICS else parse_metric_line(text) for text in texts]
    beside = [metric for metric in written if metric is not None]
    if None not in written:
        return await _usual(client, options, beside, quiet=quiet) if options.usual else beside
    place = written.index(None)
    left_out = await _left_out(client, options.model)
    lacking: dict[str, str] = _unread() if items is None else metrics_not_for(items())
    if options.reference_set or any(getattr(metric, "reference_set", None) for metric in beside):
        # That set is counted, not these references.
        lacking = {name: reason for name, reason in lacking.items() if not METRIC_TYPES[name].needs_corpus}
    for name, reason in lacking.items():
        left_out.setdefault(name, reason)
    asked = [_with_defaults(metric) for metric in beside]
    # A judge takes seconds for a row, or money: nobody asks one by accident.
    every = [kind() for name, kind in METRIC_TYPES.items() if not kind.asks_judge() and name not in left_out]
    if not quiet:
        named = {metric.name for metric in beside}
        _tell_left_out({name: reason for name, reason in left_out.items() if name not in named})
    return [*beside[:place], *(metric for metric in every if _with_defaults(metric) not in asked), *beside[place:]]


async def _usual(client: AsyncClient, options: MetricOptions, written: list[Metric], *, quiet: bool) -> list[Metric]:
    """The metrics that nobody named, without `correctness` where the encoder has no fit for it; a remark says so."""
    metrics, remark = usual_metrics(await client.models(), options.model)
    if remark and not quiet:
        click.echo(remark, err=True)
    return [metric for metric in written if metrics == USUAL_METRICS or metric != Correctness()]


async def _left_out(client: AsyncClient, model: str | None) -> dict[str, str]:
    """Metrics without a judge that the server cannot compute, and why."""
    left_out = {name: "the server does not have it" for name, kind in METRIC_TYPES.items() if not kind.asks_judge()}
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
    return corpus | {name: _UNREAD_VALUES for name, kind in METRIC_TYPES.items() if kind.needs_values}


def _tell_left_out(left_out: Mapping[str, str]) -> None:
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        click.echo(f"left out of {ALL_METRICS}: {names} ({reason})", err=True)


def _with_defaults(metric: Metric) -> Metric:
    """The metric without its version and with defaults filled in, so that it compares with a bare name."""
    metric = over_a_file(replace(metric, version=None))
    return replace(metric, preset=metric.preset or "v1") if isinstance(metric, Smile) else metric


def over_a_file(metric: Metric) -> Metric:
    """Return a metric that counts over a corpus, and names none, with the prepared one.

    Its default, the items of one request, would be a batch of rows here, and give a row another score in another file.
    """
    corpus = metric.prepared_parameter if metric.needs_corpus else None
    if corpus is None or getattr(metric, corpus) is not None:
        return metric
    named: dict[str, Any] = {corpus: "prepared"}
    return replace(metric, **named)
