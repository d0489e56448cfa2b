"""Errors of the command: one line without keys of URLs that names the field and the way out, and an exit code."""

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn

import click

from gradewire.errors import GradewireError, InvalidRequest, TransportError
from gradewire_proto.exit_codes import MEANINGS, ExitCode

# With one slash too, as a path that was made of a URL has it.
_URL: Final = re.compile(r"(?<=[A-Za-z0-9+.-]{2}):/\S+")
_KEYS: Final = re.compile(
    r"""
    (?P<begin>:/{1,2})(?:
        (?P<user>[^/?]+@)     # user and password end at the last @ before the path: a password may have one too
        | [^/]*@.*            # nobody knows whether this ? is of a password or begins a query: all of it goes
    )
    | (?P<query>\?)[^?]*=.*?(?=['")\]},;:.]*$)
    """,
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"\s")
_NO_BLANK: Final = "\ue000"
"""Stands for a blank, where a URL would seem to end: a character that Unicode gives no meaning."""
# In other URLs a ? may be part of a pattern.
_WEB_QUERY: Final = re.compile(r"(https?://[^?]*)\?.*")


def redacted(text: str) -> str:
    """Return a URL, or a text with URLs, with `…` for user and password before a host, and for a query.

    A query may hold the signature of a signed URL. Twice gives the same as once.
    """
    return _URL.sub(lambda url: _KEYS.sub(_hidden, url[0]), text) if ":/" in text else text


def redacted_url(path_or_url: str) -> str:
    """Hide keys in a text that is one URL, or a path, as a whole: keys that have blanks, or no =, too."""
    whole = _BLANK.sub(_NO_BLANK, path_or_url)
    return _WEB_QUERY.sub(r"\1?…", redacted(whole)).replace(_NO_BLANK, " ")


def _hidden(found: re.Match[str]) -> str:
    if found["query"]:
        return "?…"
    return f"{found['begin']}…{'@' if found['user'] else ''}"


def exit_codes(*, failed_rows: str = "", condition: str = "") -> str:
    """Return the exit codes of a command for its --help, with the meaning of codes 1 and 4; "" leaves one out."""
    texts = {**MEANINGS, ExitCode.FAILED: failed_rows, ExitCode.GATE: condition}
    return "\b\nExit codes:\n" + "".join(f"  {code:<4} {text}\n" for code, text in texts.items() if text)


class _OneLineError(click.ClickException):
    """Names files, and so URLs: whatever raises it, their keys are not shown."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class InputError(_OneLineError):
    """A file or option is wrong; shown as one line, exit code 2."""

    exit_code = ExitCode.UNUSABLE


class UnreachableError(_OneLineError):
    """No answer from the server; shown as one line, exit code 3."""

    exit_code = ExitCode.UNREACHABLE


def fail(error: BaseException, code: int, *, hint: str = "") -> NoReturn:
    """End the program with one line on stderr, and the traceback before it where GRADEWIRE_DEBUG is set."""
    if os.environ.get("GRADEWIRE_DEBUG", "") not in {"", "0"}:
        traceback.print_exception(error)
    message = error.format_message() if isinstance(error, click.ClickException) else str(error) or "interrupted"
    click.echo(f"Error: {' '.join(message.split())}{f' ({hint})' if hint else ''}", err=True)
    sys.exit(code)


def tell(lines: Iterable[str]) -> None:
    """Print lines on stderr."""
    for line in lines:
        click.echo(line, err=True)


def silence_stdout() -> None:
    """Give up standard output: at exit the interpreter would try again to write what could not be written."""
    sys.stdout = sys.stderr


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the client library's errors into the command's.

    Raises:
        UnreachableError: No answer came; trying again may help.
        InputError: Something has to be changed first.
    """
    try:
        yield
    except TransportError as error:
        raise UnreachableError(str(error)) from error
    except GradewireError as error:
        raise InputError(str(error)) from error


@contextlib.contextmanager
def invalid_request(*errors: type[Exception], named: str = "") -> Iterator[None]:
    """Turn the server's own errors of these kinds into InvalidRequest, whose message begins with `named`."""
    try:
        yield
    except errors as error:
        raise InvalidRequest(f"{named}{error}") from error


@contextlib.contextmanager
def named_errors(name: object, *, hint: str = "") -> Iterator[None]:
    """Turn an error of the operating system into the command's, which names the file, and then a hint (a way out).

    Raises:
        InputError: The file cannot be read or written.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}{hint and f'; {hint}'}") from error


@contextlib.contextmanager
def exit_on_interrupt(message: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """Print the line that `message` gives and exit where the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(message(), err=True)
        click.get_current_context().exit(ExitCode.INTERRUPTED)
