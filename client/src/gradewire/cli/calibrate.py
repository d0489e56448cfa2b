"""`gradewire calibrate`: fits a metric's threshold to labelled answers and stores it with the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire.cli.agree_tables import print_figures
from gradewire.cli.calibrate_fit import Split, fitted_threshold, fitted_weight
from gradewire.cli.calibrate_options import calibrate_options, judging_of
from gradewire.cli.calibrate_rows import labelled_scores
from gradewire.cli.calibrate_text import fit_lines, fit_table, warning_lines
from gradewire.cli.files import ALIAS_HELP
from gradewire.cli.problems import EXIT_INTERRUPTED, InputError, exit_codes, one_line_errors
from gradewire.cli.server_extra import embedded_module
from gradewire.metric_line import format_metric_line, parse_metric_line
from gradewire.metric_types.wire import wire_parameters

if TYPE_CHECKING:
    from gradewire.cli.agree_run import Judging
    from gradewire.cli.calibrate_fit import ThresholdFit
    from gradewire.cli.judged_rows import JudgedColumns
    from gradewire.metric_types import Metric

FITTED = ("smile", "sbert", "sfve", "bertscore")
# What a calibration says beside the parameters that it holds for, or that is no part of a score.
_NOT_PARAMETERS = frozenset({"model", "threshold", "sentence_weight"})


@click.command(
    "calibrate",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire calibrate answers.jsonl                           smile's threshold, for the default encoder
  gradewire calibrate answers.jsonl --metric sbert --model all-mpnet-base-v2
  gradewire calibrate answers.jsonl --fit both --half a       threshold and sentence_weight; read on the other half
  gradewire calibrate answers.jsonl --dry-run                 look at the gain, store nothing
  gradewire calibrate --show
  gradewire calibrate --undo --metric smile

A label of 0.5 and more is right. A threshold holds for scores of the same model, preset and parameters; the others stay
as they are. Servers read it when they load the model: start them anew, or load the model again in Triton and then start
gradewire's server anew.

{exit_codes(failed_rows="")}""",
)
@calibrate_options
@click.pass_context
def calibrate_command(ctx: click.Context, /, **options: Any) -> None:
    """Fit the threshold of a metric on the labelled rows of FILE and store it with the encoder.

    Scores the rows, finds the score from which on an answer counts as right (and for smile, with --fit both, the
    weight of its sentence term), shows what verdicts are worth before and after on rows of other questions, and writes
    both into the model's description, with the rows' digest and the date.
    """
    if options["show"] or options["undo"]:
        _tell_or_undo(options)
        return
    if options["file"] is None:
        raise click.UsageError("name a FILE of labelled answers (or say --show or --undo)")
    metric = _metric(options["metric"])
    calibration = _Calibration(judging_of(options), metric, options)
    try:
        calibration.run(ctx)
    except KeyboardInterrupt:
        click.echo("interrupted; nothing was stored", err=True)
        ctx.exit(EXIT_INTERRUPTED)


@dataclass(frozen=True, slots=True)
class _Calibration:
    """One run of the command.

    Attributes:
        judging: Rows, and where they are scored.
        metric: As asked for.
        options: Of the command.
    """

    judging: Judging
    metric: Metric
    options: dict[str, Any]

    def run(self, ctx: click.Context) -> None:
        columns, before = self._score(ctx, self.metric)
        after, weight = before, None
        if self.options["fit"] == "both":
            weight = fitted_weight(before.fitted, self.options["weight_objective"])
            values: dict[str, Any] = {"sentence_weight": weight}
            columns, after = self._score(ctx, replace(self.metric, **values))
        fit = fitted_threshold(
            before, after, self.options["objective"], resamples=self.judging.resamples, seed=self.judging.seed
        )
        print_figures([fit_table(fit)])
        for line in fit_lines(fit, before, after, weight):
            click.echo(line)
        for line in warning_lines(fit, after, columns):
            click.echo(line, err=True)
        self._store(fit, after)

    def _score(self, ctx: click.Context, metric: Metric) -> tuple[JudgedColumns, Split]:
        plan = replace(self.judging.plan, metrics=format_metric_line(metric))
        columns = replace(self.judging, plan=plan).collect(ctx.obj, keeps_rows=True)
        fitted, read = labelled_scores(columns, half=self.options["half"])
        return columns, Split(fitted=fitted, read=read)

    def _store(self, fit: ThresholdFit, after: Split) -> None:
        rows = after.fitted
        scored = parse_metric_line(rows.line)
        if scored.name not in FITTED:
            raise InputError(f"the scores are of {scored.name}; thresholds are fitted for {', '.join(FITTED)}")
        name, _, digest = str(getattr(scored, "model", "")).partition("@")
        half = f"half {self.options['half']} of the questions of " if self.options["half"] else ""
        values = {
            "metric": scored.name,
            "metric_version": scored.version or 1,
            "parameters": _parameters(scored),
            "threshold": fit.threshold,
            "sentence_weight": getattr(scored, "sentence_weight", None),
            "rows": len(rows.scores),
            "rows_sha256": rows.sha256,
            "fitted_on": f"{len(rows.scores)} rows, {half}{Path(self.judging.source.path).name}",
            "date": datetime.now(UTC).date().isoformat(),
            "figures": tuple(fit.figures.items()),
        }
        if self.options["dry_run"]:
            click.echo(f"nothing was stored (--dry-run); it would be for {name}@{digest}")
            return
        with one_line_errors():
            told = embedded_module().store_fitted(self.options["models_dir"], name, digest, values)
        click.echo(f"stored with {name}: {told}")
        click.echo("servers that run read it when they load the model again; results name it in their line", err=True)


def _metric(line: str) -> Metric:
    with one_line_errors():
        metric = parse_metric_line(line)
    if metric.name not in FITTED:
        raise InputError(f"--metric {line}: thresholds are fitted for {', '.join(FITTED)}")
    return metric


def _parameters(metric: Metric) -> tuple[tuple[str, str], ...]:
    """Names and values as the metric's line writes them."""
    named = [name for name in wire_parameters(metric.name) if name not in _NOT_PARAMETERS]
    values = {name: getattr(metric, name) for name in named}
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in values.items()
        if value is not None
    )


def _tell_or_undo(options: dict[str, Any]) -> None:
    embedded = embedded_module()
    model = (options["model"] or "").partition("@")[0]
    with one_line_errors():
        if options["undo"]:
            named = click.get_current_context().get_parameter_source("metric") is click.core.ParameterSource.COMMANDLINE
            metric = _metric(options["metric"]).name if named else ""
            gone = embedded.forget_fitted(options["models_dir"], model, metric)
            click.echo("\n".join(f"taken away: {line}" for line in gone) or "nothing of a user's was stored")
        name, lines = embedded.fitted_for(options["models_dir"], model)
    click.echo(name)
    for line in lines or ["nothing was fitted for it"]:
        click.echo(f"  {line}")
