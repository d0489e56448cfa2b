"""How the commands tell what went wrong: one line, no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from gradewire_models.errors import ModelError
from gradewire_proto.conventions.exit_codes import ExitCode


class MissingPackageError(click.ClickException):
    """What a command needs is not installed."""

    exit_code = ExitCode.UNUSABLE


@contextmanager
def without_traceback() -> Iterator[None]:
    """Ends the command with the message of a `ModelError`; as a decorator, of a whole command."""
    try:
        yield
    except ModelError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def needs(extra: str, doing: str) -> Iterator[None]:
    """Context for the imports of `doing`, e.g. "building"; ends the command where they need the `extra`."""
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(f"{doing} needs more packages ({error}): pip install 'gradewire[{extra}]'") from error
