"""`gradewire calibrate`: fits a metric's threshold to labelled answers and stores it with the model."""

from dataclasses import replace
from typing import Any

import click

from gradewire.cli.calibrate.options import calibrate_options, calibrate_run_of
from gradewire.cli.calibrate.run import CORRECTNESS, THRESHOLDS, Calibration
from gradewire.cli.input.files import ALIAS_HELP
from gradewire.cli.problems import InputError, exit_codes, exit_on_interrupt, one_line_errors
from gradewire.cli.server_extra import embedded_module
from gradewire.metric_types import Auto
from gradewire.metric_types.base import Metric
from gradewire.metric_types.line import parse_metric_line

_NOT_FITTED = ("risk", "judge_budget", "sample", "sample_seed", "fit")


@click.command(
    "calibrate",
    epilog=f"""{ALIAS_HELP}
\b
Examples:
  gradewire calibrate answers.jsonl                           smile's threshold, for the default encoder
  gradewire calibrate answers.jsonl --metric sbert --model all-mpnet-base-v2
  gradewire calibrate answers.jsonl --scores scores.jsonl --model all-mpnet-base-v2
  gradewire calibrate answers.jsonl --fit both --half a       threshold and sentence_weight; measured on the other half
  gradewire calibrate answers.jsonl --metric correctness       the probability (needs gradewire[calibrate])
  gradewire calibrate answers.jsonl --metric auto             when to ask a judge (asks it about every row)
  gradewire calibrate answers.jsonl --dry-run                 look at the gain, store nothing
  gradewire calibrate --show
  gradewire calibrate --undo --metric smile

A label of 0.5 and more is right. A threshold holds for scores of the same model, preset and parameters; the others stay
as they are. Servers read it when they load the model: restart those that run.

{exit_codes(failed_rows="")}""",
)
@calibrate_options
@click.pass_context
def calibrate_command(ctx: click.Context, /, **options: Any) -> None:
    """Fit the threshold of a metric on the labelled rows of FILE and store it with the encoder.

    Scores the rows, finds the score from which on an answer counts as right (and for smile, with --fit both, the
    weight of its sentence term), shows what verdicts are worth before and after on rows of other questions, and writes
    it into the model's description, with the rows' digest and the date. Of metric correctness it is the probability
    itself that is fitted; of auto, how sure exact_match and correctness have to be, and where a judge is worth asking.
    """
    if options["show"] or options["undo"]:
        _tell_or_undo(ctx, options)
        return
    if not options["files"]:
        raise click.UsageError("name a FILE of labelled answers (or say --show or --undo)")
    metric = _of_model(_metric(options["metric"]), options["model"])
    if metric.name in {CORRECTNESS, Auto.name} and options["fit"] == "both":
        raise click.UsageError(f"--fit both is for smile: {metric.name} has no weight of its own")
    run = calibrate_run_of(options, metric)
    run.check_outputs([("--json", options["json_path"])])
    with exit_on_interrupt(lambda: "interrupted; nothing was stored"):
        Calibration(run, metric, options).fit(ctx.obj)


def _metric(line: str) -> Metric:
    with one_line_errors():
        metric = parse_metric_line(line)
    if metric.name not in {*THRESHOLDS, CORRECTNESS, Auto.name}:
        known = ", ".join((*THRESHOLDS, CORRECTNESS))
        raise InputError(f"--metric {line}: there is something to fit for {known} and {Auto.name}")
    if isinstance(metric, Auto):
        said = [name for name in _NOT_FITTED if getattr(metric, name) is not None]
        if said:
            raise InputError(f"--metric {line}: a fit holds for every {said[0]}: leave it out")
    if metric.name != CORRECTNESS:
        return metric
    values: dict[str, Any] = {"features_only": True}
    return replace(metric, **values)


def _of_model(metric: Metric, model: str | None) -> Metric:
    """The metric by the encoder of --model, which tells scores of one metric apart; its own encoder counts before."""
    values: dict[str, Any] = {"model": getattr(metric, "model", None) or model}
    return replace(metric, **values)


def _tell_or_undo(ctx: click.Context, options: dict[str, Any]) -> None:
    fits = embedded_module("fits")
    model = (options["model"] or "").partition("@")[0]
    with one_line_errors():
        if options["undo"]:
            named = ctx.get_parameter_source("metric") is click.core.ParameterSource.COMMANDLINE
            metric = _metric(options["metric"]).name if named else ""
            gone = fits.forget_fitted(options["models_dir"], model, metric)
            click.echo("\n".join(f"taken away: {line}" for line in gone) or "nothing of a user's was stored")
        name, lines = fits.fitted_for(options["models_dir"], model)
    click.echo(name)
    for line in lines or ["nothing was fitted for it"]:
        click.echo(f"  {line}")
