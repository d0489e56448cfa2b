"""What the tables of `bench` share: a verdict of every metric, and where figures go."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire.cli.bench.manifest import BenchManifest, BenchScores, run_parameters
from gradewire.cli.options.group import Command, option_group
from gradewire.cli.output.files import FigureFiles, all_tables_option, figure_file_options
from gradewire.cli.output.interval_notes import interval_notes
from gradewire.cli.output.tables import FURTHER_TABLES, show_figures
from gradewire.cli.problems import InputError, exit_on_interrupt
from gradewire.cli.run.labelled_run import LabelledRun, described_run, labelled_run_of, labelled_run_options
from gradewire.cli.run.labels import label_named
from gradewire.cli.run.manifest_file import manifest_option
from gradewire.metric_types import Cider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradewire.agreement import JudgedRows
    from gradewire.cli.output.interval_notes import PlacedEstimate
    from gradewire.cli.output.tables import FigureTable
    from gradewire.cli.run.evaluator_labels import EvaluatorLabels
    from gradewire.cli.run.labelled_rows import LabelledRows
    from gradewire.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRows:
    """What a table is made from.

    Attributes:
        labelled: Rows as they came, with what was left out.
        judged: The same as arrays, with verdicts from cuts where there is one.
        cuts: Score from which an answer counts as right, by metric; those with a verdict of their own have none.
        evaluator_cut: The same for the evaluator that stands in the place of people.
    """

    labelled: LabelledRows
    judged: JudgedRows
    cuts: Mapping[str, float]
    evaluator_cut: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The options of a table.

    Attributes:
        run: Which rows are scored, and by what.
        cuts: Score from which an answer counts as right, by metric.
        cut: The same for metrics without a verdict that `cuts` does not name; None: they have none.
        all_tables: Whether all tables are printed, not only the headline figures.
        files: Where figures are written.
        manifest: The manifest of the run.
    """

    run: LabelledRun
    cuts: Mapping[str, float]
    cut: float | None
    all_tables: bool
    files: FigureFiles
    manifest: BenchManifest

    def rows(self, transport: Transport | None) -> BenchRows:
        """The labelled rows with verdicts; exits where the user interrupts.

        `transport`, from tests, takes the place of the connection.

        Raises:
            InputError: There is neither a verdict nor a cut of the evaluator that stands in the place of people.
        """
        with exit_on_interrupt():
            labelled = self.run.collect(transport, check=self._cuts_of)
        judged = labelled.judged_by_verdict()
        cuts = self._cuts_of(list(judged.scores))
        evaluator_cut = self._evaluator_cut(labelled.against, cuts.pop(self.run.against, None))
        if evaluator_cut is not None:
            judged = replace(judged, labels=(labelled.judged().labels >= evaluator_cut).astype(np.float64))
        if self.cut is not None:
            # CIDEr goes up to 10 and its paper calls no score right: a cut for similarities says nothing there.
            silent = [label for label, verdicts in judged.verdicts.items() if np.isnan(verdicts).all()]
            cuts = {label: self.cut for label in silent if not label.startswith(Cider.name)} | cuts
        return BenchRows(labelled=labelled, judged=judged.with_cuts(cuts), cuts=cuts, evaluator_cut=evaluator_cut)

    def _cuts_of(self, labels: Sequence[str]) -> dict[str, float]:
        """Cuts by label; that of the evaluator that stands in the place of people by the name that --against gives."""
        named = [*labels, self.run.against] if self.run.against else labels
        return {label_named(named, name, "--cut"): cut for name, cut in self.cuts.items()}

    def _evaluator_cut(self, against: EvaluatorLabels | None, named: float | None) -> float | None:
        if against is None or named is not None or against.has_verdicts:
            return named
        if self.cut is None or against.label.startswith(Cider.name):
            raise InputError(
                f"--against {against.name}: it calls no answer right or wrong: give --cut '{against.name}=SCORE', from "
                "which it does"
            )
        return self.cut

    def tell(
        self,
        rows: BenchRows,
        tables: Sequence[FigureTable],
        figures: Mapping[str, Any],
        *,
        headline: Sequence[FigureTable],
        intervals: Iterable[PlacedEstimate],
    ) -> None:
        """Prints the tables and writes what is asked for.

        Args:
            rows: What the tables were made from.
            tables: All tables.
            figures: What the JSON file has beside what is said of the rows.
            headline: Those that are printed unless all are asked for.
            intervals: All figures of the tables; notes say how many draws their intervals rest on.

        Raises:
            InputError: A file cannot be written.
        """
        notes, metrics = [], {}
        for label, tally in rows.labelled.tallies.items():
            cut = f", right from {rows.cuts[label]:.4g}" if label in rows.cuts else ""
            if np.isnan(rows.judged.verdicts[label]).all():
                cut = ", no verdicts (give --cut)"
            notes.append(tally.told(label, cut))
            metrics[label] = {"line": tally.line, "statuses": dict(tally.statuses), "cut": rows.cuts.get(label)}
        notes += interval_notes(intervals)
        if rows.labelled.against is not None:
            own = rows.evaluator_cut
            notes.append(rows.labelled.against.told("" if own is None else f", right from {own:.4g}"))
        left_out = rows.labelled.left_out()
        if self.all_tables:
            show_figures(tables, notes, left_out)
        else:
            show_figures(headline, notes, [*left_out, FURTHER_TABLES])
        described = described_run(self.run, rows.labelled)
        if rows.labelled.against is not None:
            described["against"]["cut"] = rows.evaluator_cut
        self.files.write({**described, "metrics": metrics, **figures}, tables, notes)
        labelled = rows.labelled
        scored = BenchScores.of(self.run, labelled.tallies, rows=len(labelled), server_version=labelled.server_version)
        self.manifest.write(scored, **run_parameters(self.run), cuts=rows.cuts)


def bench_options(*, cut_help: str) -> Callable[[Command], Command]:
    """Adds FILE and all options of a table; `cut_help` says what holds for metrics that --cut does not name."""
    return option_group(
        labelled_run_options,
        click.option(
            "--cut",
            "cuts",
            metavar="[METRIC=]SCORE",
            multiple=True,
            help=f"From this score an answer counts as right; METRIC as the table calls it, or the one of "
            f"--against. {cut_help}",
        ),
        all_tables_option,
        figure_file_options,
        manifest_option,
    )


def with_default_metrics(ctx: click.Context, options: Mapping[str, Any], metrics: str) -> dict[str, Any]:
    """The options, with these metrics where --metrics was not given."""
    given = ctx.get_parameter_source("metrics") is not click.core.ParameterSource.DEFAULT
    return {**options} if given else {**options, "metrics": metrics}


def bench_of(ctx: click.Context, options: Mapping[str, Any], *, metrics: str, cut: float | None) -> Bench:
    """Reads the options of `bench_options`; `metrics` and `cut` hold where --metrics and --cut say nothing.

    Raises:
        click.ClickException: An option cannot be understood, or an output is an input.
    """
    run = labelled_run_of(with_default_metrics(ctx, options, metrics))
    files = FigureFiles.of(options)
    manifest = BenchManifest.of(ctx.command_path.partition(" ")[2], options, files)
    run.check_outputs([*files.named, *manifest.named])
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
    return Bench(run=run, cuts=cuts, cut=cut, all_tables=options["all_tables"], files=files, manifest=manifest)
