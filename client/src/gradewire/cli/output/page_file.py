"""Write the page of a command."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import click

from gradewire.cli.problems import InputError, named_errors
from gradewire.report.page import ReportTooLargeError
from gradewire.report.rendering import MissingJinjaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def today() -> str:
    """Return the date for a headline; pages read no clock."""
    return dt.datetime.now(tz=dt.UTC).date().isoformat()


def write_page_file(path: Path, write: Callable[[], int], *, quiet: bool) -> None:
    """Write a page and tell its size.

    Args:
        path: The file.
        write: Writes it and returns its size in bytes.
        quiet: Say nothing.

    Raises:
        InputError: It cannot be written, or what makes it is not installed.
    """
    try:
        with named_errors(path):
            size = write()
    except MissingJinjaError as error:
        raise InputError(str(error)) from error
    except ReportTooLargeError as error:
        raise InputError(f"{path}: {error}") from error
    if not quiet:
        click.echo(f"{path}: {size / 1e6:.1f} MB", err=True)
