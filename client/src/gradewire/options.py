"""Types, defaults and checks of a call's options."""

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
"""The priority of a call that scores or compares."""


class PrepareOptions(TypedDict, total=False):
    """Keyword arguments of `prepare` and of all calls that score. None means the default.

    Attributes:
        preset: Preset for smile if `metrics` does not set one.
        synthetic: Source of smile's synthetic answers if `metrics` does not set it: "none", "inline" or "prepared".
        model: Encoder (NAME or NAME@DIGEST) for metrics that do not set one.
        deadline_s: Deadline in seconds; each method explains it.
    """

    preset: Preset | None
    synthetic: Synthetic | None
    model: str | None
    deadline_s: float | None


class CompareOptions(TypedDict, total=False):
    """Keyword arguments of calls that compare. None means the default.

    Attributes:
        judge: Judge (NAME or NAME@DIGEST) for a comparison that does not set one.
        priority: With "bulk", other requests go first while the server is busy. Streams are always "bulk".
        deadline_s: Deadline in seconds; each method explains it.
    """

    judge: str | None
    priority: Priority | None
    deadline_s: float | None


class ScoreOptions(PrepareOptions, total=False):
    """Keyword arguments of calls that score.

    Attributes:
        judge: Judge (NAME or NAME@DIGEST) for judge metrics that do not set one.
        priority: With "bulk", other requests go first while the server is busy. Streams are always "bulk".
        reference_set: Name of a set that `prepare` returned, for metrics with synthetic=prepared, corpus=prepared or
            idf=prepared.
    """

    judge: str | None
    priority: Priority | None
    reference_set: str | None


# An event loop's clock overflows with longer deadlines.
_MAX_DEADLINE_S = 1e9


def check_deadline(deadline_s: object) -> float:
    """Return a deadline in seconds.

    Raises:
        InvalidRequest: The deadline is not a positive finite number.
    """
    seconds = _as_float(deadline_s)
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"deadline_s={deadline_s!r}: give a positive, finite number of seconds")
    return min(seconds, _MAX_DEADLINE_S)


def check_most(name: str, most: object) -> None:
    """Check that a maximum is a whole number, 1 or more."""
    if not isinstance(most, Integral) or most < 1:
        raise InvalidRequest(f"{name}={most!r}: give a whole number, 1 or more")


def rows_of(name: str, rows: Any) -> Iterable[Any]:
    """Return an iterable of items, pairs or entries. A table's rows become mappings.

    Raises:
        InvalidRequest: The argument is not a list of rows; for example, it is a single row or a string.
    """
    if isinstance(rows, Mapping) and any(is_table(value) or hasattr(value, "features") for value in rows.values()):
        first = next(iter(rows))
        raise InvalidRequest(f"{name} is a {type(rows).__name__} of tables: give one table, {name}[{first!r}]")
    if isinstance(rows, str | bytes | Mapping | Item | ReferenceEntry | Pair):
        raise InvalidRequest(f"{name} is one {type(rows).__name__}: give a list of mappings, [{{…}}] for a single row")
    if is_table(rows):
        return table_rows(name, rows)
    if hasattr(type(rows), "collect"):
        raise InvalidRequest(f"{name} is a {type(rows).__name__}, which is not computed yet: give {name}.collect()")
    if not _is_iterable(rows):
        raise InvalidRequest(f"{name} is a {type(rows).__name__}: give a list of mappings or a table")
    return cast("Iterable[Any]", rows)


def check_metrics(metrics: object) -> None:
    """Check that `metrics` is a string, a metric or several metrics."""
    if not isinstance(metrics, str | Metric) and not _is_iterable(metrics):
        raise InvalidRequest(f"metrics is a {type(metrics).__name__}: give a name, an identifier, a metric or a list")


def check_comparison(by: object, judge: str | None) -> Compare:
    """Return the comparison, with the call's judge unless the comparison sets one.

    Raises:
        InvalidRequest: `by` is neither a comparison nor a comparison's identifier.
    """
    if isinstance(by, str):
        by = parse_comparison_line(by)
    if not isinstance(by, Compare):
        raise InvalidRequest(f"by is a {type(by).__name__}: give 'compare', an identifier, or a gradewire.Compare")
    check_text("judge", judge)
    return replace(by, model=judge) if judge and by.model is None else by


def lists_answers(by: Compare) -> bool:
    """Return True if the judge puts all answers to a question in order, as with `compare:listwise`."""
    return (by.mode or by.preset) == "listwise"


