"""Tables, notes and the HTML page of `gradewire agree`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire_cli.pages.agreement import write_report
from gradewire_cli.pages.agreement_input import ReportInput, ReportRow
from gradewire_cli.pages.page import today
from gradewire_cli.results.accuracy_tables import accuracy_headline, accuracy_intervals, accuracy_tables
from gradewire_cli.results.interval_notes import NamedEstimate, agreement_interval_notes, interval_notes
from gradewire_cli.results.summary import level_hint
from gradewire_cli.results.tables import (
    ALL_ROWS,
    CELLS_MEAN,
    SHOWN_PAIRS,
    TITLES,
    Cell,
    Table,
    Value,
    bare,
    cells_mean,
    count,
    differing,
    estimated,
    names_of,
    number,
    of_cells,
)
from gradewire_cli.rows.proposed_flags import proposals_of
from gradewire_stats.agreement.statistics import ALL_STATISTICS
from gradewire_stats.model_ranks import LEAST_MODELS, MOST_MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire_cli.agree.result import AgreementResult
    from gradewire_cli.results.accuracy_tables import People
    from gradewire_stats.agreement.report import AgreementReport, CellAgreement, MetricAgreement
    from gradewire_stats.agreement.rows import Level
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.annotators import AnnotatorAgreement, VerdictAgreement
    from gradewire_stats.bootstrap import Estimate
    from gradewire_stats.model_ranks import SystemTable


CORRELATIONS = (("kendall", "tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson"))


def agreement_tables(
    report: AgreementReport,
    statistics: Sequence[Statistic],
    levels: Sequence[Level],
    *,
    details: bool,
    intervals: bool,
) -> Iterator[Table]:
    """Yield a table for all rows, tables by level, and a table of paired differences.

    With several metrics, each level has a table for each statistic, with intervals if `intervals` is True. With a
    single metric or with `details`, each level has a table for each metric.
    """
    metrics = report.metrics
    yield from _one_metric(metrics[0], statistics) if len(metrics) == 1 else _all_rows(metrics, statistics)
    places = positions_by_level(metrics[0], levels)
    if len(metrics) > 1:
        for statistic in statistics:
            for title, chosen in places.items():
                yield _side_by_side(metrics, statistic, title, chosen, intervals=intervals)
    if details or len(metrics) == 1:
        for metric in metrics:
            yield from (_in_full(metric, statistics, title, chosen) for title, chosen in places.items())
    yield from _comparisons(report)


def positions_by_level(metric: MetricAgreement, levels: Sequence[Level]) -> dict[str, list[int]]:
    """Return the positions in `metric.cells` by each level's title, for example "data set and model".

    Omit the last cell, which contains all rows. If there is only one model or data set, use the level "cell"
    instead of the levels "dataset" and "model".
    """
    there = {cell.level for cell in metric.cells}
    wanted = set(levels)
    if wanted & {"dataset", "model"} and not there & {"dataset", "model"}:
        wanted.add("cell")
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(metric.cells[:-1]):
        if cell.level in wanted:
            places.setdefault(cell.level, []).append(place)
    titles = {"cell": _cell_columns(metric), "dataset": "data set", "model": "model", "group": "group"}
    return {titles[level]: chosen for level, chosen in places.items()}


def _cell_columns(metric: MetricAgreement) -> str:
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    named = {"data set": any(cell.dataset for cell in cells), "model": any(cell.model for cell in cells)}
    return " and ".join(name for name, is_named in named.items() if is_named)


def _one_metric(metric: MetricAgreement, statistics: Sequence[Statistic]) -> Iterator[Table]:
    every, cells = metric.cells[-1], _finest(metric)
    several = cells > 1
    yield Table(
        f"{metric.metric}: {every.rows} rows, {every.failed} failed",
        ["", ALL_ROWS, *([f"mean of {cells} cells"] if several else [])],
        [
            [
                TITLES[statistic],
                estimated(every.estimates[statistic]),
                *([cells_mean(metric.headline[statistic])] if several else []),
            ]
            for statistic in statistics
        ],
    )


def _all_rows(metrics: Sequence[MetricAgreement], statistics: Sequence[Statistic]) -> Iterator[Table]:
    heads = [TITLES[statistic] for statistic in statistics]
    yield Table(
        "All rows",
        ["metric", "rows", "failed", *heads],
        [_cell_values(metric.metric, metric.cells[-1], statistics) for metric in metrics],
    )
    if (cells := _finest(metrics[0])) > 1:
        yield Table(
            f"Mean of {cells} cells (data set and model), without cells where the statistic is undefined",
            ["metric", *heads],
            [[metric.metric, *(cells_mean(metric.headline[name]) for name in statistics)] for metric in metrics],
        )


def _side_by_side(
    metrics: Sequence[MetricAgreement], statistic: Statistic, title: str, chosen: Sequence[int], *, intervals: bool
) -> Table:
    written = estimated if intervals else bare
    return Table(
        f"{TITLES[statistic]} by {title}",
        ["metric", *names_of([metrics[0].cells[place] for place in chosen], between="\n")],
        [
            [metric.metric, *(written(metric.cells[place].estimates[statistic]) for place in chosen)]
            for metric in metrics
        ],
    )


def _in_full(metric: MetricAgreement, statistics: Sequence[Statistic], title: str, chosen: Sequence[int]) -> Table:
    cells = [metric.cells[place] for place in chosen]
    return Table(
        f"{metric.metric} by {title}",
        ["", "rows", "failed", *(TITLES[statistic] for statistic in statistics)],
        [_cell_values(name, cell, statistics) for name, cell in zip(names_of(cells), cells, strict=True)],
    )


def _comparisons(report: AgreementReport) -> Iterator[Table]:
    defined = [found for found in report.comparisons if not math.isnan(found.all_rows.value)]
    if not defined:
        return
    several = _finest(report.metrics[0]) > 1
    yield Table(
        "Paired differences, on the rows that both metrics scored",
        ["", "", "rows", ALL_ROWS, *([CELLS_MEAN] if several else [])],
        [
            [
                f"{found.metric} minus {found.baseline}",
                TITLES[found.statistic],
                count(found.rows),
                differing(found.all_rows),
                *([of_cells(differing(found.mean_of_cells), found.cells, found.cells_in_all)] if several else []),
            ]
            for found in defined
        ],
        heads=2,
    )


def _finest(metric: MetricAgreement) -> int:
    return sum(cell.level == "cell" for cell in metric.cells)


def _cell_values(name: str, cell: CellAgreement, statistics: Sequence[Statistic]) -> list[Cell]:
    figures = (estimated(cell.estimates[statistic]) for statistic in statistics)
    return [name, count(cell.rows), count(cell.failed), *figures]


def model_tables(tables: Sequence[SystemTable], people: People) -> Iterator[Table]:
    """Yield tables of the models' mean scores and ranks, and a table of system-level correlations."""
    for table in tables:
        of = f" of {table.dataset}" if table.dataset else ""
        rows: list[list[Cell]] = [[people.name, *_ranked(table.people)]]
        for line in table.lines:
            rows.append([line.metric, *_ranked(line.means)])
            # If the metric scored all rows, the first line already shows the annotators' means.
            if line.failed:
                rows.append([f"{people.name}, rows of {line.metric}", *_ranked(line.people)])
        title = f"Mean score by model{of} (rank)"
        if table.common_questions < table.questions:
            title += (
                f"; the models answered different questions (all of them {table.common_questions} of "
                f"{table.questions}), so ranks may not compare"
            )
        yield Table(title, ["", *table.models], rows)
    if len(tables) and len(tables[-1].models) >= LEAST_MODELS:
        several = len(tables) > 1
        fewest, most = (how(len(table.models) for table in tables) for how in (min, max))
        yield Table(
            f"System-level correlation with {people.several}: means of {_span(fewest, most)} models",
            ["metric", *(["data set"] if several else []), *(title for _, title in CORRELATIONS)],
            [
                [
                    line.metric,
                    *([table.dataset or "all rows"] if several else []),
                    *(estimated(getattr(line, name)) for name, _ in CORRELATIONS),
                ]
                for place in range(len(tables[-1].lines))
                for table in tables
                for line in [table.lines[place]]
            ],
            heads=1 + several,
        )


