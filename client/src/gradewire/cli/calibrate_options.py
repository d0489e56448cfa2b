"""Options of `gradewire calibrate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from gradewire.agreement.halves import Half
from gradewire.agreement.labels import LabelRule
from gradewire.agreement.thresholds import Objective, WeightObjective
from gradewire.cli.agree_run import Judging
from gradewire.cli.connection import connection_of, connection_options
from gradewire.cli.files import column_options, input_file
from gradewire.cli.pipeline import ScorePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Command = TypeVar("Command", bound="Callable[..., Any]")

RESAMPLES = 2000


def calibrate_options(command: Command) -> Command:
    """Adds FILE and all options; `judging_of` reads those of the scoring."""
    path = click.Path(dir_okay=False, path_type=Path)
    for option in reversed(
        (
            click.argument("file", required=False),
            column_options,
            click.option("--where", metavar="COLUMN=VALUE,…", multiple=True, help="Only these rows. May be repeated."),
            click.option(
                "--metric",
                default="smile",
                show_default=True,
                help="What is calibrated, with its parameters: smile, sbert, sfve, bertscore, smile:paper, "
                "'bertscore?layer=5'; calibrated.",
            ),
            click.option("--model", metavar="NAME[@DIGEST]", help="Encoder; default: the catalog's default."),
            click.option(
                "--fit",
                type=click.Choice(["threshold", "both"]),
                default="threshold",
                show_default=True,
                help="both: smile's sentence_weight as well, which scores without one of their own take then. Scores "
                "twice, the second time from the cache.",
            ),
            click.option(
                "--objective",
                type=click.Choice(get_args(Objective)),
                default="accuracy",
                show_default=True,
                help="What the threshold makes as large as can be.",
            ),
            click.option(
                "--weight-objective",
                type=click.Choice(get_args(WeightObjective)),
                default="pearson",
                show_default=True,
                help="What the weight makes as large as can be.",
            ),
            click.option(
                "--half",
                type=click.Choice(get_args(Half)),
                help="Fit on this half of the questions and read on the other; default: fit on all, read by folds.",
            ),
            click.option(
                "--scores",
                type=path,
                multiple=True,
                help="Take the scores of --metric from this output of gradewire score; nothing is scored.",
            ),
            click.option(
                "--labels",
                type=click.Choice(get_args(LabelRule)),
                help="What several annotators make together. Default: the row's own label, else their mean.",
            ),
            click.option("--without-flag", "without_flags", metavar="FLAG", multiple=True, help="Leave such rows out."),
            click.option(
                "--models-dir",
                type=click.Path(file_okay=False, path_type=Path),
                help="Built models; default: those of the engine in this process.",
            ),
            connection_options,
            click.option("--resamples", type=click.IntRange(min=100), default=RESAMPLES, show_default=True),
            click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same intervals."),
            click.option("--json", "json_path", type=path, help="Write what was fitted here, too."),
            click.option("--dry-run", is_flag=True, help="Store nothing."),
            click.option("--show", is_flag=True, help="Tell what is stored with the model, and end."),
            click.option(
                "--undo", is_flag=True, help="Take away what users fitted for the model (of --metric, where named)."
            ),
            click.option("--quiet", is_flag=True, help="No progress."),
        )
    ):
        command = option(command)
    return command


def judging_of(options: Mapping[str, Any]) -> Judging:
    """Reads the options of the scoring.

    Raises:
        click.ClickException: An option cannot be understood, or two exclude each other.
    """
    if options["fit"] == "both" and options["scores"]:
        raise click.UsageError("--fit both has to score with the new weight: leave --scores out")
    return Judging(
        source=input_file(options, needed=("references", "prediction", "label")),
        plan=ScorePlan(metrics=options["metric"], model=options["model"]),
        connection=replace(connection_of(options), models_dir=options["models_dir"]),
        scores=options["scores"],
        labels=options["labels"],
        without_flags=frozenset(options["without_flags"]),
        resamples=options["resamples"],
        seed=options["seed"],
        quiet=options["quiet"],
    )
