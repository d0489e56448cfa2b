"""Reads the table of labelled sets, sets.toml."""

import tomllib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

TABLE: Final = Path(__file__).with_name("sets.toml")

_SHA256: Final = r"^[0-9a-f]{64}$"


class TableError(Exception):
    """The table cannot be read, or lacks a set; the message says what."""


class Source(BaseModel):
    """A public file.

    Attributes:
        name: Its file name, under which a local copy is looked for.
        url: Its address, at a commit.
        sha256: Of the file; None where it is not known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[\w.-]+$")
    url: str
    sha256: str | None = Field(default=None, pattern=_SHA256)


class LabelledSet(BaseModel):
    """A set of labelled rows.

    Attributes:
        file: Name of the rows' file.
        rows_sha256: Of that file, as the figures were taken on it.
        rows: How many.
        made: What is made of the sources, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(pattern=r"^[\w.-]+$")
    rows_sha256: str = Field(pattern=_SHA256)
    rows: int
    licence: str
    citation: str
    made: str
    sources: tuple[Source, ...] = Field(min_length=1)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sets: dict[str, LabelledSet]


def read_table(path: Path = TABLE) -> dict[str, LabelledSet]:
    """The sets of a table by name.

    Raises:
        TableError: It is not there, or no such table.
    """
    try:
        return _Table.model_validate(tomllib.loads(path.read_text("utf-8"))).sets
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise TableError(f"{path}: {error}") from error
