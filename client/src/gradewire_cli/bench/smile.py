"""`gradewire bench smile`: score SMILE without one of its terms, and with different sentence weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import MetricDefaults, choose_metrics, parse_metric_line
from gradewire_cli.bench.paper_tables import TableCall, TableResult, table_command
from gradewire_cli.options.help import option
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import (
    ALL_ROWS,
    CELLS_MEAN,
    TITLES,
    Cell,
    Table,
    cells_mean,
    differing,
    estimated,
    of_cells,
)
from gradewire_cli.scoring.labelled_run import LabelledRun, described_run, labelled_run_of, labelled_run_options
from gradewire_stats.agreement.report import agreement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.agreement.rows import JudgedRows
    from gradewire_stats.agreement.statistics import Statistic

_WEIGHTS: Final = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
_STATISTICS: tuple[Statistic, ...] = ("pearson", "auc")
_PARTS: Final = {"keyword": "keyword similarity alone", "exact": "exact words alone"}
FULL = "smile"


def _compute(call: TableCall) -> TableResult:
    options = call.options
    if call.names_metrics:
        raise click.UsageError(
            "Leave out --metrics: bench smile chooses its metrics. Use --preset, --synthetic and --model"
        )
    if options["scores"]:
        raise click.UsageError("Leave out --scores: bench smile must score FILE with every weight")
    preset, tried = options["preset"] or "v1", _weights(options["weights"])
    # Standard input can be read only once.
    found = not call.source.is_stdin and call.source.open().has_synthetic
    synthetic = options["synthetic"] or ("inline" if found else "none")
    variants = _variants(preset, synthetic, tried)
    if set(_labels_if_valid(options["against"] or "")) & set(variants.values()):
        raise click.UsageError(f"--against {options['against']}: the variants include this metric. Use another metric")
    metrics = ",".join(dict.fromkeys(variants.values()))
    run = labelled_run_of({**options, "metrics": metrics, "preset": None, "synthetic": None})
    labelled = run.collect(call.transport, keeps_rows=True)
    rows = _renamed(labelled, variants)
    terms = [name for name in rows.scores if not name.startswith("w = ")]
    report = _agreement(rows, labelled, run)
    own = _own_weight(labelled, variants)
    told = "its own" if own is None else f"{own:g}"
    common = np.count_nonzero(~np.isnan(rows.scores[FULL]))
    return TableResult(
        tables=[
            _table(f"Terms of smile:{preset} (w = {told}, synthetic answers: {synthetic})", "variant", terms, report),
            _table("Weight w of the sentence term", "w", [name for name in rows.scores if name not in terms], report),
        ],
        notes=[
            *(labelled.tallies[label].summary(name) for name, label in variants.items() if name in terms),
            *([labelled.against.summary()] if labelled.against is not None else []),
            f"all lines use the {common} rows that every variant scored",
        ],
        intervals=_intervals(report),
        left_out=labelled.left_out(),
        document={
            **described_run(run, labelled),
            "preset": preset,
            "sentence_weight": own,
            "synthetic": synthetic,
            "variants": {each.metric: _document(each.metric, labelled, variants, report) for each in report.metrics},
        },
        rows=len(labelled),
        tallies=labelled.tallies,
        server_version=labelled.server_version,
        run=run,
    )


def _weights(text: str) -> list[float]:
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = [math.nan]
    if not all(0 <= weight <= 1 for weight in weights):
        raise click.UsageError(f"--weights {text} is invalid. Use numbers from 0 to 1, separated by commas")
    return list(dict.fromkeys(abs(weight) for weight in weights))


def _labels_if_valid(metrics: str) -> tuple[str, ...]:
    try:
        return choose_metrics(metrics, MetricDefaults()).labels
    except InvalidRequest:
        return ()


def _variants(preset: str, synthetic: str, tried: Sequence[float]) -> dict[str, str]:
    """Return each variant's metric label by the variant's name in tables."""

    def metric(weight: float | None, sentences: str = synthetic) -> str:
        given = "" if weight is None else f"sentence_weight={_written(weight)}&"
        return choose_metrics(f"smile:{preset}?{given}synthetic={sentences}", MetricDefaults()).labels[0]

    variants = {FULL: metric(None), "without the lexical term": metric(1), "without the sentence term": metric(0)}
    if synthetic != "none":
        variants["without synthetic answers"] = metric(None, "none")
    return variants | {f"w = {_written(weight)}": metric(weight) for weight in tried}


def _written(weight: float) -> str:
    return repr(float(weight)).removesuffix(".0")


def _own_weight(labelled: LabelledRows, variants: Mapping[str, str]) -> float | None:
    weight: float | None = getattr(parse_metric_line(labelled.tallies[variants[FULL]].line), "sentence_weight", None)
    return weight


def _renamed(labelled: LabelledRows, variants: Mapping[str, str]) -> JudgedRows:
    """Return the rows that all variants scored. Columns are the variants and the parts of the lexical term."""
    judged = labelled.judged()
    lexical = variants["without the sentence term"]
    scores = {name: judged.scores[label] for name, label in variants.items() if not name.startswith("w = ")}
    for part, name in _PARTS.items():
        results = [output["scores"][lexical] for _, output in labelled.kept]
        scores[name] = np.array([math.nan if result["score"] is None else result[part] for result in results])
    scores |= {name: judged.scores[label] for name, label in variants.items() if name.startswith("w = ")}
    # Values over different rows are not comparable.
    everywhere = ~np.isnan(list(scores.values())).any(axis=0)
    scores = {name: np.where(everywhere, column, np.nan) for name, column in scores.items()}
    return replace(judged, scores=scores, verdicts={name: np.full(len(judged.labels), np.nan) for name in scores})


def _agreement(rows: JudgedRows, labelled: LabelledRows, run: LabelledRun) -> AgreementReport:
    """Return agreement with annotators. If an evaluator replaces annotators, AUC uses this evaluator's verdicts."""
    against = labelled.against
    return agreement(
        rows if against is None else rows.beside_evaluator(against.verdicts()),
        statistics=_STATISTICS,
        compare=[(name, FULL) for name in rows.scores if name != FULL],
        compare_statistics=("pearson",),
        **run.draws,
    )


