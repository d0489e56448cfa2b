"""The protocol of what computes in a worker."""

from typing import Protocol

from gradewire_server.judges.worker.messages import CoreLimits, RowResult, Run


class CoreError(Exception):
    """The model cannot be opened, or gave no valid answer."""


class Core(Protocol):
    """A language model with states; see `messages`. Used by one thread.

    What a row answers depends on its state's tokens, on the prefix and on how both were cut into rows; not on other
    rows of the run, nor on other states, nor on what was computed before: bit for bit.
    """

    @property
    def limits(self) -> CoreLimits:
        """What runs have to respect."""

    def run(self, run: Run) -> list[RowResult]:
        """Computes a run; one result per row.

        Raises:
            CoreError: The model gave no numbers.
            KeyError: A state is not there.
        """
