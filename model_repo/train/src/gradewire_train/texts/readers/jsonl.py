"""JSON lines read one by one; errors name the file, the line and the field."""

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from gradewire_train.errors import TrainingError
from gradewire_train.json_lines import well_formed

_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_MOST_CHARACTERS: Final = 2_000
"""Of a text; encoders read some 500 characters of it at most."""
_MOST_NAMES: Final = 10

_log = logging.getLogger(__name__)
T = TypeVar("T")
Row = Mapping[str, Any]


class FieldError(ValueError):
    """What is wrong with a line: the field and what is expected of it."""


def read(path: Path, parse: Callable[[Row], T | None], *, skip_bad_lines: bool) -> Iterator[tuple[int, T]]:
    """Yields what `parse` makes of each line, with the line's number from 1 on; blank lines and None are left out.

    Args:
        path: The file, in UTF-8; it is read as it is consumed.
        parse: Raises `FieldError` for a line that is not as it should be.
        skip_bad_lines: Leaves such lines out, and logs at the end how many and what was wrong with the first.

    Raises:
        TrainingError: The file cannot be read, or a line is bad and is not to be skipped, or no line is good.
    """
    skipped, first, good = 0, "", 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    parsed = parse(_object(line))
                except FieldError as error:
                    if not skip_bad_lines:
                        raise TrainingError(
                            f"{path}, line {number}: {error}; mend the line, or leave such lines out with "
                            "--skip-bad-lines"
                        ) from error
                    skipped, first = skipped + 1, first or f"line {number}: {error}"
                    continue
                good += 1
                if parsed is not None:
                    yield number, parsed
    except OSError as error:
        raise TrainingError(f"{path} cannot be read: {error.strerror}; name a file of JSON lines") from error
    if skipped:
        _log.warning("%s: %d bad lines left out; the first: %s", path, skipped, first)
    if not good:
        raise TrainingError(f"{path} holds no line that can be used; {first or 'it is empty'}")


def text(row: Row, field: str) -> str:
    """The field's text: NFC, blanks and control characters as single blanks.

    Raises:
        FieldError: It is missing, no text, blank, or longer than 2 000 characters.
    """
    if field not in row:
        there = ", ".join(f"{name!r:.40}" for name in sorted(row)[:_MOST_NAMES])
        raise FieldError(f'there is no field "{field}" (fields: {there or "none"})')
    return clean(row[field], field)


def clean(value: object, field: str) -> str:
    """As `text`, for a value that was taken out of the field `field`."""
    if not isinstance(value, str):
        raise FieldError(f'field "{field}": a text is expected, not {type(value).__name__}')
    if len(value) > _MOST_CHARACTERS:
        raise FieldError(f'field "{field}": {len(value)} characters, at most {_MOST_CHARACTERS} are read')
    if not well_formed(value):
        raise FieldError(f'field "{field}": a lone surrogate, which is no character')
    cleaned = _BLANKS.sub(" ", unicodedata.normalize("NFC", value)).strip()
    if not cleaned:
        raise FieldError(f'field "{field}" is blank')
    return cleaned


def _object(line: bytes) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FieldError(f"not JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise FieldError(f"a JSON object is expected, not {type(row).__name__}")
    return row
