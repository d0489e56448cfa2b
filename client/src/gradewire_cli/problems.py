"""The command's errors: an exit code and one line, without keys from URLs."""

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NoReturn

import click

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire.results import Status
from gradewire_proto.exit_codes import MEANINGS, ExitCode

# A URL that became a path has only one slash.
_URL: Final = re.compile(r"(?<=[A-Za-z0-9+.-]{2}):/\S+")
_KEYS: Final = re.compile(
    r"""
    (?P<begin>:/{1,2})(?:
        (?P<user>[^/?]+@)     # ends at the last @ before the path, because a password may contain @
        | [^/]*@.*            # this ? may belong to a password or begin a query: hide everything
    )
    | (?P<query>\?)[^?]*=.*?(?=['")\]},;:.]*$)
    """,
    re.VERBOSE,
)
_REACHED: Final = frozenset({Status.OK, Status.INCONSISTENT, Status.TIED, "NO_VERDICT"})
"""Statuses of rows and pairs that were scored or judged, even if that decided nothing."""
_AWAY: Final = frozenset({Status.UNAVAILABLE, Status.MODEL_UNAVAILABLE})
_BLANK: Final = re.compile(r"\s")
_ARGUMENT: Final = re.compile(r"\b([a-z_]+)=")
_NO_BLANK: Final = "\ue000"
"""A private-use character for blanks in URLs, because a blank would seem to end the URL."""
# A URL with a scheme other than http or https may contain a "?" as part of a pattern.
_WEB_QUERY: Final = re.compile(r"(https?://[^?]*)\?.*")


def redacted(text: str) -> str:
    """Replace the user, password and query of every URL in a text with `…`."""
    return _URL.sub(lambda url: _KEYS.sub(_hidden, url[0]), text) if ":/" in text else text


def redacted_url(path_or_url: str) -> str:
    """Hide the keys in a single URL or path. Also hide keys that contain blanks, and whole queries without "="."""
    whole = _BLANK.sub(_NO_BLANK, path_or_url)
    return _WEB_QUERY.sub(r"\1?…", redacted(whole)).replace(_NO_BLANK, " ")


def _hidden(found: re.Match[str]) -> str:
    if found["query"]:
        return "?…"
    return f"{found['begin']}…{'@' if found['user'] else ''}"


def with_option_names(message: str, names: Mapping[str, str]) -> str:
    """Replace each argument (NAME=) in a message of the client library by the argument's option or setting."""
    return _ARGUMENT.sub(lambda found: f"{names.get(found[1], found[1])}=", message)


def exit_codes(*, failed_rows: str = "", condition: str = "", not_better: str = "") -> str:
    """Return the help text on exit codes.

    `failed_rows` explains code 1, `condition` code 4, and `not_better` code 5. A code whose explanation is "" is
    omitted.
    """
    own = {ExitCode.FAILED: failed_rows, ExitCode.GATE: condition, ExitCode.NOT_BETTER: not_better}
    texts = {**MEANINGS, **own}
    return "\b\nExit codes:\n" + "".join(f"  {code:<4} {text}\n" for code, text in texts.items() if text)


class _OneLineError(click.ClickException):
    """A one-line error that hides keys in URLs."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class InputError(_OneLineError):
    """Raised for a wrong file or option. The command prints one line and exits with code 2."""

    exit_code = ExitCode.UNUSABLE


class UnreachableError(_OneLineError):
    """Raised if a server does not answer. The command prints one line and exits with code 3."""

    exit_code = ExitCode.UNREACHABLE


NOTHING_SCORED: Final = "no row or pair could be scored or judged"
"""The meaning of exit code 1 in commands that report single failures."""


class NothingScoredError(_OneLineError):
    """Raised if no row or pair could be scored or judged. The command prints one line and exits with code 1."""

    exit_code = ExitCode.FAILED


def nothing_scored(what: str, statuses: Mapping[str, int]) -> click.ClickException:
    """Return the error of a run without any result.

    Code 3 stands for a server or judge that cannot be reached or used, and code 1 for every other reason.

    Args:
        what: The message without the statuses, such as "no row could be scored".
        statuses: Number of results by status.
    """
    listed = ", ".join(f"{status} {number}" for status, number in sorted(statuses.items()) if number)
    found = {status for status, number in statuses.items() if number}
    kind = UnreachableError if found and found <= _AWAY else NothingScoredError
    return kind(f"{what}: {listed}" if listed else what)


def check_something_scored(what: str, statuses: Mapping[str, int]) -> None:
    """Raise `nothing_scored` if results failed and no other result exists. Empty answers are neither."""
    failed = {status: number for status, number in statuses.items() if number and status != Status.EMPTY_PREDICTION}
    if failed and failed.keys().isdisjoint(_REACHED):
        raise nothing_scored(what, failed)


def fail(error: BaseException, code: int, *, hint: str = "") -> NoReturn:
    """Exit with one line on stderr, after a traceback if GRADEWIRE_DEBUG is set."""
    if os.environ.get("GRADEWIRE_DEBUG", "") not in {"", "0"}:
        traceback.print_exception(error)
    message = error.format_message() if isinstance(error, click.ClickException) else str(error) or "interrupted"
    click.echo(f"Error: {' '.join(message.split())}{f' ({hint})' if hint else ''}", err=True)
    sys.exit(code)


def tell(lines: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in lines:
        click.echo(line, err=True)


def silence_stdout() -> None:
    """Redirect standard output to stderr, because the interpreter would retry the failed write at exit."""
    sys.stdout = sys.stderr


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the client library's errors into the command's errors.

    Raises:
        UnreachableError: The server did not answer.
        InputError: The user must change the command or its input.
    """
    try:
        yield
    except TransportError as error:
        raise UnreachableError(str(error)) from error
    except GradewireError as error:
        raise InputError(str(error)) from error


@contextlib.contextmanager
def invalid_request(*errors: type[Exception], named: str = "") -> Iterator[None]:
    """Turn the server's errors of these types into InvalidRequest with the prefix `named`."""
    try:
        yield
    except errors as error:
        raise InvalidRequest(f"{named}{error}") from error


@contextlib.contextmanager
def named_errors(name: object, *, hint: str = "") -> Iterator[None]:
    """Turn an OSError into an InputError with the file's name and a hint."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}{hint and f'; {hint}'}") from error


@contextlib.contextmanager
def exit_on_interrupt(message: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """Exit when the user interrupts, after printing the line that `message` returns."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(message(), err=True)
        click.get_current_context().exit(ExitCode.INTERRUPTED)
