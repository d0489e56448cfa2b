"""Exit codes of all commands."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """The exit code of a command. `MEANINGS` explains each code."""

    DONE = 0
    FAILED = 1
    UNUSABLE = 2
    UNREACHABLE = 3
    GATE = 4
    NOT_BETTER = 5
    INTERRUPTED = 130
    CLOSED = 141


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.DONE: "all done",
    ExitCode.FAILED: "some work failed",
    ExitCode.UNUSABLE: "wrong usage or input, a package that is missing, or an output that cannot be written",
    ExitCode.UNREACHABLE: "the server, or the only judge, cannot be reached or used, is too busy, or was lost",
    ExitCode.GATE: "all work is done, but a check failed",
    ExitCode.NOT_BETTER: "a fit is not better than the one that it would replace, and was not stored",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.CLOSED: "standard output was closed early",
}
"""Meanings of exit codes, for --help and docs/reference/command.md. As in shells, 130 means SIGINT and 141 SIGPIPE."""
