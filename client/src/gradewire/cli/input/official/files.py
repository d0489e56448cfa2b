"""What `--from` names: who wrote the files, how they are read, and what means are told by."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from gradewire.cli.input.opening import STDIN
from gradewire.cli.input.record import Record, printable
from gradewire.cli.problems import InputError


class NoSuchFilterError(InputError):
    """A log has no sample of the filter that was asked for."""


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """Files as one program writes them.

    Attributes:
        name: What --from calls it.
        records: Rows of a file.
        type_columns: Columns that all rows have, by which means are told.
        patterns: Names of the files with samples in the folder of a run; empty where names do not tell them.
        several: Whether FILE may be more than one.
        beside: Files that are read beside FILE, by the option that names them; "" where it is not given.
        options: Further options and what they say.
    """

    name: str
    records: Callable[[str], Iterator[Record]]
    type_columns: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    several: bool = True
    beside: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as they are written."""
        given = ((option, value) for option, value in {**self.beside, **self.options}.items() if value)
        return ("--from", self.name, *itertools.chain(*given))

    def found(self, paths: Sequence[str]) -> tuple[str, ...]:
        """These files, and in the place of a folder those with samples in it, in the order of their names.

        Of several, those of tasks that have no such filter are left out, which stderr says.

        Raises:
            InputError: A folder has none, a file is named twice, or there are several where one is read.
        """
        files = [file for path in paths for file in self._in(path)]
        first: dict[str, str] = {}
        for file in files:
            # "logs/a.json" and "./logs/../logs/a.json" are one file.
            place = os.path.realpath(file)
            if place in first:
                also = "" if first[place] == file else f" (as {first[place]} too)"
                raise InputError(f"{file} is named twice{also}: leave one out")
            first[place] = file
        if len(files) > 1 and not self.several:
            raise InputError(f"--from {self.name} reads one file of results: score the others by runs of their own")
        return tuple(self._of_filter(files) if len(files) > 1 and self.options else files)

    def _of_filter(self, files: list[str]) -> list[str]:
        left_out: list[NoSuchFilterError] = []
        kept: list[str] = []
        for file in files:
            try:
                next(self.records(file), None)
            except NoSuchFilterError as error:
                left_out.append(error)
            else:
                kept.append(file)
        if not kept:
            raise left_out[0]
        for missing in left_out:
            click.echo(f"{printable(missing.format_message())}: left out", err=True)
        return kept

    def _in(self, path: str) -> list[str]:
        if path == STDIN or not Path(path).is_dir():
            return [path]
        if not self.patterns:
            raise InputError(f"{path} is a folder: name its files for --from {self.name} themselves")
        found = {str(file) for pattern in self.patterns for file in Path(path).rglob(pattern) if file.is_file()}
        if not found:
            raise InputError(f"{path}: no {' or '.join(self.patterns)} is in this folder: name the files themselves")
        return sorted(found)
