"""Who says which of two answers is the better one: the seam between `compare` and metrics or judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from gradewire.cli.choosing.pairs import AnswerPair, Choice

Chosen = tuple["AnswerPair", "Choice"]


class Chooser(Protocol):
    """Prefers one of two answers.

    A run hands it the pairs that no earlier run has an answer for (`--out` with `--resume`), and writes what it gives
    at once, so a chooser keeps nothing and begins anew after a break.
    """

    @property
    def name(self) -> str:
        """What tables, --by and --fail-if call it."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a choice depends on beside the pair: `by`, the line that reproduces it, and further JSON values.

        It stands in every line of a pair; --resume refuses lines that have another.
        """
        ...

    def choose(self, pairs: Iterable[AnswerPair]) -> AsyncGenerator[Sequence[Chosen]]:
        """Gives every pair with its choice, in the order of the pairs, some at a time.

        It reads pairs only as far as it has some in work. A pair that cannot be judged gets a status and its neighbours
        a choice all the same.

        Raises:
            GradewireError: The server went away, or refuses the call itself; what was given before stands.
        """
        ...
