"""`gradewire calibrate`: fits a metric's threshold to labelled answers and stores it with the model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from gradewire.metrics import Auto
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import parse_metric_line
from gradewire_cli.calibrate.rows import with_sources
from gradewire_cli.calibrate.run import CORRECTNESS, THRESHOLDS, Calibration
from gradewire_cli.lazy_commands import embedded_module
from gradewire_cli.options.common import OUTPUT_FILE, choice_option, option_group
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.labelled import labelled_options
from gradewire_cli.options.metrics import MetricOptions
from gradewire_cli.problems import InputError, exit_codes, exit_on_interrupt, one_line_errors
from gradewire_cli.rows.input_file import ALIAS_HELP, column_options
from gradewire_cli.scoring.labelled_run import LabelledRun, labelled_run_of
from gradewire_stats.calibration.cascade_rows import DELTA
from gradewire_stats.calibration.labelled_rows import Half
from gradewire_stats.calibration.thresholds import Objective, WeightObjective

RESAMPLES = 2000

calibrate_options = option_group(
    click.argument("files", metavar="[FILE]...", nargs=-1),
    column_options,
    click.option(
        "--metric",
        default="smile",
        help="What is calibrated, with its parameters: smile, sbert, sfve, bertscore, smile:paper, "
        "'bertscore?layer=5'; correctness; auto, 'auto?judge=judge_verdict&judge_model=NAME'.",
    ),
    click.option(
        "--model",
        metavar="NAME[@DIGEST]",
        help="Encoder; default: the catalog's default. With --scores: whose scores are taken, where they are "
        "of several.",
    ),
    choice_option(
        "--fit",
        among=("threshold", "both"),
        about="What is fitted: the threshold, or also smile's sentence_weight, which then holds for scores that set "
        "none. With both the rows are scored twice, the second time from the cache.",
    ),
    choice_option("--objective", among=get_args(Objective), about="What the threshold maximises."),
    choice_option("--weight-objective", among=get_args(WeightObjective), about="What the weight maximises."),
    click.option(
        "--half",
        type=click.Choice(get_args(Half)),
        help="Fit on this half of the questions and measure on the other; default: fit on all, measure by "
        "cross-validation.",
    ),
    click.option(
        "--source",
        metavar="COLUMN",
        help="Of correctness: column that tells sources of rows apart; each counts the same, and the fit is tried on "
        "each by leaving it out. Default: the FILE where there are several, else column source, else dataset.",
    ),
    click.option(
        "--models-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Built models; default: those of the engine in this process.",
    ),
    connection_options,
    labelled_options(resamples=RESAMPLES),
    click.option(
        "--delta",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=DELTA,
        show_default=True,
        help="Of auto: probability with which the bound of a risk may fail.",
    ),
    click.option("--json", "json_path", type=OUTPUT_FILE, help="Also write what was fitted here (JSON)."),
    click.option("--dry-run", is_flag=True, help="Store nothing."),
    click.option("--show", is_flag=True, help="Show what is stored with the model, and exit."),
    click.option(
        "--undo", is_flag=True, help="Remove what users fitted for the model (only for --metric, where it is given)."
    ),
)


def calibrate_run_of(options: Mapping[str, Any], metric: Metric) -> LabelledRun:
    """Reads the options of `calibrate_options` that say what is scored, and where.

    Raises:
        click.ClickException: An option cannot be understood, or two exclude each other.
    """
    if options["fit"] == "both" and options["scores"]:
        raise click.UsageError("--fit both has to score with the new weight: leave --scores out")
    metrics = MetricOptions(metrics=metric, model=options["model"])
    run = labelled_run_of(options, metrics, replace(connection_of(options), models_dir=options["models_dir"]))
    return replace(run, source=with_sources(run.source, options["source"]))


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
        _show_or_undo(ctx, options)
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


def _show_or_undo(ctx: click.Context, options: dict[str, Any]) -> None:
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
