"""What stands behind the intervals: how many draws, where there is none, and what draws leave undefined."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.agreement.estimates import LEAST_QUESTIONS, MOST_UNDEFINED
from gradewire.agreement.point import ALL_STATISTICS
from gradewire.cli.agree_text import ALL_ROWS, CELLS_MEAN, TITLES, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gradewire.agreement import AgreementReport, Estimate
    from gradewire.agreement.point import Statistic

# A file has as many cells as it likes.
_SHOWN_PLACES = 6
_PLACE_CHARACTERS = 80


def interval_lines(report: AgreementReport, statistics: Sequence[Statistic]) -> Iterator[str]:
    """How many draws made the intervals of these statistics, where there is none, and where many draws are missing."""
    figures = list(_figures(report, statistics))
    yield draws_line({TITLES[name]: [each for _, other, _, each in figures if other == name] for name in TITLES})
    yield from without_interval((f"{TITLES[name]} of {place}", each) for _, name, place, each in figures)
    yield from undefined_draws((f"{who}, {TITLES[name]} of {place}", each) for who, name, place, each in figures)


def draws_by_statistic(report: AgreementReport) -> dict[Statistic, list[int]]:
    """The different numbers of draws that were made for intervals of each statistic, ascending."""
    made: dict[Statistic, set[int]] = {}
    for _, name, _, each in _figures(report, ALL_STATISTICS):
        if each.resamples:
            made.setdefault(name, set()).add(each.resamples + each.undefined)
    return {name: sorted(counts) for name, counts in made.items()}


def _figures(
    report: AgreementReport, statistics: Sequence[Statistic]
) -> Iterator[tuple[str, Statistic, str, Estimate]]:
    """Everything with an interval: whose it is, of which statistic, where."""
    several = sum(cell.level == "cell" for cell in report.metrics[0].cells) > 1
    for metric in report.metrics:
        places = [(name, cell.estimates) for name, cell in zip(names_of(metric.cells), metric.cells, strict=True)]
        for place, estimates in [*places, *([(CELLS_MEAN, metric.headline)] if several else [])]:
            yield from ((metric.metric, name, place, estimates[name]) for name in statistics if name in estimates)
    for found in report.comparisons:
        pair = f"{found.metric} minus {found.baseline}"
        yield pair, found.statistic, ALL_ROWS, found.all_rows
        if several:
            yield pair, found.statistic, CELLS_MEAN, found.mean_of_cells


def draws_line(estimates: Mapping[str, Iterable[Estimate]]) -> str:
    """How many draws were made for which statistic, as a sentence; taken from the figures themselves.

    Args:
        estimates: Figures by the name of the statistic.
    """
    by_count: dict[str, list[str]] = {}
    for name, found in estimates.items():
        if made := {each.resamples + each.undefined for each in found if each.resamples}:
            few, many = min(made), max(made)
            by_count.setdefault(f"{many}" if few == many else f"{few} to {many}", []).append(name)
    if not by_count:
        return "intervals: none"
    listed = "; ".join(f"{count} for {', '.join(names)}" for count, names in by_count.items())
    return f"intervals: draws of whole questions, {listed}"


def without_interval(figures: Iterable[tuple[str, Estimate]]) -> Iterator[str]:
    """Says which figures have a value but no interval, and why; `figures` are named by statistic and place."""
    bare = [name for name, each in figures if not math.isnan(each.value) and math.isnan(each.low)]
    if bare:
        yield (
            f"no interval and no p where a figure rests on fewer than {LEAST_QUESTIONS} questions (and one more for "
            "each further data set; --map question_id=COLUMN tells questions apart), or more than half of the draws "
            f"leave it undefined: {listed_places(bare)}"
        )


def undefined_draws(figures: Iterable[tuple[str, Estimate]]) -> Iterator[str]:
    """Says of which intervals many draws are missing; `figures` are named by statistic and place."""
    missing = [
        f"{name} ({each.undefined} of {each.resamples + each.undefined})"
        for name, each in figures
        if each.resamples and each.undefined > MOST_UNDEFINED * (each.resamples + each.undefined)
    ]
    if missing:
        yield f"draws that leave the figure undefined, which its interval leaves out: {listed_places(missing)}"


def _cut(name: str) -> str:
    return name if len(name) <= _PLACE_CHARACTERS else f"{name[: _PLACE_CHARACTERS - 1]}…"


def listed_places(places: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    names = [_cut(name) for name in dict.fromkeys(places)]
    more = f" and {len(names) - _SHOWN_PLACES} more" if len(names) > _SHOWN_PLACES else ""
    return "; ".join(names[:_SHOWN_PLACES]) + more