def _span(fewest: int, most: int) -> str:
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def system_notes(tables: Sequence[SystemTable], models: int) -> Iterator[str]:
    """Yield a note for each table that is missing because of too many or too few models."""
    if models > MOST_MODELS:
        yield f"no means by model and no system-level correlation: {models} models exceed the limit of {MOST_MODELS}"
    if tables and len(tables[-1].models) < LEAST_MODELS:
        there = len(tables[-1].models)
        yield f"no system-level rank correlation: it needs {LEAST_MODELS} models, but there are {there}"


def optional_tables(result: AgreementResult) -> Iterator[Table]:
    """Yield the tables by model. Only --all-tables shows these tables."""
    if result.accuracies is not None:
        yield from accuracy_tables(result.accuracies, result.people)
    yield from model_tables(result.systems, result.people)


def headline_by_model(result: AgreementResult) -> Iterator[Table]:
    """Yield the tables by model. They are always shown if an evaluator replaces annotators."""
    if result.accuracies is not None:
        yield from accuracy_headline(result.accuracies, result.people)
    if result.labelled.against is not None:
        yield from model_tables(result.systems, result.people)


def optional_intervals(result: AgreementResult) -> list[str]:
    """Return notes on the intervals in the optional tables, which have values for each model."""
    figures = list(_system_intervals(result.systems, result.people))
    if result.accuracies is not None:
        figures += accuracy_intervals(result.accuracies, result.people)
    return interval_notes(figures) if figures else []


