"""Callbacks that count what requests do: results, and synthetic answers written."""

from collections.abc import Callable
from typing import TypeAlias

from gradewire_server.domain.result import Status

CountResult: TypeAlias = Callable[[str, Status], None]
"""Called for every result with its metric and status."""
CountSynthetic: TypeAlias = Callable[[int, int], None]
"""Called with how many references have got a sentence of a judge, and how many stand for themselves."""


def count_no_results(_metric: str, _status: Status) -> None:
    """Counter that does nothing."""


def count_no_answers(_generated: int, _fallback: int) -> None:
    """Counter that does nothing."""
