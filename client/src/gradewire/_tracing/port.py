"""What a trace offers to calls and transports."""

from collections.abc import Sequence
from contextvars import Context
from typing import Any, Protocol

Metadata = tuple[tuple[str, str], ...]


class CallTrace(Protocol):
    """The trace of one call of a client's method."""

    @property
    def context(self) -> Context | None:
        """For tasks of the call, whose current span is then the call's; None: as they come."""

    def evaluated(self, rows: Sequence[Any], results: Sequence[Any]) -> None:
        """Emits an event for each result (`ItemScores`, `Comparison`); `rows` are the caller's, at their indices."""

    def noted(self, index: int, row: Any) -> None:
        """Keeps what a row says of the span that it stands for, until its result comes."""

    def answered(self, results: Sequence[Any]) -> None:
        """As `evaluated`, for rows that were noted."""


class RequestTrace(Protocol):
    """The span of one request to a server."""

    def metadata(self, own: Metadata | None) -> Metadata | None:
        """The request's metadata with the trace's."""

    def answered_by(self, code: str) -> None:
        """Notes the gRPC code by which the request ended; OK where it is not called and no error passes."""
