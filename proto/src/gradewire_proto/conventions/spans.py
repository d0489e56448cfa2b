"""What rooms that know nothing of OpenTelemetry say of their work: the current span, if the work is traced at all."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol, Self, TypeAlias

from gradewire_proto.conventions.telemetry_names import SHARED_BY

Value: TypeAlias = str | int | float | bool | Sequence[str]


class Span(AbstractContextManager["Span"], Protocol):
    """A piece of work that is being traced; as a context it is the current span, and ends with it."""

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, calls_out: bool = False, start_ns: int = 0
    ) -> Self:
        """Begins a part of it.

        Args:
            name: Of the part.
            attributes: Known from the start.
            calls_out: Whether another process does it.
            start_ns: When it began, nanoseconds since 1970; 0: now.
        """

    def set(self, name: str, value: Value) -> None:
        """Sets an attribute."""

    def link(self, other: "Span") -> None:
        """Refers to another span, of whatever trace."""

    def fail(self, error_type: str) -> None:
        """Says that it failed."""

    def evaluated(self, metric: str, index: int | None, result: object) -> None:
        """Takes a result of the call that it belongs to."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """W3C trace context for a call that is made within it: names and values of headers."""

    def end(self, end_ns: int = 0) -> None:
        """Ends it, at nanoseconds since 1970; 0: now."""


CURRENT: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""Every task that a call starts inherits it."""
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


def current_span() -> Span | None:
    """The span that the asking task works in; None where the work is not traced, as nearly always."""
    return CURRENT.get()


def spanned(name: str, attributes: Mapping[str, Value] | None = None) -> AbstractContextManager[Span | None]:
    """A context for a part of the current span's work; gives None where there is none."""
    span = CURRENT.get()
    return _NOTHING if span is None else span.child(name, attributes)


def tell_result(metric: str, index: int | None, result: object) -> None:
    """Tells the current call's trace of a result."""
    span = CURRENT.get()
    if span is not None:
        span.evaluated(metric, index, result)


def tell_batch(
    name: str, waiting: Iterable[Span | None], *, start_ns: int, end_ns: int, attributes: Mapping[str, Value]
) -> None:
    """Tells of work that was done at once for all who wait for it.

    It is a part of the first of them; the others and it refer to each other, for it would count several times as a part
    of each.

    Args:
        name: Of the work.
        waiting: Spans of those who wait, None for one that is not traced.
        start_ns: When it began, nanoseconds since 1970.
        end_ns: When it ended, nanoseconds since 1970.
        attributes: Of the work.
    """
    traced = list(dict.fromkeys(span for span in waiting if span is not None))
    if not traced:
        return
    batch = traced[0].child(name, {**attributes, SHARED_BY: len(traced)}, start_ns=start_ns)
    for other in traced[1:]:
        other.link(batch)
        batch.link(other)
    batch.end(end_ns)
