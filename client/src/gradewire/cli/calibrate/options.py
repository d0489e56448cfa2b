"""Options of `gradewire calibrate`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from gradewire.agreement.fitting.cascade.rows import DELTA
from gradewire.agreement.fitting.halves import Half
from gradewire.agreement.fitting.thresholds import Objective, WeightObjective
from gradewire.cli.calibrate.sources import with_sources
from gradewire.cli.input.files import column_options
from gradewire.cli.options.connection import connection_of, connection_options
from gradewire.cli.options.group import OUTPUT_FILE, choice_option, option_group
from gradewire.cli.options.labelled import labelled_options
from gradewire.cli.options.metrics import MetricOptions
from gradewire.cli.run.labelled_run import LabelledRun, labelled_run_of
from gradewire.metric_types.base import Metric

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
