"""Reads --metrics: names and lines, and in the place of `all` the server's metrics that the file has the fields for."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import click

from gradewire import AsyncClient
from gradewire.metrics import METRIC_TYPES, Correctness, Smile
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import parse_metric_line
from gradewire.options import USUAL_METRICS, usual_metrics, without_metrics
from gradewire_cli.options.metrics import MetricOptions

_ALL_ALIKE = "all rows have the same references, over which no n-gram is rarer than another"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the items with references have.

    Attributes:
        question: Whether an item has a question.
        references: The fewest of any item.
        reference_lists: How many lists of them differ, up to two.
        digits: Whether every item has a digit among its references.
    """

    question: bool
    references: int
    reference_lists: int
    digits: bool


def metrics_not_for(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that, with their defaults, are not for these items, each with what is missing.

    What needs a question is named where no item has one: beside rows that have one, a row without is at fault and says
    so itself. What compares annotators is named where one item has too few references, for that is no fault; so is what
    compares values where one item has no digit in its references. Where no item has references, nothing is named: every
    row says so.
    """
    seen = _look_through(items)
    if not seen.reference_lists:
        return {}
    missing = {}
    for name, kind in METRIC_TYPES.items():
        if kind.asks_judge():
            continue  # no part of all
        if kind.needs_corpus and seen.reference_lists == 1:
            missing[name] = _ALL_ALIKE
        elif kind.needs_question and not seen.question:
            missing[name] = "no row has a question"
        elif seen.references < kind.least_references:
            missing[name] = (
                f"some rows have fewer than {kind.least_references} references, and it compares annotators: name it to "
                "have it for the others"
            )
        elif kind.needs_values and not seen.digits:
            missing[name] = (
                "some rows have no number in their references, and it compares dates, quantities and the like: name it "
                "to have it for the others"
            )
    return missing


def _look_through(items: Iterable[Mapping[str, Any]]) -> _Seen:
    question, references, digits = False, sys.maxsize, True
    lists: set[str] = set()
    for item in items:
        given = item.get("references")
        if not given:
            continue
        question = question or bool(str(item.get("question") or "").strip())
        references = min(references, len(given))
        digits = digits and any(sign.isdigit() for text in given for sign in str(text))
        if len(lists) < 2:
            lists.add(json.dumps(sorted(set(map(str, given)))))
    return _Seen(question, references, len(lists), digits)


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
        _report_left_out({name: reason for name, reason in left_out.items() if name not in named})
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


def _report_left_out(left_out: Mapping[str, str]) -> None:
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