def _table(title: str, head: str, names: Sequence[str], report: AgreementReport) -> Table:
    found = {metric.metric: metric for metric in report.metrics}
    several = sum(cell.level == "cell" for cell in report.metrics[0].cells) > 1
    apart = {difference.metric: difference for difference in report.comparisons}
    rows: list[list[Cell]] = []
    for name in names:
        every = found[name].cells[-1].estimates
        row: list[Cell] = [name.removeprefix("w = "), *(estimated(every[statistic]) for statistic in _STATISTICS)]
        if several:
            row.append(cells_mean(found[name].headline["pearson"]))
        if (difference := apart.get(name)) is None:
            row += [""] * (1 + several)
        else:
            row.append(differing(difference.all_rows))
            if several:
                row.append(of_cells(differing(difference.mean_of_cells), difference.cells, difference.cells_in_all))
        rows.append(row)
    heads = [f"{TITLES[statistic]}, {ALL_ROWS}" for statistic in _STATISTICS]
    heads += [f"Pearson, {CELLS_MEAN}"] if several else []
    heads += [f"Pearson minus {FULL}'s"] + ([f"the same, {CELLS_MEAN}"] if several else [])
    return Table(title, [head, *heads], rows)


def _intervals(report: AgreementReport) -> Iterator[NamedEstimate]:
    for metric in report.metrics:
        for name in _STATISTICS:
            yield NamedEstimate(metric.metric, TITLES[name], ALL_ROWS, metric.cells[-1].estimates[name])
    for found in report.comparisons:
        yield NamedEstimate(f"{found.metric} minus {FULL}", TITLES[found.statistic], ALL_ROWS, found.all_rows)


def _document(
    name: str, labelled: LabelledRows, variants: Mapping[str, str], report: AgreementReport
) -> dict[str, Any]:
    metric = next(found for found in report.metrics if found.metric == name)
    label = variants.get(name, variants["without the sentence term"])
    return {
        "line": labelled.tallies[label].line,
        "part": next((part for part, called in _PARTS.items() if called == name), None),
        "statuses": dict(labelled.tallies[label].statuses),
        "all_rows": metric.cells[-1].estimates,
        "mean_of_cells": metric.headline,
        "difference": next((found for found in report.comparisons if found.metric == name), None),
    }


smile_command = table_command("smile", labelled_run_options, option("--weights", default=_WEIGHTS), compute=_compute)
