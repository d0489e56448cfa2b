"""Describe the computations of a judge's core as rows of tokens. Import only the standard library here."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

PADDED_FORMS: tuple[Literal["fp16"], Literal["int4"]] = ("fp16", "int4")
"""Forms of a judge whose graphs compute padded batches, for GPUs."""


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """The limits of a core's runs, which the worker sends in reply to OpenModel.

    Attributes:
        max_row_tokens: Maximum length of a row. Longer texts are split into rows at multiples of this length.
        max_growing: Maximum number of states that grow over several runs, not counting prefixes. 1 means that no other
            state may be computed between two runs of a growing state.
        max_prefixes: Maximum number of prefix states. All unfinished rows without a prefix count as one prefix state.
    """

    max_row_tokens: int
    max_rows: int
    max_growing: int
    max_prefixes: int


class Row(NamedTuple):
    """The next tokens of one state.

    Attributes:
        state: ID of the state. A new state starts after the prefix.
        ids: Token IDs, at least one.
        labels: IDs of the tokens for which to return next-token probabilities. Possibly empty.
    """

    state: int
    ids: tuple[int, ...]
    labels: tuple[int, ...] = ()
    next_token: bool = False
    keep: bool = False


class Run(NamedTuple):
    """The rows of one computation.

    Attributes:
        prefix: ID of the state that precedes all rows, or None if there is no prefix.
        rows: At least one row, each with a different state.
        drop: IDs of states to drop before the run.
    """

    prefix: int | None
    rows: tuple[Row, ...]
    drop: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """The number of tokens that the run computes."""
        return sum(len(row.ids) for row in self.rows)


class RowResult(NamedTuple):
    """The result of a row.

    Attributes:
        probabilities: The labels' relative probabilities, with a sum of 1. A row without labels has no probabilities.
        mass: The labels' total probability among all next tokens, or None if unknown.
        next_token: Token ID, or -1 if not requested.
    """

    probabilities: tuple[float, ...] = ()
    mass: float | None = None
    next_token: int = -1


class CoreError(Exception):
    """Raised when the model cannot be opened or does not return a valid answer."""


class DeviceError(CoreError):
    """Raised when the requested GPU cannot be used. The message says what to install, and contains no path."""


class Core(Protocol):
    """A language model with states. For one thread only.

    A row's result depends only on the tokens of the row's state and prefix, and on how these tokens were split into
    rows. Other rows, other states and earlier runs do not change the result.
    """

    @property
    def limits(self) -> CoreLimits:
        """The limits that runs must respect."""

    def run(self, run: Run) -> list[RowResult]:
        """Compute a run and return one result per row.

        Raises:
            CoreError: The model returned invalid numbers.
            KeyError: A state does not exist.
        """
