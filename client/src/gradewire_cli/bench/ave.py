"""`gradewire bench ave`: measure evaluators' alignment, consistency and generalization on the AVE benchmark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click
import numpy as np

from gradewire_cli.bench.ave_samples import PARTS, AveFile, ave_scores, write_items
from gradewire_cli.bench.paper_tables import TableCall, TableResult, described_tallies, table_command
from gradewire_cli.options.common import OUTPUT_FILE, choice_option
from gradewire_cli.options.help import option
from gradewire_cli.results.interval_notes import NamedEstimate
from gradewire_cli.results.tables import Table, count, differing, estimated, measured
from gradewire_cli.scoring.labelled_rows import label_named
from gradewire_cli.scoring.labelled_run import RESAMPLES, described_draws, draw_options, labelled_run_of
from gradewire_cli.scoring.plan import scoring_options
from gradewire_stats.agreement.ranks import RANK_DRAWS
from gradewire_stats.ave import AveDifferences, AveOptions, AveProperties, AveRows, ave_differences, ave_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gradewire_cli.results.tallies import MetricTally

_NO_DATASET = "(none)"
_SHOWN_DATASETS = 20
_NAME_CHARACTERS = 40


def _compute(call: TableCall) -> TableResult | None:
    options, baseline = call.options, call.options["baseline"]
    # The input options apply only to the sample file.
    run = labelled_run_of({**options, "columns": (), "where": (), "labels": None, "without_flags": ()})
    where = call.source.options.where
    file = AveFile.read(call.source.records(), call.columns, where=where, half=options["half"])
    if options["items"] is not None:
        write_items(options["items"], file.samples)
        click.echo(f"wrote the items of {len(file.samples)} samples to {options['items']}", err=True)
        return None

    def baseline_among(labels: Sequence[str]) -> str | None:
        return None if baseline is None else label_named(labels, baseline, "--baseline")

    by_evaluator, labelled = ave_scores(file, run, options["merge"], call.transport, baseline_among)
    left_open = AveOptions(
        log_base=options["log_base"],
        variance=options["variance"],
        dataset_alignment="pooled" if options["dataset_alignment"] == "pooled" else "mean_of_parts",
    )
    found = {label: ave_properties(rows, left_open, **run.draws) for label, rows in by_evaluator.items()}
    baseline = baseline_among(list(found))
    gains = {
        label: ave_differences(rows, by_evaluator[baseline], left_open, **run.draws)
        for label, rows in by_evaluator.items()
        if baseline is not None and label != baseline
    }
    chosen = {name: options[name] for name in ("merge", "variance", "log_base", "dataset_alignment")}
    values = {column: sorted(allowed) for column, allowed in where.items()}
    headline, *differences = _headline(found, gains, baseline)
    return TableResult(
        tables=[headline, _by_dataset(found), *differences],
        headline=[headline, *differences],
        notes=list(_notes(by_evaluator, labelled.tallies, found)),
        intervals=_intervals(found, gains, baseline),
        left_out=file.sentences(),
        document={
            "file": ", ".join(options["files"]),
            "half": options["half"],
            "where": list(options["where"]),
            "samples": len(file.chosen),
            "left_out": dict(file.left_out.counts),
            "options": chosen,
            "bootstrap": described_draws(min(run.resamples, RANK_DRAWS), run.seed, unit="question"),
            "evaluators": found,
            "baseline": options["baseline"],
            "differences": gains,
            "metrics": described_tallies(labelled.tallies),
        },
        parameters={**chosen, "half": options["half"], "where": values},
        rows=len(file.chosen),
        tallies=labelled.tallies,
        server_version=labelled.server_version,
        run=run,
    )


def _headline(
    found: Mapping[str, AveProperties], gains: Mapping[str, AveDifferences], baseline: str | None
) -> Iterator[Table]:
    yield Table(
        "Alignment with annotators (Spearman by part, and the parts' mean), consistency and generalization",
        ["evaluator", *(f"part {part}" for part in PARTS), "alignment", "consistency", "generalization"],
        [
            [
                label,
                *(estimated(part) for part in each.parts),
                *(estimated(value) for value in (each.alignment, each.consistency, each.generalization)),
            ]
            for label, each in found.items()
        ],
    )
    if gains:
        yield Table(
            f"Difference from {baseline}, on samples that both evaluators scored",
            ["evaluator", *(f"part {part}" for part in PARTS), "alignment", "consistency", "consistency / spread"],
            [
                [
                    label,
                    *(differing(part) for part in gain.parts),
                    *(differing(each) for each in (gain.alignment, gain.consistency, gain.relative_consistency)),
                ]
                for label, gain in gains.items()
            ],
        )


def _by_dataset(found: Mapping[str, AveProperties]) -> Table:
    datasets = list(dict.fromkeys(name for each in found.values() for name in each.datasets))[:_SHOWN_DATASETS]
    return Table(
        "Alignment by data set, consistency of scores divided by their spread, and numbers of samples",
        ["evaluator", *map(_named, datasets), "consistency / spread", "samples", "failed by part"],
        [
            [
                label,
                *(measured(each.datasets.get(name, math.nan)) for name in datasets),
                estimated(each.relative_consistency),
                count(each.samples),
                " ".join(map(str, each.failed)),
            ]
            for label, each in found.items()
        ],
    )


def _notes(
    by_evaluator: Mapping[str, AveRows], tallies: Mapping[str, MetricTally], found: Mapping[str, AveProperties]
) -> Iterator[str]:
    yield from (tally.summary(label) for label, tally in tallies.items())
    every = next(iter(by_evaluator.values()))
    if len(every.labels) and every.labels.min() == every.labels.max():
        yield f"no alignment, because all {len(every.labels)} samples have the grade {every.labels[0]:g}"
    elif len(set(every.datasets)) < 2:
        yield "no generalization, because it needs at least two data sets (column dataset)"
    for label, each in found.items():
        for part, why in _undefined(by_evaluator[label], each):
            yield f"{label} has no value for part {part}: {why}"
        silent = [name for name, aligned in each.datasets.items() if math.isnan(aligned)]
        if silent and not math.isnan(each.alignment.value) and len(each.datasets) > 1:
            others = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
            why = f"all scores or grades of a part are equal in {_named(silent[0])}{others}"
            yield f"{label} has no generalization: {why}"
    if (further := len(set(every.datasets)) - _SHOWN_DATASETS) > 0:
        yield f"{further} more data sets are only in the --json file"


def _named(dataset: str) -> str:
    name = dataset or _NO_DATASET
    return name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}…"


def _undefined(rows: AveRows, found: AveProperties) -> Iterator[tuple[int, str]]:
    varied = len(rows.labels) and rows.labels.min() < rows.labels.max()
    for place, part in enumerate(PARTS):
        scored = rows.scores[~np.isnan(rows.scores[:, place]), place]
        if not len(scored):
            yield part, "no sample has a score"
        elif varied and math.isnan(found.parts[place].value):
            equal = scored.min() == scored.max()
            yield part, f"all scores are {scored[0]:.4g}" if equal else "all scored samples have the same grade"


def _intervals(
    found: Mapping[str, AveProperties], gains: Mapping[str, AveDifferences], baseline: str | None
) -> Iterator[NamedEstimate]:
    for label, each in found.items():
        for part, estimate in enumerate(each.parts, 1):
            yield NamedEstimate(label, "Spearman", f"part {part}", estimate)
        for name in ("alignment", "consistency", "generalization"):
            if math.isfinite((estimate := getattr(each, name)).value):
                yield NamedEstimate(label, name, "all samples", estimate)
    for label, gain in gains.items():
        for name in ("alignment", "consistency"):
            if math.isfinite((estimate := getattr(gain, name)).value):
                yield NamedEstimate(f"{label} minus {baseline}", name, "all samples", estimate)


ave_command = table_command(
    "ave",
    scoring_options,
    option("--where", multiple=True),
    option("--half", type=click.Choice(("a", "b"))),
    option("--scores", type=OUTPUT_FILE, multiple=True),
    option("--baseline"),
    choice_option("--merge", among=("mean", "median", "max")),
    choice_option("--variance", among=("population", "sample")),
    option("--log-base", type=click.FloatRange(min=1, min_open=True), default=2.0),
    choice_option("--dataset-alignment", among=("mean-of-parts", "pooled")),
    option("--items", type=OUTPUT_FILE),
    draw_options(resamples=RESAMPLES),
    compute=_compute,
    has_headline=True,
)
