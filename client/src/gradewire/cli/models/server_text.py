"""What a server says that it can do, as text."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from gradewire.cli.input.record import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.model_list import Limits, MetricInfo, ModelInfo, ModelList


def server_text(listed: ModelList, place: str) -> str:
    """Encoders and judges, metrics, and limits of a server; `place` is its address. What it says is made printable."""
    return "".join(f"{printable(line)}\n" for line in _lines(listed, place))


def _lines(listed: ModelList, place: str) -> Iterator[str]:
    yield f"{place}: gradewire {listed.server_version}"
    for model in listed.models:
        yield from _model(model)
    yield "metrics:"
    for metric in listed.metrics:
        yield from _metric(metric)
    if listed.comparisons:
        yield "comparisons of two answers:"
    for comparison in listed.comparisons:
        yield from _comparison(comparison)
    yield "limits of a request:"
    yield from _limits(listed.limits)


def _model(model: ModelInfo) -> Iterator[str]:
    default = " (default)" if model.is_default else ""
    facts = [
        model.licence,
        f"{model.dims} dims" if model.dims else "",
        f"at most {model.max_tokens} tokens" if model.max_tokens else "",
        model.numeric_class,
        _sight(model),
    ]
    yield f"{model.kind} {model.name}{default}: {model.state}{f', digest {model.digest}' if model.digest else ''}"
    if known := ", ".join(filter(None, facts)):
        yield f"  {known}"
    for line in (model.message, model.how_to_get and f"get it on the server with: {model.how_to_get}", *model.remarks):
        if line:
            yield f"  {line}"
    for metric, reason in sorted(model.without_metrics.items()):
        yield f"  cannot compute {metric}: {reason}"


def _sight(model: ModelInfo) -> str:
    if model.sees_images:
        return "sees pictures"
    # Of a judge that nobody has asked yet the server may not know.
    return "sees no pictures" if model.kind == "judge" and model.state == "LOADED" else ""


def _metric(metric: MetricInfo) -> Iterator[str]:
    asks = " (asks a judge)" if metric.needs_judge else ""
    yield f"  {metric.name}/{metric.version}: {metric.minimum:g} to {metric.maximum:g}{asks}"
    yield from _missing(metric)


def _comparison(comparison: MetricInfo) -> Iterator[str]:
    asks = " (asks a judge)" if comparison.needs_judge else ""
    yield f"  {comparison.name}/{comparison.version}{asks}"
    yield from _missing(comparison)


def _missing(metric: MetricInfo) -> Iterator[str]:
    if not metric.available:
        yield f"    cannot be computed there: {metric.missing or 'the server does not say why'}"


def _limits(limits: Limits) -> Iterator[str]:
    for field in fields(limits):
        # 0 is that the server does not say.
        if value := getattr(limits, field.name):
            yield f"  {field.name}: {value}"