def _system_intervals(tables: Sequence[SystemTable], people: People) -> Iterator[NamedEstimate]:
    for table in tables:
        for name, means in ((people.name, table.people), *((line.metric, line.means) for line in table.lines)):
            for model, mean in zip(table.models, means, strict=True):
                yield NamedEstimate(name, "mean by model", f"{table.dataset} {model}".strip(), mean)
        for line in table.lines:
            for name, title in CORRELATIONS:
                place = table.dataset or "all rows"
                yield NamedEstimate(line.metric, f"system-level {title}", place, getattr(line, name))


def _ranked(means: Sequence[Estimate]) -> Iterator[Value]:
    for mean in means:
        if math.isnan(mean.value):
            yield estimated(mean)
        else:
            yield estimated(mean).beside(str(1 + sum(other.value > mean.value for other in means)))


def metric_lines(result: AgreementResult, statistics: Sequence[Statistic]) -> Iterator[str]:
    """Yield each metric's identifier and failures, then undefined statistics and uncertain verdicts."""
    if result.labelled.against is not None:
        yield result.labelled.against.summary()
    for metric in result.report.metrics:
        yield result.labelled.tallies[metric.metric].summary(metric.metric)
    for metric in result.report.metrics:
        yield from _undefined_notes(metric, statistics)
    yield from abstention_lines(result)


def abstention_lines(result: AgreementResult) -> Iterator[str]:
    """Yield each metric's number of uncertain verdicts, and its accuracy without and with these verdicts."""
    for label in result.rows.verdicts:
        if (found := result.abstention(label)) is not None:
            yield (
                f"{label}: {found.uncertain} of {found.judged} verdicts are uncertain "
                f"({found.uncertain / found.judged:.1%}); accuracy: {number(found.accuracy_certain)} without them, "
                f"{number(found.accuracy)} with them"
            )
            if hint := level_hint(result.labelled.tallies[label]):
                yield f"{label}: {hint[0].lower()}{hint[1:]}"


