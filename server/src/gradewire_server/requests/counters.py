"""What requests tell to whoever counts: results, and synthetic answers that have been written."""

from collections.abc import Callable
from typing import TypeAlias

from gradewire_server.domain.result import Status

CountResult: TypeAlias = Callable[[str, Status], None]
"""Told of every result: metric and status."""
CountSynthetic: TypeAlias = Callable[[int, int], None]
"""Told of references that have got an answer: sentences of a judge, and those that stand for themselves."""


def count_no_results(_metric: str, _status: Status) -> None:
    """Counter that does nothing."""


def count_no_answers(_generated: int, _fallback: int) -> None:
    """Counter that does nothing."""
