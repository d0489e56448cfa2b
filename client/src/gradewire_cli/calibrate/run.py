"""One run of `gradewire calibrate`: scores, fits, prints and stores."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import click

from gradewire.metrics import Auto
from gradewire.metrics.base import Metric, wire_parameters
from gradewire.metrics.choice import parse_metric_line
from gradewire.transport import Transport
from gradewire_cli.calibrate.cascade import (
    cascade_metrics,
    cascade_tables,
    cascade_values,
    cascade_warnings,
    fitted_cascade,
    judge_line,
    scored_cascade,
)
from gradewire_cli.calibrate.fits import (
    Split,
    fit_lines,
    fit_table,
    fitted_probability,
    fitted_threshold,
    fitted_weight,
    gain_lines,
    probability_tables,
    warning_lines,
)
from gradewire_cli.calibrate.rows import LabelledScores, labelled_scores
from gradewire_cli.lazy_commands import embedded_module
from gradewire_cli.options.metrics import MetricOptions
from gradewire_cli.problems import InputError, one_line_errors
from gradewire_cli.results.table_forms import write_json
from gradewire_cli.results.tables import print_tables
from gradewire_cli.scoring.labelled_rows import LabelledRows
from gradewire_cli.scoring.labelled_run import LabelledRun
from gradewire_stats.calibration.labelled_rows import question_key
from gradewire_stats.calibration.stored_form import FittedFeature

THRESHOLDS = ("smile", "sbert", "sfve", "bertscore")
CORRECTNESS = "correctness"
# What a calibration says beside the parameters that it holds for, or that is no part of a score.
_NOT_PARAMETERS = frozenset({"model", "threshold", "sentence_weight"})


@dataclass(frozen=True, slots=True)
class Calibration:
    """One run: its rows and where they are scored, the metric that is calibrated, and the options of the command."""

    run: LabelledRun
    metric: Metric
    options: Mapping[str, Any]

    def fit(self, transport: Transport | None) -> None:
        """Scores, fits, prints and stores; `transport`, from tests, takes the place of the connection.

        Raises:
            click.ClickException: Rows, scores, server or model are not as they have to be; nothing was stored.
        """
        if isinstance(self.metric, Auto):
            self._fit_cascade(transport, self.metric)
            return
        labelled, before = self._score(transport, self.metric)
        if self.metric.name == CORRECTNESS:
            self._fit_probability(labelled, before)
            return
        after, weight = before, None
        if self.options["fit"] == "both":
            weight = fitted_weight(before.fitted, self.options["weight_objective"])
            values: dict[str, Any] = {"sentence_weight": weight}
            labelled, after = self._score(transport, replace(self.metric, **values))
        fit = fitted_threshold(
            before, after, self.options["objective"], resamples=self.run.resamples, seed=self.run.seed
        )
        print_tables([fit_table(fit)])
        told = f"threshold {fit.threshold:g}" + ("" if weight is None else f", sentence_weight {weight:g}")
        for line in fit_lines(told, before, after):
            click.echo(line)
        for line in (*warning_lines(after, labelled), *gain_lines(fit)):
            click.echo(line, err=True)
        scored = parse_metric_line(after.fitted.line)
        values = {
            "parameters": line_parameters(scored),
            "threshold": fit.threshold,
            "sentence_weight": getattr(scored, "sentence_weight", None),
        }
        self._store(after.fitted, {**values, "figures": tuple(fit.figures.items())})

    def _fit_probability(self, labelled: LabelledRows, scored: Split) -> None:
        rows = scored.fitted
        metric = parse_metric_line(rows.line)
        name, digest = self._built(str(getattr(metric, "model", "")))
        grader, grader_digest = self._built(str(getattr(metric, "grader", None) or ""))
        provenance = {
            "metric_version": metric.version or 1,
            "model": name,
            "model_digest": digest,
            **({"grader": grader, "grader_digest": grader_digest} if grader else {}),
            "rows": {
                "sha256": rows.sha256,
                "count": len(rows.scores),
                "right": int(rows.right.sum()),
                "questions": len({question_key(question) or row for row, question in enumerate(rows.questions)}),
                "half": self.options["half"] or "both",
                "sources": dict(sorted(Counter(rows.sources).items())),
            },
            "date": _today(),
        }
        known = embedded_module("fits")
        features = [FittedFeature(*each) for each in known.correctness_features(grader)]
        shape = known.correctness_shape()
        fit = fitted_probability(scored, features, shape, provenance, resamples=self.run.resamples, seed=self.run.seed)
        print_tables(probability_tables(fit))
        for line in fit_lines("a probability", scored, scored):
            click.echo(line)
        for line in (*warning_lines(scored, labelled), *(f"warning: {each}" for each in fit.result.warnings)):
            click.echo(line, err=True)
        if self.options["json_path"] is not None:
            write_json(self.options["json_path"], fit.result.fit)
        figures = {f"{each}_held_out": value for each, value in fit.result.figures.items() if math.isfinite(value)}
        values = {"fit": json.dumps(fit.result.fit), "figures": tuple(figures.items())}
        self._store(rows, values | ({"parameters": (("grader", grader),)} if grader else {}))

    def _built(self, named: str) -> tuple[str, str]:
        """Name and whole digest of a built model, of which a line has twelve digits; two empty texts for none."""
        name, _, digest = named.partition("@")
        if not name:
            return "", ""
        with one_line_errors():
            found, _ = embedded_module("fits").fitted_for(self.options["models_dir"], name)
        if not found.startswith(f"{name}@{digest}"):
            raise InputError(
                f"the features are of {name}@{digest}, {found[: len(name) + 13]} is built here: score again"
            )
        return name, found.partition("@")[2]

    def _fit_cascade(self, transport: Transport | None, metric: Auto) -> None:
        metrics = MetricOptions(metrics=cascade_metrics(metric), model=metric.model, judge=metric.judge_model)
        labelled = replace(self.run, metrics=metrics).collect(transport, keeps_rows=True)
        scored = scored_cascade(labelled, metric)
        name, _, digest = scored.encoder.partition("@")
        with one_line_errors():
            found, told = embedded_module("fits").fitted_for(self.options["models_dir"], name)
        if not found.startswith(scored.encoder):
            raise InputError(f"the scores are of {name}@{digest}, {found[: len(name) + 13]} is built here: score again")
        provenance = {
            **scored.provenance,
            "model": name,
            "model_digest": found.partition("@")[2],
            "rows": {
                "sha256": scored.cheap.sha256,
                "count": scored.count_of(self.options["half"]),
                "half": self.options["half"] or "both",
            },
            "date": _today(),
        }
        fit, held = fitted_cascade(
            scored, provenance, half=self.options["half"], delta=self.options["delta"], resamples=self.run.resamples,
            seed=self.run.seed,
        )  # fmt: skip
        print_tables(cascade_tables(fit, held))
        click.echo(judge_line(fit, metric.judge or "lave"))
        for line in (*cascade_warnings(scored, told), *(f"warning: {each}" for each in labelled.left_out())):
            click.echo(line, err=True)
        if self.options["json_path"] is not None:
            write_json(self.options["json_path"], fit.form)
        values = {
            "metric": metric.name,
            "metric_version": scored.provenance["metric_version"],
            "parameters": scored.parameters,
            "fit": json.dumps(fit.form),
            "rows": scored.count_of(self.options["half"]),
            "figures": cascade_values(fit, held),
        }
        self._store(scored.cheap, values)

    def _score(self, transport: Transport | None, metric: Metric) -> tuple[LabelledRows, Split]:
        metrics = replace(self.run.metrics, metrics=metric)
        labelled = replace(self.run, metrics=metrics).collect(transport, keeps_rows=True)
        several = len(self.run.source.paths) > 1
        fitted, held_out = labelled_scores(labelled, metric, half=self.options["half"], several_files=several)
        return labelled, Split(fitted=fitted, held_out=held_out)

    def _store(self, rows: LabelledScores, fitted: Mapping[str, Any]) -> None:
        scored = parse_metric_line(rows.line)
        name, _, digest = str(getattr(scored, "model", "")).partition("@")
        half = f"half {self.options['half']} of the questions of " if self.options["half"] else ""
        values = {
            "metric": scored.name,
            "metric_version": scored.version or 1,
            "rows": len(rows.scores),
            "rows_sha256": rows.sha256,
            "date": _today(),
            **fitted,
        }
        values["fitted_on"] = f"{values['rows']} rows, {half}{self.run.source.short_name}"
        if self.options["json_path"] is not None and "fit" not in fitted:
            write_json(self.options["json_path"], {**values, "parameters": dict(fitted["parameters"])})
        if self.options["dry_run"]:
            click.echo(f"nothing was stored (--dry-run); it would be for {name}@{digest}")
            return
        with one_line_errors():
            told = embedded_module("fits").store_fitted(self.options["models_dir"], name, digest, values)
        click.echo(f"stored with {name}: {told}")
        click.echo("servers that run read it when they load the model again; results name it in their line", err=True)


def line_parameters(metric: Metric) -> tuple[tuple[str, str], ...]:
    """What scores of a line must have for its calibration to hold: names and values as the line writes them."""
    named = [name for name in wire_parameters(metric.name) if name not in _NOT_PARAMETERS]
    values = {name: getattr(metric, name) for name in named}
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in values.items()
        if value is not None
    )


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