def annotator_lines(annotators: AnnotatorAgreement | None, *, pairs: bool) -> Iterator[str]:
    """Yield a line on agreement among annotators, with each pair's kappa if `pairs` is True.

    Yield nothing if no row has several annotators.
    """
    if annotators is None:
        return
    alphas = ", ".join(f"{level} {estimated(alpha)}" for level, alpha in annotators.alpha.items())
    line = (
        f"annotators: {annotators.items} rows with at least two labels, from up to {annotators.annotators} annotators; "
        f"Krippendorff's alpha {alphas}"
    )
    if pairs:
        # Show kappa for the pairs with the most rows, then the number of remaining pairs.
        kappas = [
            f"{estimated(pair.kappa)} of annotators {pair.first} and {pair.second} ({pair.items} rows)"
            for pair in annotators.pairs[:SHOWN_PAIRS]
        ]
        more = len(annotators.pairs) - SHOWN_PAIRS
        line += f"; Cohen's kappa {', '.join(kappas) or 'for no pair'}{f' and {more} more' if more > 0 else ''}"
        figures = (*annotators.alpha.values(), *(pair.kappa for pair in annotators.pairs))
        if made := {each.resamples + each.undefined for each in figures if each.resamples}:
            line += f"; {max(made)} draws of rows"
    yield line


def verdict_lines(verdicts: Mapping[str, Sequence[VerdictAgreement]]) -> Iterator[str]:
    """Yield a line for each metric with verdicts: Cohen's kappa of the verdicts with each annotator."""
    for metric, annotators in verdicts.items():
        kappas = ", ".join(
            f"{estimated(found.kappa)} with annotator {found.annotator} ({found.items} rows)"
            for found in annotators[:SHOWN_PAIRS]
        )
        more = len(annotators) - SHOWN_PAIRS
        if kappas:
            yield f"{metric}: Cohen's kappa of the verdicts {kappas}{f' and {more} more' if more > 0 else ''}"


def _undefined_notes(metric: MetricAgreement, statistics: Sequence[Statistic]) -> Iterator[str]:
    cells = [cell for cell in metric.cells if cell.level == "cell"]
    counts = {statistic: sum(math.isnan(cell.estimates[statistic].value) for cell in cells) for statistic in statistics}
    # Skip statistics that are undefined in every cell, such as the accuracy of a metric without verdicts.
    listed = ", ".join(
        f"{TITLES[statistic]} in {count} of {len(cells)} cells"
        for statistic, count in counts.items()
        if 0 < count < len(cells)
    )
    if listed:
        yield f"{metric.metric}: the cells' mean omits undefined values: {listed}"


def write_page(path: Path, result: AgreementResult) -> None:
    """Write the HTML page; raise InputError on failure.

    The rows must have been collected with `keeps_rows`.
    """
    run, labelled = result.run, result.labelled
    page = ReportInput(
        folder=run.source.folder,
        source=run.source.short_name,
        created=today(),
        rows=[
            ReportRow(
                id=row.id,
                question=str(item.get("question", "")),
                references=tuple(map(str, item.get("references", ()))),
                prediction=str(item.get("prediction", "")),
                label=float(label),
                picture=row.picture,
                labels=row.human.annotations,
                dataset=row.dataset,
                model=row.model,
                group=row.group,
                flags=(*row.flags, *(f"{each.flag} proposed, because {each.reason}" for each in proposals_of(row))),
                classes=classes,
                results=output["scores"],
            )
            for (row, output), classes, label in zip(labelled.kept, labelled.classes(), result.rows.labels, strict=True)
            for item in [row.item or {}]
        ],
        judged=result.rows,
        agreement=result.report,
        unlabelled=labelled.unlabelled,
        unreadable=labelled.unreadable,
        annotators=result.annotators,
        classes=[*labelled.wrong.tables(), *labelled.proposal_tables()],
        notes=[
            *map(_sentence, agreement_interval_notes(result.report, ALL_STATISTICS)),
            f"Seed of the draws: {run.seed}.",
            *map(_sentence, abstention_lines(result)),
            *map(_sentence, verdict_lines(result.verdicts)),
            *map(_sentence, (*labelled.left_out(), *labelled.proposal_notes())),
        ],
    )
    write_report(path, page, quiet=run.quiet)


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."
