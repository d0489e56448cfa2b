"""Store fits with built models, and list or remove stored fits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from gradewire.metrics.base import Metric, wire_parameters
from gradewire.metrics.choice import parse_metric_line
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.problems import InputError, one_line_errors
from gradewire_cli.results.table_formats import write_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire_cli.calibrate.rows import LabelledScores

# Metric parameters that do not restrict the validity of a calibration.
_NOT_PARAMETERS = frozenset({"model", "threshold", "sentence_weight"})


def today() -> str:
    """Return today's date (UTC) in ISO format."""
    return datetime.now(UTC).date().isoformat()


def built_model(models_dir: Path | None, named: str) -> tuple[str, str, Sequence[str]]:
    """Return a built model's name, complete digest and fits. `named` is NAME or NAME@DIGEST."""
    name, _, digest = named.partition("@")
    if not name:
        return "", "", ()
    with one_line_errors():
        found, fitted = server_module("gradewire_cli.server_fits").fitted_for(models_dir, name)
    if not found.startswith(f"{name}@{digest}"):
        raise InputError(
            f"the scores come from {name}@{digest}, but this machine has {found[: len(name) + 13]}. "
            "Score the rows again"
        )
    return name, found.partition("@")[2], fitted


def line_parameters(metric: Metric) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the metric parameters that a calibration is valid for."""
    values = {name: getattr(metric, name) for name in wire_parameters(metric.name) if name not in _NOT_PARAMETERS}
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in values.items()
        if value is not None
    )


def store_fit(  # noqa: PLR0913, PLR0917 - the options, the rows, and what the file and the model get
    options: Mapping[str, Any],
    source: str,
    rows: LabelledScores,
    fitted: Mapping[str, Any],
    form: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a fit to the --json file, and store it with the model unless --dry-run is given.

    `more` contains values that only the file has, such as the learning curve.
    """
    scored = parse_metric_line(rows.line)
    name, _, digest = str(getattr(scored, "model", "")).partition("@")
    half = f"half {options['half']} of the questions of " if options["half"] else ""
    values = {
        "metric": scored.name,
        "metric_version": scored.version or 1,
        "rows": len(rows.scores),
        "rows_sha256": rows.sha256,
        "date": today(),
        **fitted,
    }
    values["fitted_on"] = f"{values['rows']} rows, {half}{source}"
    if options["json_path"] is not None:
        document = form or {**values, "parameters": dict(fitted["parameters"])}
        write_json(options["json_path"], {**document, **(more or {})})
    if options["dry_run"]:
        click.echo(f"nothing was stored for {name}@{digest}, because --dry-run was given")
        return
    stored = values if form is None else {**values, "fit": json.dumps(form)}
    with one_line_errors():
        where = server_module("gradewire_cli.server_fits").store_fitted(options["models_dir"], name, digest, stored)
    click.echo(f"stored with {name}: {where}")
    click.echo("running servers use the fit after they reload the model. Results then name the fit", err=True)


def show_or_undo(options: Mapping[str, Any], metric: str) -> None:
    """Print the fits stored with a model. With --undo, first remove users' fits for `metric` ("" means all metrics).

    A fit that a removed fit had replaced applies again. With --undo and --dry-run, only show what would change.
    """
    fits, model = server_module("gradewire_cli.server_fits"), (options["model"] or "").partition("@")[0]
    with one_line_errors():
        if options["undo"]:
            dry_run = options["dry_run"]
            gone = fits.forget_fitted(options["models_dir"], model, metric, dry_run=dry_run)
            form = "would be {} without --dry-run" if dry_run else "{}"
            lines = [f"{form.format('removed')}: {line}" for line in gone.removed]
            lines += [f"{form.format('restored')}: {line}" for line in gone.restored]
            click.echo("\n".join(lines) or "there was no fit of yours to remove")
        name, lines = fits.fitted_for(options["models_dir"], model)
    click.echo(name)
    for line in lines or ["no fit is stored"]:
        click.echo(f"  {line}")
