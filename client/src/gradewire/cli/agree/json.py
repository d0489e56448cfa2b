"""Agreement as JSON: everything that was computed; what is not defined is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from gradewire.agreement.estimates import LEAST_QUESTIONS
from gradewire.cli.agree.text import abstention_of
from gradewire.cli.output.draws import draws_by_statistic
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from gradewire.agreement import MetricAgreement
    from gradewire.cli.agree.finding import Finding
    from gradewire.cli.run.judged_rows import JudgedColumns
    from gradewire.cli.run.judging import Judging


def agreement_document(found: Finding) -> dict[str, Any]:
    """All figures of `agree`."""
    judged = what_was_judged(found.judging, found.columns)
    draws = {"draws": draws_by_statistic(found.report), "least_questions": LEAST_QUESTIONS}
    return {
        **judged,
        "bootstrap": judged["bootstrap"] | draws,
        "annotators": found.annotators,
        "metrics": {metric.metric: _metric(metric, found) for metric in found.report.metrics},
        "comparisons": found.report.comparisons,
    }


def what_was_judged(judging: Judging, columns: JudgedColumns) -> dict[str, Any]:
    """File, rows, labels and draws behind any figures."""
    return {
        "file": judging.source.path,
        "where": {column: sorted(values) for column, values in judging.source.options.where.items()},
        "labels": {
            "rule": judging.labels or "own",
            "unlabelled_rows": columns.unlabelled,
            "unreadable": columns.unreadable,
            "rows_without_annotators": columns.alone,
        },
        "flags": {
            "rows": dict(sorted(columns.flags.items())),
            "without": sorted(judging.without_flags),
            "left_out": columns.flagged_out,
        },
        "bootstrap": {
            "resamples": judging.resamples,
            "seed": judging.seed,
            "confidence": 0.95,
            "unit": "question",
        },
    }


def _metric(metric: MetricAgreement, found: Finding) -> dict[str, Any]:
    tally = found.columns.tallies[metric.metric]
    return {
        "line": tally.line,
        "statuses": dict(tally.statuses),
        "headline": metric.headline,
        "abstention": abstention_of(found, metric.metric),
        "cells": [_flat(cell, "estimates") for cell in metric.cells],
    }


def _flat(value: Any, inner: str) -> dict[str, Any]:
    """A dataclass with one of its mappings spread beside the other fields."""
    named = {field.name: getattr(value, field.name) for field in fields(value)}
    spread: Mapping[str, Any] = named.pop(inner)
    return named | dict(spread)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document of mappings, sequences and dataclasses; raises InputError where that cannot be."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a file; a lone surrogate of the input becomes a question mark, for UTF-8 cannot hold it.

    Raises:
        InputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def plain(value: Any) -> Any:
    """The same in what JSON has; NaN and infinities are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
