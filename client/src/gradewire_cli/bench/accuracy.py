"""`gradewire bench accuracy` and `knvqa`: compare metrics' and annotators' verdicts, model by model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np

from gradewire.metrics import Cider
from gradewire_cli.bench.paper_tables import TableCall, TableResult, described_tallies, table_command
from gradewire_cli.options.help import option
from gradewire_cli.problems import InputError
from gradewire_cli.results.accuracy_tables import accuracy_headline, accuracy_intervals, accuracy_tables
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import TITLES, Cell, Table, Value, cell_names, count, estimated, measured
from gradewire_cli.scoring.class_judging import error_classes_option
from gradewire_cli.scoring.labelled_rows import EvaluatorLabels, LabelledRows, label_named
from gradewire_cli.scoring.labelled_run import LabelledRun, described_run, labelled_run_of, labelled_run_options
from gradewire_stats.knvqa import EvaluatorOnModel, KnvqaTable, ModelSummary, knvqa_table
from gradewire_stats.model_accuracy import model_accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradewire_cli.options.common import Command
    from gradewire_cli.results.accuracy_tables import People
    from gradewire_cli.results.tallies import MetricTally
    from gradewire_stats.agreement.rows import JudgedRows
    from gradewire_stats.agreement.statistics import Statistic

# SMILE's appendix counts continuous scores from 0.67 as right.
_CUT = 2 / 3

_Named = Literal["accuracy", "f1", "macro_f1", "precision", "recall"]
_STATISTICS: tuple[_Named, ...] = ("accuracy", "f1", "macro_f1", "precision", "recall")
_NARROW: tuple[Statistic, ...] = ("positive_rate", "accuracy", "f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRows:
    """Labelled rows with verdicts.

    Attributes:
        cuts: Lowest score that counts as right, by metric. The verdicts in `judged` follow from these cuts.
        evaluator_cut: Lowest score that counts as right if an evaluator replaces annotators. None means no cut.
    """

    run: LabelledRun
    labelled: LabelledRows
    judged: JudgedRows
    cuts: Mapping[str, float]
    evaluator_cut: float | None

    @classmethod
    def read(cls, call: TableCall, *, cut: float | None) -> VerdictRows:
        """Score the rows, and apply cuts to scores without verdicts. `cut` is the default cut, or None for no cut.

        Raises:
            click.ClickException: An option is invalid, or the evaluator that replaces annotators has neither verdicts
                nor a cut.
        """
        run = labelled_run_of(call.options)
        given = _cuts(call.options["cuts"])
        cut = given.pop("", cut)

        def cuts_of(labels: Sequence[str]) -> dict[str, float]:
            named = [*labels, run.against] if run.against else labels
            return {label_named(named, name, "--cut"): each for name, each in given.items()}

        labelled = run.collect(call.transport, check=cuts_of)
        judged = labelled.judged_by_verdict()
        cuts = cuts_of(list(judged.scores))
        evaluator_cut = _evaluator_cut(labelled.against, cuts.pop(run.against, None), cut)
        if evaluator_cut is not None:
            judged = replace(judged, labels=(labelled.judged().labels >= evaluator_cut).astype(np.float64))
        if cut is not None:
            # CIDEr's scores reach 10. A cut for similarities does not suit them.
            silent = [label for label, verdicts in judged.verdicts.items() if np.isnan(verdicts).all()]
            cuts = {label: cut for label in silent if not label.startswith(Cider.name)} | cuts
        judged = judged.with_cuts(cuts)
        return cls(run=run, labelled=labelled, judged=judged, cuts=cuts, evaluator_cut=evaluator_cut)

    @property
    def people(self) -> People:
        """Words for the annotators, or for the evaluator that replaces them."""
        return self.labelled.people

    @property
    def without_verdicts(self) -> list[str]:
        """The metrics that scored rows, but have neither verdicts nor a cut."""
        return [
            label
            for label, verdicts in self.judged.verdicts.items()
            if np.isnan(verdicts).all() and np.isfinite(self.judged.scores[label]).any()
        ]

    def result(
        self,
        values: Mapping[str, Any],
        *,
        headline: Iterable[Table],
        tables: Iterable[Table],
        intervals: Iterable[NamedEstimate],
        left_out: Iterable[str] = (),
    ) -> TableResult:
        """Return a result with the tables and with notes on the rows. Its JSON document includes `values`."""
        labelled, notes = self.labelled, []
        metrics = described_tallies(labelled.tallies)
        for label, tally in labelled.tallies.items():
            cut = f", right from {self.cuts[label]:.4g}" if label in self.cuts else ""
            if np.isnan(self.judged.verdicts[label]).all():
                cut = ", no verdicts (use --cut)"
            notes.append(tally.summary(label, cut))
            metrics[label]["cut"] = self.cuts.get(label)
        described = described_run(self.run, labelled)
        if labelled.against is not None:
            own = self.evaluator_cut
            notes.append(labelled.against.summary("" if own is None else f", right from {own:.4g}"))
            described["against"]["cut"] = own
        return TableResult(
            tables=list(tables),
            headline=list(headline),
            notes=notes,
            intervals=intervals,
            left_out=[*left_out, *labelled.left_out()],
            document={**described, "metrics": metrics, **values},
            parameters={"cuts": self.cuts},
            rows=len(labelled),
            tallies=labelled.tallies,
            server_version=labelled.server_version,
            run=self.run,
        )


def cut_option(default: str = "") -> Callable[[Command], Command]:
    """Return the option --cut. `default` describes the default cut."""
    return option("--cut", "cuts", multiple=True, show_default=default or None)


def _cuts(texts: Sequence[str]) -> dict[str, float]:
    cuts = {}
    for text in texts:
        label, _, score = text.rpartition("=")
        try:
            cuts[label] = float(score)
        except ValueError:
            cuts[label] = math.nan
        if not math.isfinite(cuts[label]):
            raise click.UsageError(f"--cut {text} is invalid. Use METRIC=SCORE or SCORE, e.g. --cut rouge_l=0.5")
    return cuts


def _evaluator_cut(against: EvaluatorLabels | None, named: float | None, cut: float | None) -> float | None:
    if against is None or named is not None or against.has_verdicts:
        return named
    if cut is None or against.label.startswith(Cider.name):
        raise InputError(
            f"--against {against.name}: this metric returns no verdicts. Set the lowest score that counts as "
            f"right with --cut '{against.name}=SCORE'"
        )
    return cut


def _compute_accuracy(call: TableCall) -> TableResult:
    rows = VerdictRows.read(call, cut=_CUT)
    table, people = model_accuracy(rows.judged, **rows.run.draws), rows.people
    return rows.result(
        {"human": table.cells, "evaluators": table.evaluators},
        headline=accuracy_headline(table, people),
        tables=accuracy_tables(table, people),
        intervals=accuracy_intervals(table, people),
    )


accuracy_command = table_command(
    "accuracy",
    labelled_run_options,
    cut_option("2/3 for metrics without verdicts, except cider"),
    compute=_compute_accuracy,
    has_headline=True,
)


def _compute_knvqa(call: TableCall) -> TableResult:
    rows = VerdictRows.read(call, cut=None)
    table, people = knvqa_table(rows.judged, lengths_words=rows.labelled.lengths_words(), **rows.run.draws), rows.people
    without = {label: rows.labelled.tallies[label] for label in rows.without_verdicts}
    judged = [line for line in table.lines if line.evaluator not in without]
    shown = replace(table, lines=judged or table.lines)
    return rows.result(
        {"models": table.models, "evaluators": table.lines, "wrong_verdicts": rows.labelled.wrong.listed},
        headline=_headline(shown, people),
        tables=[*_tables(shown, people), *rows.labelled.proposal_tables(), *rows.labelled.wrong.tables()],
        intervals=_intervals(shown, people),
        left_out=[
            *(_without_verdicts(*each, is_shown=not judged) for each in without.items()),
            *rows.labelled.proposal_notes(),
        ],
    )


def _without_verdicts(label: str, tally: MetricTally, *, is_shown: bool) -> str:
    """Return a sentence on an evaluator without verdicts, with the ways to give it some."""
    where = "" if is_shown else ", so it is not in the tables"
    cut = f"{label} has no verdicts{where}. To set the lowest right score, use --cut '{label}=SCORE'"
    return ". ".join(filter(None, [cut, tally.fit_hint]))


def _headline(table: KnvqaTable, people: People) -> list[Table]:
    if len(table.models) > 1:
        return [_positive_rates(table, people), _by_model(table, "accuracy")]
    human = table.models[0]
    rows: list[list[Cell]] = [
        [line.evaluator, *(estimated(line.estimates[name]) for name in _NARROW)] for line in table.lines
    ]
    title = f"Verdicts on {human.rows} rows: share called right, and agreement with {people.several}"
    heads = ["evaluator", *(TITLES[name] for name in _NARROW)]
    return [Table(title, heads, [*rows, [people.all_rows, estimated(human.human_rate), "", ""]])]


def _tables(table: KnvqaTable, people: People) -> Iterator[Table]:
    lines = _by_evaluator(table)
    incomplete = [name for name, found in lines.items() if any(line.failed for line in found)]
    over: dict[str, Sequence[ModelSummary | EvaluatorOnModel]] = {"over all labelled rows": table.models}
    over |= {f"on the rows that {name} judged": lines[name] for name in incomplete}
    for where, judged in over.items():
        yield _table_by_model(table, f"Models as {people.judge} them, {where}", _as_people_judge(judged), corner="")
    yield _positive_rates(table, people)
    yield from (_by_model(table, statistic) for statistic in _STATISTICS)
    if incomplete:
        failed: list[list[Cell]] = [[name, *(count(line.failed) for line in found)] for name, found in lines.items()]
        yield _table_by_model(table, "Rows without a verdict", failed)


def _positive_rates(table: KnvqaTable, people: People) -> Table:
    rows = [row for name, lines in _by_evaluator(table).items() for row in _rates(name, lines, people)]
    human: list[Cell] = [people.all_rows, *(estimated(model.human_rate) for model in table.models)]
    return _table_by_model(table, "Positive rate (rank of the evaluator)", [*rows, human])


def _by_model(table: KnvqaTable, statistic: _Named) -> Table:
    lines = _by_evaluator(table).items()
    rows: list[list[Cell]] = [
        [name, *(estimated(line.estimates[statistic]) for line in found)] for name, found in lines
    ]
    return _table_by_model(table, TITLES[statistic][0].upper() + TITLES[statistic][1:], rows)


def _table_by_model(
    table: KnvqaTable, title: str, rows: Sequence[Sequence[Cell]], *, corner: str = "evaluator"
) -> Table:
    return Table(title, [corner, *cell_names([("", model.model) for model in table.models])], rows)


def _by_evaluator(table: KnvqaTable) -> dict[str, list[EvaluatorOnModel]]:
    evaluators = dict.fromkeys(line.evaluator for line in table.lines)
    return {name: [line for line in table.lines if line.evaluator == name] for name in evaluators}


def _intervals(table: KnvqaTable, people: People) -> Iterator[NamedEstimate]:
    models = [model.model for model in table.models]
    named = dict(zip(models, cell_names([("", model) for model in models]), strict=True))
    for model in table.models:
        yield NamedEstimate(people.name, "right answers", named[model.model], model.human_rate)
    for line in table.lines:
        yield NamedEstimate(line.evaluator, "right answers", named[line.model], line.human_rate)
        for statistic, estimate in line.estimates.items():
            yield NamedEstimate(line.evaluator, TITLES[statistic], named[line.model], estimate)


def _as_people_judge(models: Sequence[ModelSummary | EvaluatorOnModel]) -> list[list[Cell]]:
    return [
        ["rows", *(count(model.rows) for model in models)],
        ["right", *(estimated(model.human_rate) for model in models)],
        ["rank", *(_ranked(model.human_rank) for model in models)],
        ["words per answer", *(measured(model.mean_length_words, digits=1) for model in models)],
    ]


def _rates(name: str, lines: Sequence[EvaluatorOnModel], people: People) -> Iterator[list[Cell]]:
    yield [name, *(estimated(line.estimates["positive_rate"]).beside(_rank(line.rank)) for line in lines)]
    if any(line.failed for line in lines):
        yield [f"{people.name}, rows of {name}", *(estimated(line.human_rate) for line in lines)]


def _ranked(rank: float | None) -> Value:
    return Value(_rank(rank), math.nan if rank is None else rank)


def _rank(rank: float | None) -> str:
    return "-" if rank is None else f"{rank:g}"


knvqa_command = table_command(
    "knvqa",
    labelled_run_options,
    error_classes_option,
    cut_option(),
    compute=_compute_knvqa,
    has_headline=True,
)
