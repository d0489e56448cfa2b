"""Makes the HTML page of a load run."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from gradewire.cli.bench.load.tables import step_tables, verdict
from gradewire.cli.problems import InputError, named_errors
from gradewire.report.load.input import LoadInput, LoadStep
from gradewire.report.load.page import write_load_page
from gradewire.report.rendering import MissingJinjaError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gradewire.cli.bench.load.options import LoadOptions
    from gradewire.load_testing.run import LoadResult
    from gradewire.load_testing.steps import Step


def write_page(path: Path, result: LoadResult, given: LoadOptions, notes: Sequence[str]) -> int:
    """Writes the HTML page of a load run, and returns its size in bytes.

    Raises:
        InputError: It cannot be written, or what makes it is not installed.
    """
    page = LoadInput(
        source=given.setup.endpoint.address,
        created=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        notes=notes,
        checks=[(str(check), check.holds) for check in result.checks],
        slo_s=given.plan.objective.p99_s,
        steps=[_step(step, result) for step in result.steps],
        tables=list(step_tables(result)),
    )
    try:
        with named_errors(path):
            return write_load_page(path, page)
    except MissingJinjaError as error:
        raise InputError(str(error)) from error


def _step(step: Step, result: LoadResult) -> LoadStep:
    counts = step.counts
    return LoadStep(
        name=f"{step.rate_per_s:.4g} calls/s, {verdict(step, result)}",
        rate_per_s=step.rate_per_s,
        is_knee=step is result.knee_step,
        over_knee=step.over_knee,
        curve=counts.latency.curve(),
        p50_s=counts.latency.percentile_s(50),
        p99_s=counts.latency.percentile_s(99),
        scored_per_s=step.scored_per_s,
        refused_share=step.share(counts.refused),
        lag_p99_s=step.lag_s,
    )
