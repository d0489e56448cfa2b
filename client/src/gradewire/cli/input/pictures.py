"""The pictures that rows name, for metrics that show them: with the items, and as digests for --resume."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradewire._input.images import local_picture, picture_digest
from gradewire._input.values import UnreadableValueError
from gradewire.cli.input.record import printable
from gradewire.cli.input.rows import Row
from gradewire.cli.url_keys import shown_url

_NAME_CHARACTERS = 200


def with_picture_digests(rows: Iterable[Row], folder: Path | None) -> Iterator[Row]:
    """The same rows, where the pictures that they name from `folder` are shown; as they are, where there is none."""
    for row in rows:
        if folder is None or row.item is None or not row.picture:
            yield row
        else:
            yield replace(row, picture_digest=picture_digest(row.picture, folder))


def item_with_picture(row: Row, folder: Path | None) -> tuple[Mapping[str, Any], str]:
    """The item of a row that has one, with the picture that it names from `folder`; and why that is not with it."""
    item = row.item or {}
    if folder is None or not row.picture:
        return item, ""
    try:
        return {**item, "images": [local_picture(row.picture, folder)]}, ""
    except UnreadableValueError as error:
        return item, f"picture {printable(shown_url(row.picture)[:_NAME_CHARACTERS])}: {error}"
