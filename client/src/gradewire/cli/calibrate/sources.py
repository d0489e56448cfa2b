"""Where labelled rows come from: each source counts the same in a fit of `correctness`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradewire.cli.input.files import InputFile
    from gradewire.cli.input.rows import Row

_COLUMN = "source"


def with_sources(source: InputFile, column: str | None) -> InputFile:
    """The input with the column of --source read, which has to be there where it was asked for."""
    options = replace(
        source.options,
        grouped_by=(column or _COLUMN,),
        grouping_option="--source",
        grouping_needed=column is not None,
    )
    return replace(source, options=options)


def source_of(row: Row, *, several_files: bool) -> str:
    """Where a row of `with_sources` comes from: what its column says, else its file of several, else its data set."""
    said = next(iter(row.grouping.values()), "")
    if said or (row.grouping and _COLUMN not in row.grouping):
        return said
    return row.file if several_files else row.dataset
