"""Labelled rows with a verdict of every metric: what the tables of `accuracy` and `knvqa` are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import click
import numpy as np

from gradewire.cli.bench.engine import TableResult, described_tallies, place_of, run_parameters
from gradewire.cli.problems import InputError
from gradewire.cli.run.accuracy_tables import people_of
from gradewire.cli.run.labelled_run import described_run, labelled_run_of
from gradewire.cli.run.labels import label_named
from gradewire.metric_types import Cider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradewire.agreement import JudgedRows
    from gradewire.cli.bench.engine import TableCall
    from gradewire.cli.options.group import Command
    from gradewire.cli.output.interval_notes import PlacedEstimate
    from gradewire.cli.run.accuracy_tables import People
    from gradewire.cli.run.evaluator_labels import EvaluatorLabels
    from gradewire.cli.run.labelled_rows import LabelledRows
    from gradewire.cli.run.labelled_run import LabelledRun
    from gradewire.tables import Table


class Draws(TypedDict):
    """How intervals are drawn."""

    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRows:
    """Labelled rows with verdicts.

    Attributes:
        run: Which rows are scored, and by what.
        labelled: Rows as they came, with what was left out.
        judged: The same as arrays, with verdicts from cuts where there is one.
        cuts: Score from which an answer counts as right, by metric; those with a verdict of their own have none.
        evaluator_cut: The same for the evaluator that stands in the place of people.
    """

    run: LabelledRun
    labelled: LabelledRows
    judged: JudgedRows
    cuts: Mapping[str, float]
    evaluator_cut: float | None

    @classmethod
    def read(cls, call: TableCall, *, cut: float | None) -> VerdictRows:
        """Score the rows; `cut` holds for metrics without a verdict that --cut does not name, None: they have none.

        Raises:
            click.ClickException: An option cannot be understood, or there is neither a verdict nor a cut of the
                evaluator that stands in the place of people.
        """
        run = labelled_run_of(call.options)
        given = _cuts(call.options["cuts"])
        cut = given.pop("", cut)

        def cuts_of(labels: Sequence[str]) -> dict[str, float]:
            """Return cuts by label; that of the evaluator in the place of people by the name of --against."""
            named = [*labels, run.against] if run.against else labels
            return {label_named(named, name, "--cut"): each for name, each in given.items()}

        labelled = run.collect(call.transport, check=cuts_of)
        judged = labelled.judged_by_verdict()
        cuts = cuts_of(list(judged.scores))
        evaluator_cut = _evaluator_cut(labelled.against, cuts.pop(run.against, None), cut)
        if evaluator_cut is not None:
            judged = replace(judged, labels=(labelled.judged().labels >= evaluator_cut).astype(np.float64))
        if cut is not None:
            # CIDEr goes up to 10 and its paper calls no score right: a cut for similarities says nothing there.
            silent = [label for label, verdicts in judged.verdicts.items() if np.isnan(verdicts).all()]
            cuts = {label: cut for label in silent if not label.startswith(Cider.name)} | cuts
        judged = judged.with_cuts(cuts)
        return cls(run=run, labelled=labelled, judged=judged, cuts=cuts, evaluator_cut=evaluator_cut)

    @property
    def draws(self) -> Draws:
        """How intervals are drawn."""
        return {"resamples": self.run.resamples, "seed": self.run.seed}

    @property
    def people(self) -> People:
        """Who labelled the rows."""
        return people_of(self.labelled.against)

    def result(
        self,
        values: Mapping[str, Any],
        *,
        headline: Iterable[Table],
        tables: Iterable[Table],
        intervals: Iterable[PlacedEstimate],
    ) -> TableResult:
        """Return the tables with what is to be said of the rows; `values` go into the JSON file."""
        labelled, notes = self.labelled, []
        metrics = described_tallies(labelled.tallies)
        for label, tally in labelled.tallies.items():
            cut = f", right from {self.cuts[label]:.4g}" if label in self.cuts else ""
            if np.isnan(self.judged.verdicts[label]).all():
                cut = ", no verdicts (give --cut)"
            notes.append(tally.told(label, cut))
            metrics[label]["cut"] = self.cuts.get(label)
        described = described_run(self.run, labelled)
        if labelled.against is not None:
            own = self.evaluator_cut
            notes.append(labelled.against.told("" if own is None else f", right from {own:.4g}"))
            described["against"]["cut"] = own
        return TableResult(
            tables=list(tables),
            headline=list(headline),
            notes=notes,
            intervals=intervals,
            left_out=labelled.left_out(),
            document={**described, "metrics": metrics, **values},
            parameters={**run_parameters(self.run), "cuts": self.cuts},
            rows=len(labelled),
            tallies=labelled.tallies,
            server_version=labelled.server_version,
            place=place_of(self.run),
        )


def cut_option(about: str) -> Callable[[Command], Command]:
    """Add --cut; `about` says what holds for metrics that it does not name."""
    return click.option(
        "--cut",
        "cuts",
        metavar="[METRIC=]SCORE",
        multiple=True,
        help=f"From this score an answer counts as right; METRIC as the table calls it, or the one of --against. "
        f"{about}",
    )


def _cuts(texts: Sequence[str]) -> dict[str, float]:
    cuts = {}
    for text in texts:
        label, _, score = text.rpartition("=")
        try:
            cuts[label] = float(score)
        except ValueError:
            cuts[label] = math.nan
        if not math.isfinite(cuts[label]):
            raise click.UsageError(f"--cut {text}: write METRIC=SCORE or SCORE, for instance --cut rouge_l=0.5")
    return cuts


def _evaluator_cut(against: EvaluatorLabels | None, named: float | None, cut: float | None) -> float | None:
    if against is None or named is not None or against.has_verdicts:
        return named
    if cut is None or against.label.startswith(Cider.name):
        raise InputError(
            f"--against {against.name}: it calls no answer right or wrong: give --cut '{against.name}=SCORE', from "
            "which it does"
        )
    return cut
