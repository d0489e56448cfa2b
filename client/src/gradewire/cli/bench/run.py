"""What the tables of `bench` share: a verdict of every metric, and the ways out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

from gradewire.cli.output.documents import write_json, write_text
from gradewire.cli.output.draws import draws_line, undefined_draws, without_interval
from gradewire.cli.output.tables import print_figures, to_markdown
from gradewire.cli.problems import EXIT_INTERRUPTED, InputError
from gradewire.cli.run.judging import Judging, judging_of, judging_options, what_was_judged
from gradewire.metric_types import Cider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradewire.agreement import Estimate, JudgedRows
    from gradewire.cli.output.draws import PlacedEstimate
    from gradewire.cli.output.tables import FigureTable
    from gradewire.cli.run.judged_rows import JudgedColumns

Command = TypeVar("Command", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """What a bench was made from.

    Attributes:
        columns: Rows as they came, with what was left out.
        rows: The same as arrays, with verdicts from cuts where there is one.
        cuts: Score from which an answer counts as right, by metric; those with a verdict of their own have none.
    """

    columns: JudgedColumns
    rows: JudgedRows
    cuts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The options of a table.

    Attributes:
        judging: What is judged.
        cuts: Score from which an answer counts as right, by metric.
        cut: The same for metrics without a verdict that `cuts` does not name; None: they have none.
        json_path: File for all figures.
        markdown: File for the tables.
    """

    judging: Judging
    cuts: Mapping[str, float]
    cut: float | None
    json_path: Path | None
    markdown: Path | None

    def run(self, ctx: click.Context) -> JudgedRun:
        """The labelled rows with verdicts; exits where the user interrupts."""
        try:
            columns = self.judging.collect(ctx.obj)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        rows = columns.judged()
        if unknown := self.cuts.keys() - rows.scores.keys():
            raise InputError(f"--cut {min(unknown)}=…: there is no such metric, there are {', '.join(rows.scores)}")
        cuts = dict(self.cuts)
        if self.cut is not None:
            # CIDEr goes up to 10 and its paper calls no score right: a cut for similarities says nothing there.
            silent = [label for label, verdicts in rows.verdicts.items() if np.isnan(verdicts).all()]
            cuts = {label: self.cut for label in silent if not label.startswith(Cider.name)} | cuts
        return JudgedRun(columns=columns, rows=rows.with_cuts(cuts), cuts=cuts)

    def tell(
        self,
        run: JudgedRun,
        tables: Sequence[FigureTable],
        figures: Mapping[str, Any],
        *,
        intervals: Iterable[PlacedEstimate],
    ) -> None:
        """Prints the tables and writes what is asked for.

        Args:
            run: What they were made from.
            tables: To be shown.
            figures: For the JSON file, beside what was judged.
            intervals: All figures of the tables, whose draws are told.

        Raises:
            InputError: A file cannot be written.
        """
        print_figures(tables)
        notes, metrics = [], {}
        for label, tally in run.columns.tallies.items():
            cut = f", right from {run.cuts[label]:.4g}" if label in run.cuts else ""
            if np.isnan(run.rows.verdicts[label]).all():
                cut = ", no verdicts (give --cut)"
            failures = ", ".join(f"{status} {count}" for status, count in tally.failures.items())
            notes.append(f"{label}: {tally.line}{cut}{f' ({failures})' if failures else ''}")
            metrics[label] = {"line": tally.line, "statuses": dict(tally.statuses), "cut": run.cuts.get(label)}
        notes += interval_notes(intervals)
        for note in notes:
            click.echo(note)
        for sentence in run.columns.left_out():
            click.echo(sentence, err=True)
        if self.json_path is not None:
            write_json(self.json_path, {**what_was_judged(self.judging, run.columns), "metrics": metrics, **figures})
        if self.markdown is not None:
            write_text(self.markdown, to_markdown(tables, notes))


def interval_notes(intervals: Iterable[PlacedEstimate]) -> list[str]:
    """How many draws are behind figures, and which have none."""
    shown = list(intervals)
    by_statistic: dict[str, list[Estimate]] = {}
    for figure in shown:
        by_statistic.setdefault(figure.statistic, []).append(figure.estimate)
    return [draws_line(by_statistic), *without_interval(shown), *undefined_draws(shown)]


def bench_options(*, cut_help: str) -> Callable[[Command], Command]:
    """Adds FILE and all options of a table; `bench_of` reads them.

    Args:
        cut_help: What holds for metrics that --cut does not name.
    """

    def add(command: Command) -> Command:
        path = click.Path(dir_okay=False, path_type=Path)
        for option in reversed(
            (
                judging_options,
                click.option(
                    "--cut",
                    "cuts",
                    metavar="[METRIC=]SCORE",
                    multiple=True,
                    help=f"From this score an answer counts as right; METRIC as the table calls it. {cut_help}",
                ),
                click.option("--json", "json_path", type=path, help="Write all figures here."),
                click.option("--markdown", type=path, help="Write the tables here as Markdown."),
            )
        ):
            command = option(command)
        return command

    return add


def bench_of(ctx: click.Context, options: Mapping[str, Any], *, metrics: str, cut: float | None) -> Bench:
    """Reads the options of `bench_options`.

    Args:
        ctx: Of the command.
        options: Values of its options by name; others are not looked at.
        metrics: What is scored where --metrics says nothing.
        cut: For metrics without a verdict where --cut says nothing.

    Raises:
        click.ClickException: An option cannot be understood, or an output is an input.
    """
    given = ctx.get_parameter_source("metrics") is not click.core.ParameterSource.DEFAULT
    judging = judging_of(options if given else {**options, "metrics": metrics})
    for option, path in (("--json", options["json_path"]), ("--markdown", options["markdown"])):
        judging.refuse_clashes(option, path)
    cuts = {}
    for text in options["cuts"]:
        label, _, score = text.rpartition("=")
        try:
            cuts[label] = float(score)
        except ValueError:
            cuts[label] = math.nan
        if not math.isfinite(cuts[label]):
            raise click.UsageError(f"--cut {text}: write METRIC=SCORE or SCORE, for instance --cut rouge_l=0.5")
    cut = cuts.pop("", cut)
    return Bench(judging=judging, cuts=cuts, cut=cut, json_path=options["json_path"], markdown=options["markdown"])
