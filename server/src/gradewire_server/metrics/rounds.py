"""Rounds of a metric's program: several needs at once, and whether their texts were cut."""

from collections.abc import Generator
from typing import Any

from gradewire_server.domain.needs import Need, Vectors
from gradewire_server.domain.result import Failure


def ask_together(*needs: Need) -> Generator[tuple[Need, ...], Any, Any]:
    """Yields all needs as one round.

    Returns:
        Their answers in the same order (Any: a tuple of what `ask` returns for each), or the first Failure among them.
    """
    answers = yield needs
    return next((answer for answer in answers if isinstance(answer, Failure)), answers)


def is_cut(*answers: Vectors) -> bool:
    """Whether the encoder read a text only in part."""
    return any(bool(answer.truncated.any()) for answer in answers)