def check_names(method: str, options: Mapping[str, object], known: Any) -> None:
    """Raise TypeError, with Python's wording, for an option that the method (CLASS.METHOD) does not have."""
    if unknown := options.keys() - known.__optional_keys__:
        raise TypeError(f"{method}() got an unexpected keyword argument {min(unknown)!r}")


def check_priority(priority: object) -> None:
    """Raise InvalidRequest for an unknown priority."""
    if priority not in get_args(Priority):
        raise InvalidRequest(f"priority must be one of {', '.join(get_args(Priority))}, not {priority!r}")


def check_text(name: str, value: object) -> None:
    """Check that a value is a string or None."""
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is a {type(value).__name__}: give a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name}={value!r} has a lone surrogate: give valid text") from None


def check_generate(generate: object) -> SyntheticGeneration | None:
    """Return the judge that writes synthetic answers, with its prompt, or None if no answers are to be written.

    Raises:
        InvalidRequest: The value is not a bool, a judge's name or a SyntheticGeneration.
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
            raise InvalidRequest(f"generate.{name} is None: give a string ('' means the default)")
        check_text(f"generate.{name}", value)
    return chosen


def check_progress(progress: object) -> None:
    """Check that a value is a function or None."""
    if progress is not None and not callable(progress):
        raise InvalidRequest(f"progress is a {type(progress).__name__}: give a function")


def check_timeout(timeout_s: object) -> None:
    """Check that a timeout is a number of seconds or None."""
    if timeout_s is not None and math.isnan(_as_float(timeout_s)):
        raise InvalidRequest(f"timeout_s={timeout_s!r}: give a number of seconds, or None to wait without a limit")


def _as_float(value: object) -> float:
    """Return a float, or NaN if the value is not a number."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.inf


def _is_iterable(value: object) -> bool:
    # isinstance(…, Iterable) is false for objects that support only indexing.
    return isinstance(value, Iterable) or hasattr(type(value), "__getitem__")


USUAL_METRICS: Final = f"{Correctness.name},{Smile.name}"
"""Default metrics: the verdict, then the similarity behind it. `correctness` must be fitted to the encoder."""


def without_metrics(listed: ModelList, model: str | None) -> Mapping[str, str]:
    """Return the metrics that an encoder cannot compute, with the reasons; {} for an unknown encoder."""
    name = (model or "").partition("@")[0]
    for encoder in listed.models:
        if encoder.kind == "encoder" and (encoder.name == name if name else encoder.is_default):
            return encoder.without_metrics
    return {}


def usual_metrics(listed: ModelList, model: str | None) -> tuple[str, str]:
    """Return the default metrics that a server can compute with an encoder, and a note if only smile is left.

    If the encoder is missing, return both metrics, so that both report the missing encoder.
    """
    if not listed.metrics:
        return Smile.name, ""
    why = without_metrics(listed, model).get(Correctness.name, "")
    if all(metric.name != Correctness.name for metric in listed.metrics):
        why = "the server does not have this metric"
    return (
        (Smile.name, f"only {Smile.name} is scored, without {Correctness.name}: {why}") if why else (USUAL_METRICS, "")
    )


@dataclass(frozen=True, slots=True)
class CallOptions:
    """A call's unchecked options. If `metrics` is None, use the `USUAL_METRICS` that the server can compute."""

    metrics: MetricsLike | None
    defaults: MetricDefaults
    deadline_s: float | None = None
    priority: Priority = "normal"

    @classmethod
    def of(cls, method: str, metrics: MetricsLike | None, options: PrepareOptions) -> Self:
        """Collect the options that a caller passed to a client's method (CLASS.METHOD).

        Raises:
            TypeError: An option is unknown.
        """
        check_names(method, options, PrepareOptions if method.endswith(".prepare") else ScoreOptions)
        defaults: dict[str, Any] = {**options}
        deadline_s = defaults.pop("deadline_s", None)
        priority: Priority = defaults.pop("priority", None) or "normal"
        return cls(metrics, MetricDefaults(**defaults), deadline_s, priority)

    def choose(self) -> MetricChoice:
        """Return the metrics. The call's options fill in parameters that the metrics do not set.

        Raises:
            InvalidRequest: An option has a wrong type, or does not fit the metrics.
        """
        metrics = USUAL_METRICS if self.metrics is None else self.metrics
        check_metrics(metrics)
        check_priority(self.priority)
        for name in ("preset", "synthetic", "model", "judge", "reference_set"):
            check_text(name, getattr(self.defaults, name))
        return choose_metrics(metrics, self.defaults)
