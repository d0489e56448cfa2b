"""Checks of the arguments that calls share: every wrong one is an InvalidRequest that names it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, cast, get_args

from gradewire._input.tables import is_table, table_rows
from gradewire.call_options import Priority
from gradewire.errors import InvalidRequest
from gradewire.items import Item
from gradewire.metric_types import Compare
from gradewire.metric_types.base import Metric
from gradewire.metric_types.line import parse_comparison_line
from gradewire.pairs.pair import Pair
from gradewire.preparation import ReferenceEntry, SyntheticGeneration

# Above it, seconds no longer fit into the clocks of event loops.
_MAX_DEADLINE_S = 1e9


def check_deadline(deadline_s: object) -> float:
    """The deadline, if it is one.

    Raises:
        InvalidRequest: It is no number, not positive, or not finite.
    """
    seconds = _as_float(deadline_s)
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"deadline_s={deadline_s!r}: give seconds, a number more than 0 and finite")
    return min(seconds, _MAX_DEADLINE_S)


def check_most(name: str, most: object) -> None:
    """Refuses what is no number of things that there may be at most."""
    if not isinstance(most, Integral) or most < 1:
        raise InvalidRequest(f"{name}={most!r}: give a whole number, 1 or more")


def rows_of(name: str, rows: Any) -> Iterable[Any]:
    """What is given as items or entries, row by row; a table as mappings by column.

    Raises:
        InvalidRequest: It cannot be read row by row, or would be read wrongly so: a single row, a text.
    """
    if isinstance(rows, Mapping) and any(is_table(value) or hasattr(value, "features") for value in rows.values()):
        first = next(iter(rows))
        raise InvalidRequest(f"{name} is a {type(rows).__name__} of tables: give one of them, {name}[{first!r}]")
    if isinstance(rows, str | bytes | Mapping | Item | ReferenceEntry | Pair):
        raise InvalidRequest(f"{name} is one {type(rows).__name__}: give a list of mappings, [{{…}}] for a single one")
    if is_table(rows):
        return table_rows(name, rows)
    if hasattr(type(rows), "collect"):
        raise InvalidRequest(f"{name} is a {type(rows).__name__}, which has not been computed: give {name}.collect()")
    if not _is_iterable(rows):
        raise InvalidRequest(f"{name} is a {type(rows).__name__}: give a list of mappings or a table")
    return cast("Iterable[Any]", rows)


def check_metrics(metrics: object) -> None:
    """Refuses what is neither a text nor a metric nor several."""
    if not isinstance(metrics, str | Metric) and not _is_iterable(metrics):
        raise InvalidRequest(f"metrics is a {type(metrics).__name__}: give a name, a line, a metric or several")


def check_comparison(by: object, judge: str | None) -> Compare:
    """How pairs are compared, with the call's judge where it says none itself.

    Raises:
        InvalidRequest: It is neither a comparison nor the line of one.
    """
    if isinstance(by, str):
        by = parse_comparison_line(by)
    if not isinstance(by, Compare):
        raise InvalidRequest(f"by is a {type(by).__name__}: give 'compare', a line of it, or a gradewire.Compare")
    check_text("judge", judge)
    return replace(by, model=judge) if judge and by.model is None else by


def check_priority(priority: object) -> None:
    """Refuses what is no priority."""
    if priority not in get_args(Priority):
        raise InvalidRequest(f"priority must be one of {', '.join(get_args(Priority))}, not {priority!r}")


def check_text(name: str, value: object) -> None:
    """Refuses what is neither a text nor None."""
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is a {type(value).__name__}: give a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name}={value!r} holds a lone surrogate: give text") from None


def check_generate(generate: object) -> SyntheticGeneration | None:
    """Who writes synthetic answers; None where nobody is to.

    Raises:
        InvalidRequest: It is neither yes nor no, nor a judge, nor a SyntheticGeneration.
    """
    if isinstance(generate, bool):
        return SyntheticGeneration() if generate else None
    chosen = SyntheticGeneration(judge=generate) if isinstance(generate, str) else generate
    if not isinstance(chosen, SyntheticGeneration):
        raise InvalidRequest(
            f"generate is a {type(generate).__name__}: give True, the name of a judge, or a SyntheticGeneration"
        )
    for name in ("judge", "prompt"):
        value = getattr(chosen, name)
        if value is None:
            raise InvalidRequest(f"generate.{name} is None: give a string, '' for the default")
        check_text(f"generate.{name}", value)
    return chosen


def check_progress(progress: object) -> None:
    """Refuses what cannot be called."""
    if progress is not None and not callable(progress):
        raise InvalidRequest(f"progress is a {type(progress).__name__}: give a function")


def check_timeout(timeout_s: object) -> None:
    """Refuses what is neither a time nor None."""
    if timeout_s is not None and math.isnan(_as_float(timeout_s)):
        raise InvalidRequest(f"timeout_s={timeout_s!r}: give seconds, or None to wait as long as it takes")


def _as_float(value: object) -> float:
    """NaN for what is no number."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.inf


def _is_iterable(value: object) -> bool:
    # Not isinstance(…, Iterable): that misses what is read by index only.
    return isinstance(value, Iterable) or hasattr(type(value), "__getitem__")
