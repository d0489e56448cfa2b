"""JSON lines that all have to be right, and texts that tokenizers can read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradewire_train.errors import TrainingError

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def json_objects(path: Path, fields: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each line's place ("FILE, line 3") and object; blank lines are left out.

    Raises:
        TrainingError: The file cannot be read, or a line is no object; the message says that it should have `fields`.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    where = f"{path}, line {number}"
                    yield where, _object(line, where, fields)
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(f"cannot read {path}: {error}") from error


def _object(line: str, where: str, fields: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"{where}: no JSON ({error})") from error
    if not isinstance(found, dict):
        raise TrainingError(f"{where}: should be an object with {fields}")
    return found


def well_formed(text: str) -> bool:
    """False where a lone surrogate stands in it: JSON can write one, UTF-8 and tokenizers cannot."""
    return _LONE_SURROGATE.search(text) is None
