"""A row of a file as it stands there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it stands in the file.

    Attributes:
        index: Row number from 0, over all files; blank lines of a JSONL or CSV file are no rows.
        place: Where it stands, for people: "line 7", or "row 7" where the format has no lines.
        fields: Values by column; None when the row cannot be read.
        problem: Why not; empty when it can.
        raw: What tells an unreadable row apart from another: of JSON its text, bytes that are no UTF-8 as lone
            surrogates. Empty otherwise.
        file: Where several files are read: the one that it stands in, as `shown_names` calls it; else "".
        id: What an unreadable row is about, where that is known; else "".
    """

    index: int
    place: str
    fields: Mapping[str, Any] | None
    problem: str = ""
    raw: str = ""
    file: str = ""
    id: str = ""


def printable(text: str) -> str:
    """A text of the file as a terminal can show it: UTF-8 cannot hold lone surrogates."""
    return text.encode(errors="replace").decode()
