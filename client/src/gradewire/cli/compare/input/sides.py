"""The sides of a comparison: a file each, or a model each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradewire.cli.input.opening import GZIP
from gradewire.cli.input.record import printable
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.cli.input.rows import Row

_SHOWN_MODELS = 20
MOST_SIDES = 100
"""A leaderboard is for more: here each is a page of figures."""


@dataclass(frozen=True, slots=True)
class Side:
    """One model or run.

    Attributes:
        rows: Its answers, in the order of the files.
    """

    name: str
    rows: Sequence[Row]

    @property
    def files(self) -> list[str]:
        """The files that they stand in; empty where one file has the rows of all sides."""
        return list(dict.fromkeys(row.file for row in self.rows if row.file))


def check_names(paths: Sequence[str], models: Sequence[str], names: Sequence[str]) -> None:
    """Refuses options that do not fit the files, before these are read; raises click.UsageError."""
    if models and names:
        raise click.UsageError("--names says what files are called, and --models compares models: leave one out")
    if names and len(names) != len(paths):
        raise click.UsageError(f"--names {','.join(names)}: give a name for each of the {len(paths)} files")
    for option, given in (("--models", models), ("--names", names)):
        if repeated := [name for name, times in Counter(given).items() if times > 1]:
            raise click.UsageError(f"{option} {','.join(given)}: {repeated[0]} stands there twice")
    if names and len(paths) == 1:
        raise click.UsageError("--names: one file is compared by its models (--models)")


def sides_of(
    rows: Sequence[Row], paths: Sequence[str], *, models: Sequence[str], names: Sequence[str], baseline: str | None
) -> tuple[list[Side], list[str]]:
    """The sides, the baseline first, and what is left out, in sentences.

    Args:
        rows: Of all files.
        paths: The files.
        models: Those that are compared, of all files together; empty: files are, or of a single file all its models.
        names: What the files are called; empty: by their names.
        baseline: Name of the baseline; None: the first.

    Raises:
        InputError: There are not two sides, or none of a name that an option gives.
    """
    by_model = len(paths) == 1 or bool(models)
    sides, left_out = _by_model(rows, models) if by_model else (_by_file(rows, paths, names), [])
    if len(sides) < 2:
        there = f"{paths[0]} has " + (f"rows of {sides[0].name} alone" if sides else "no column model with a value")
        raise InputError(
            f"{there}: give two files, or one with a column model and at least two models (--map model=COLUMN)"
        )
    if len(sides) > MOST_SIDES:
        raise InputError(f"{len(sides)} models are too many, {MOST_SIDES} are compared at most: --models names some")
    if baseline is not None:
        if baseline not in (known := [side.name for side in sides]):
            raise InputError(f"--baseline {baseline}: there is no such side, there are {_listed(known)}")
        sides.sort(key=lambda side: side.name != baseline)
    return sides, left_out


def _by_file(rows: Sequence[Row], paths: Sequence[str], names: Sequence[str]) -> list[Side]:
    members: dict[str, list[Row]] = {path: [] for path in paths}
    for row in rows:
        members[row.file].append(row)
    called = list(names) or _short_names(paths)
    for path in paths:
        if not members[path]:
            raise InputError(f"{path} has no rows")
    return [Side(name, members[path]) for name, path in zip(called, paths, strict=True)]


def _short_names(paths: Sequence[str]) -> list[str]:
    short = [Path(path.removesuffix(GZIP)).stem for path in paths]
    return short if len(set(short)) == len(paths) else list(paths)


def _by_model(rows: Sequence[Row], models: Sequence[str]) -> tuple[list[Side], list[str]]:
    members: dict[str, list[Row]] = {name: [] for name in models}
    nameless = 0
    for row in rows:
        if not row.model:
            nameless += 1
        elif row.model in members or not models:
            members.setdefault(row.model, []).append(row)
    if missing := [name for name in models if not members[name]]:
        known = list(dict.fromkeys(row.model for row in rows if row.model))
        raise InputError(f"--models {missing[0]}: no row is of this model, there are {_listed(known)}")
    left_out = [f"{nameless} rows have no model and are compared with none"] if nameless else []
    return [Side(name, found) for name, found in members.items()], left_out


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MODELS} more" if len(names) > _SHOWN_MODELS else ""
    return ", ".join(map(printable, names[:_SHOWN_MODELS])) + more if names else "none"
