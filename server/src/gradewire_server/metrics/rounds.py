"""One round of a metric's program with several needs at once."""

from collections.abc import Generator
from typing import Any, TypeVar

from gradewire_server.domain.needs import Need
from gradewire_server.domain.result import Failure

T = TypeVar("T")


def ask_together(*needs: Need) -> Generator[tuple[Need, ...], Any, Any]:
    """Yields all needs as one round.

    Returns:
        Their answers in the same order (Any: a tuple of what `ask` returns for each), or the first Failure among them.
    """
    answers = yield needs
    return next((answer for answer in answers if isinstance(answer, Failure)), answers)


def ask_beside(
    program: Generator[tuple[Need, ...], Any, T], *needs: Need
) -> Generator[tuple[Need, ...], Any, tuple[T, tuple[Any, ...]]]:
    """Runs `program`, whose first round asks for `needs` as well.

    Returns:
        What the program returns, and the answers to `needs` in their order, failures among them.
    """
    extra: tuple[Any, ...] = ()
    try:
        own = next(program)
        answers = yield (*own, *needs)
        extra = tuple(answers[len(own) :])
        own = program.send(answers[: len(own)])
        while True:
            own = program.send((yield own))
    except StopIteration as stop:
        return stop.value, extra
