"""Write notes on intervals: the number of draws, undefined draws, and values without an interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, get_args

from gradewire_cli.results.tables import ALL_ROWS, CELLS_MEAN, TITLES, names_of
from gradewire_stats.agreement.rows import Level
from gradewire_stats.agreement.statistics import ALL_STATISTICS, Statistic
from gradewire_stats.bootstrap import LEAST_QUESTIONS, MOST_UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gradewire_stats.agreement.report import AgreementReport
    from gradewire_stats.agreement.statistics import Statistic
    from gradewire_stats.bootstrap import Estimate

QUESTIONS = "questions"
_APART = "; use --map question_id=COLUMN to tell questions apart"
_UNDEFINED = "no interval and no p value, because the statistic is undefined in more than half of the draws"
_SHOWN_PLACES = 6
_PLACE_CHARACTERS = 80


class NamedEstimate(NamedTuple):
    """An estimate with its name (a metric, a metric pair or an evaluator), its statistic, and its rows."""

    metric: str
    statistic: str
    cell: str
    estimate: Estimate


def interval_notes(
    estimates: Iterable[NamedEstimate], order: Iterable[str] = (), *, unit: str = QUESTIONS
) -> list[str]:
    """Return notes on the estimates' bootstrap draws, missing intervals and undefined draws.

    Statistics in `order` come first. `unit` is the plural of what a draw takes.
    """
    shown = list(estimates)
    by_statistic: dict[str, list[Estimate]] = {name: [] for name in order}
    for named in shown:
        by_statistic.setdefault(named.statistic, []).append(named.estimate)
    return [draws_line(by_statistic, unit), *without_interval(shown, unit), *undefined_draws(shown)]


def agreement_interval_notes(
    report: AgreementReport, statistics: Sequence[Statistic], *, levels: Collection[Level] = get_args(Level)
) -> list[str]:
    """Return `interval_notes` for a report's statistics, over all rows and at the given levels."""
    estimates = (
        NamedEstimate(who, TITLES[name], cell, each) for who, name, cell, each in _estimates(report, statistics, levels)
    )
    return interval_notes(estimates, TITLES.values())


def draws_by_statistic(report: AgreementReport) -> dict[Statistic, list[int]]:
    """Return the distinct numbers of draws for each statistic's intervals, in ascending order."""
    made: dict[Statistic, set[int]] = {}
    for _, name, _, each in _estimates(report, ALL_STATISTICS, get_args(Level)):
        if each.resamples:
            made.setdefault(name, set()).add(each.resamples + each.undefined)
    return {name: sorted(counts) for name, counts in made.items()}


def _estimates(
    report: AgreementReport, statistics: Sequence[Statistic], levels: Collection[Level]
) -> Iterator[tuple[str, Statistic, str, Estimate]]:
    """Yield (metric or metric pair, statistic, rows, estimate) for every estimate in a report."""
    several = sum(cell.level == "cell" for cell in report.metrics[0].cells) > 1
    for metric in report.metrics:
        every = metric.cells[-1]
        places = [
            (name, cell.estimates)
            for name, cell in zip(names_of(metric.cells), metric.cells, strict=True)
            if cell.level in levels or cell is every
        ]
        for place, estimates in [*places, *([(CELLS_MEAN, metric.headline)] if several else [])]:
            yield from ((metric.metric, name, place, estimates[name]) for name in statistics if name in estimates)
    for found in report.comparisons:
        pair = f"{found.metric} minus {found.baseline}"
        yield pair, found.statistic, ALL_ROWS, found.all_rows
        if several:
            yield pair, found.statistic, CELLS_MEAN, found.mean_of_cells


def draws_line(estimates: Mapping[str, Iterable[Estimate]], unit: str = QUESTIONS) -> str:
    """Return one line that states the number of draws for each statistic."""
    by_count: dict[str, list[str]] = {}
    for name, found in estimates.items():
        if made := {each.resamples + each.undefined for each in found if each.resamples}:
            few, many = min(made), max(made)
            by_count.setdefault(f"{many}" if few == many else f"{few} to {many}", []).append(name)
    if not by_count:
        return "intervals: none"
    listed = "; ".join(f"{count} for {', '.join(names)}" for count, names in by_count.items())
    return f"intervals: draws of {'whole ' if unit == QUESTIONS else ''}{unit}, {listed}"


def without_interval(estimates: Iterable[NamedEstimate], unit: str = QUESTIONS) -> Iterator[str]:
    """Yield a sentence for each reason why values have no interval, and name the rows of these values.

    The sentence names metrics or statistics only if other metrics or statistics have an interval over the same rows.
    """
    defined = [named for named in estimates if not math.isnan(named.estimate.value)]
    few = {named for named in defined if named.estimate.bare and named.estimate.questions < LEAST_QUESTIONS}
    undefined = {named for named in defined if named.estimate.bare} - few
    too_few = (
        f"no interval and no p value, because there are fewer than {LEAST_QUESTIONS} {unit} (each additional data set "
        f"needs one more{_APART if unit == QUESTIONS else ''})"
    )
    for why, bare in ((too_few, few), (_UNDEFINED, undefined)):
        if bare:
            yield f"{why}: {_places(defined, bare)}"


def _places(defined: Sequence[NamedEstimate], bare: set[NamedEstimate]) -> str:
    others = {(each.statistic, each.cell) for each in defined if each not in bare}
    # Each place's statistics, and each metric's statistics by place. True means that the note names the statistic.
    shared: dict[str, dict[str, bool]] = {}
    own: dict[tuple[str, str], dict[str, bool]] = {}
    for each in defined:
        alone = (each.statistic, each.cell) not in others
        shared.setdefault(each.cell, {})[each.statistic] = alone
        own.setdefault((each.metric, each.cell), {})[each.statistic] = each in bare and not alone
    places = [_with_marked(_cut(place), found) for place, found in shared.items() if any(found.values())]
    names = [
        _with_marked(f"{_cut(who)}, {_cut(place)}", found) for (who, place), found in own.items() if any(found.values())
    ]
    return "; ".join(_first_and_more(listed) for listed in (places, names) if listed)


def _with_marked(name: str, statistics: Mapping[str, bool]) -> str:
    marked = [statistic for statistic, is_marked in statistics.items() if is_marked]
    return name if len(marked) == len(statistics) else f"{name} ({', '.join(marked)})"


def undefined_draws(estimates: Iterable[NamedEstimate]) -> Iterator[str]:
    """Yield a sentence on intervals with many undefined draws."""
    missing = [
        f"{_cut(f'{who}, {statistic} of {place}')} ({each.undefined} of {each.resamples + each.undefined})"
        for who, statistic, place, each in estimates
        if each.resamples and each.undefined > MOST_UNDEFINED * (each.resamples + each.undefined)
    ]
    if missing:
        yield f"intervals leave out the draws in which the statistic is undefined: {_first_and_more(missing)}"


def _cut(name: str) -> str:
    return name if len(name) <= _PLACE_CHARACTERS else f"{name[: _PLACE_CHARACTERS - 1]}…"


def _first_and_more(places: Sequence[str]) -> str:
    more = f" and {len(places) - _SHOWN_PLACES} more" if len(places) > _SHOWN_PLACES else ""
    return "; ".join(places[:_SHOWN_PLACES]) + more
