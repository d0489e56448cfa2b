"""Agreement as JSON: everything that was computed; what is not defined is null."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from gradewire.agreement.estimates import LEAST_QUESTIONS
from gradewire.cli.agree.printed_tables import abstention_of
from gradewire.cli.output.interval_notes import draws_by_statistic
from gradewire.cli.run.labelled_run import described_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.agreement import MetricAgreement
    from gradewire.cli.agree.result import AgreementResult


def agreement_document(found: AgreementResult) -> dict[str, Any]:
    """All figures of `agree`."""
    judged = described_run(found.run, found.labelled)
    draws = {"draws": draws_by_statistic(found.report), "least_questions": LEAST_QUESTIONS}
    return {
        **judged,
        "bootstrap": judged["bootstrap"] | draws,
        "annotators": found.annotators,
        "metrics": {metric.metric: _metric(metric, found) for metric in found.report.metrics},
        "comparisons": found.report.comparisons,
    }


def _metric(metric: MetricAgreement, found: AgreementResult) -> dict[str, Any]:
    tally = found.labelled.tallies[metric.metric]
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
