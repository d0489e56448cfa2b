"""Options of one call: their types, their defaults (the usual metrics), and the checks of arguments."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Final, Literal, Self, TypeAlias, TypedDict, cast, get_args

from gradewire._rows import is_table, table_rows
from gradewire.errors import InvalidRequest
from gradewire.items import Item
from gradewire.metrics import Compare, Correctness, Preset, Smile, Synthetic
from gradewire.metrics.base import Metric
from gradewire.metrics.choice import MetricChoice, MetricDefaults, MetricsLike, choose_metrics, parse_comparison_line
from gradewire.pairs import Pair
from gradewire.references import ReferenceEntry, SyntheticGeneration
from gradewire.results import ModelList

Priority: TypeAlias = Literal["normal", "bulk"]
"""The priority of a call that scores."""


class PrepareOptions(TypedDict, total=False):
    """Keyword arguments that all calls take; None says no more than leaving one out.

    Attributes:
        preset: For smile where `metrics` names none.
        synthetic: none, inline or prepared; for smile where `metrics` does not say.
        model: Encoder, NAME or NAME@DIGEST, for metrics that do not say their own.
        deadline_s: Seconds; the call says of what.
    """

    preset: Preset | None
    synthetic: Synthetic | None
    model: str | None
    deadline_s: float | None


class CompareOptions(TypedDict, total=False):
    """Keyword arguments of calls that compare; None says no more than leaving one out.

    Attributes:
        judge: NAME or NAME@DIGEST, for a comparison that does not say its own model.
        priority: As in `ScoreOptions`; streams are always "bulk".
        deadline_s: Seconds; the call says of what.
    """

    judge: str | None
    priority: Priority | None
    deadline_s: float | None


class ScoreOptions(PrepareOptions, total=False):
    """Keyword arguments of calls that score: those of all calls, and three more.

    Attributes:
        judge: As `model`, for metrics that ask a judge.
        priority: "bulk" lets the requests of others go first where a server has more work than it can do at once;
            streams always do.
        reference_set: What `prepare` returned, for metrics with synthetic, corpus or idf = prepared.
    """

    judge: str | None
    priority: Priority | None
    reference_set: str | None


# Above it, seconds no longer fit into the clocks of event loops.
_MAX_DEADLINE_S = 1e9


def check_deadline(deadline_s: object) -> float:
    """Return the deadline, if it is one.

    Raises:
        InvalidRequest: It is no number, not positive, or not finite.
    """
    seconds = _as_float(deadline_s)
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"deadline_s={deadline_s!r}: give seconds, a number more than 0 and finite")
    return min(seconds, _MAX_DEADLINE_S)


def check_most(name: str, most: object) -> None:
    """Refuse what is no number of things that there may be at most."""
    if not isinstance(most, Integral) or most < 1:
        raise InvalidRequest(f"{name}={most!r}: give a whole number, 1 or more")


def rows_of(name: str, rows: Any) -> Iterable[Any]:
    """Return what is given as items or entries, row by row; a table as mappings by column.

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
    """Refuse what is neither a text nor a metric nor several."""
    if not isinstance(metrics, str | Metric) and not _is_iterable(metrics):
        raise InvalidRequest(f"metrics is a {type(metrics).__name__}: give a name, a line, a metric or several")


def check_comparison(by: object, judge: str | None) -> Compare:
    """Return the comparison that is asked for, with the call's judge where it names none itself.

    Raises:
        InvalidRequest: It is neither a comparison nor the line of one.
    """
    if isinstance(by, str):
        by = parse_comparison_line(by)
    if not isinstance(by, Compare):
        raise InvalidRequest(f"by is a {type(by).__name__}: give 'compare', a line of it, or a gradewire.Compare")
    check_text("judge", judge)
    return replace(by, model=judge) if judge and by.model is None else by


def check_names(method: str, options: Mapping[str, object], known: Any) -> None:
    """Raise TypeError, as Python does, for an option that a method, CLASS.METHOD, does not have."""
    if unknown := options.keys() - known.__optional_keys__:
        raise TypeError(f"{method}() got an unexpected keyword argument {min(unknown)!r}")


def check_priority(priority: object) -> None:
    """Refuse what is no priority."""
    if priority not in get_args(Priority):
        raise InvalidRequest(f"priority must be one of {', '.join(get_args(Priority))}, not {priority!r}")


def check_text(name: str, value: object) -> None:
    """Refuse what is neither a text nor None."""
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is a {type(value).__name__}: give a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name}={value!r} holds a lone surrogate: give text") from None


def check_generate(generate: object) -> SyntheticGeneration | None:
    """Return the writer of synthetic answers; None where none are wanted.

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
    """Refuse what cannot be called."""
    if progress is not None and not callable(progress):
        raise InvalidRequest(f"progress is a {type(progress).__name__}: give a function")


def check_timeout(timeout_s: object) -> None:
    """Refuse what is neither a time nor None."""
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


USUAL_METRICS: Final = f"{Smile.name},{Correctness.name}"
"""Both cost about what the first one does; `correctness` needs an encoder that has a fit."""


def without_metrics(listed: ModelList, model: str | None) -> Mapping[str, str]:
    """Return the metrics that an encoder as it is built cannot compute, and why; none of an unknown encoder."""
    name = (model or "").partition("@")[0]
    for encoder in listed.models:
        if encoder.kind == "encoder" and (encoder.name == name if name else encoder.is_default):
            return encoder.without_metrics
    return {}


def usual_metrics(listed: ModelList, model: str | None) -> tuple[str, str]:
    """Return the usual metrics that a server can compute with an encoder, and a remark where smile stands alone.

    Where the encoder itself is missing both say so, and nothing is left out.
    """
    if not listed.metrics:
        return Smile.name, ""
    why = without_metrics(listed, model).get(Correctness.name, "")
    if all(metric.name != Correctness.name for metric in listed.metrics):
        why = "the server does not have it"
    return (
        (Smile.name, f"{Correctness.name} is left out, {Smile.name} is scored alone: {why}")
        if why
        else (USUAL_METRICS, "")
    )


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The options of one call, not checked yet; metrics=None: those of `USUAL_METRICS` that the server can compute."""

    metrics: MetricsLike | None
    defaults: MetricDefaults
    deadline_s: float | None = None
    priority: Priority = "normal"

    @classmethod
    def of(cls, method: str, metrics: MetricsLike | None, options: PrepareOptions) -> Self:
        """Return the options of a call of a client's method, CLASS.METHOD.

        Raises:
            TypeError: The method has no such option; said as Python says it.
        """
        check_names(method, options, PrepareOptions if method.endswith(".prepare") else ScoreOptions)
        said: dict[str, Any] = {**options}
        deadline_s = said.pop("deadline_s", None)
        priority: Priority = said.pop("priority", None) or "normal"
        return cls(metrics, MetricDefaults(**said), deadline_s, priority)

    def choose(self) -> MetricChoice:
        """Return the metrics, with what the call says for all of them.

        Raises:
            InvalidRequest: An option is of a wrong type, or does not fit the metrics.
        """
        metrics = USUAL_METRICS if self.metrics is None else self.metrics
        check_metrics(metrics)
        check_priority(self.priority)
        for name in ("preset", "synthetic", "model", "judge", "reference_set"):
            check_text(name, getattr(self.defaults, name))
        return choose_metrics(metrics, self.defaults)
