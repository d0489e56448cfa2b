"""Options that several commands take, as one decorator."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from typing_extensions import override

Command = TypeVar("Command", bound="Callable[..., Any]")

# A file that is read, and one that is written.
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)


class FiniteRange(click.FloatRange):
    """A number within bounds; neither inf nor nan, which every comparison with a bound lets pass."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


def choice_option(*names: str, among: Sequence[str], about: str) -> Callable[[Command], Command]:
    """An option with one of these values; the first is its default."""
    return click.option(*names, type=click.Choice(among), default=among[0], help=about)


def option_group(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that adds options, arguments or further groups, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def check_resume(options: Mapping[str, Any], out: str | Path | None) -> None:
    """Refuses --resume with --overwrite, and either where no file is written; raises click.UsageError."""
    if options["resume"] and options["overwrite"]:
        raise click.UsageError("--resume and --overwrite exclude each other: leave one out")
    if out is None and (options["resume"] or options["overwrite"]):
        raise click.UsageError("--resume and --overwrite need --out FILE")
