"""Figures written to a file: as JSON, where what is not defined is null, or as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from pathlib import Path


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document of mappings, sequences and dataclasses; raises InputError where that cannot be."""
    write_text(path, json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a file; a lone surrogate of the input becomes a question mark, for UTF-8 cannot hold it.

    Raises:
        InputError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def plain(value: Any) -> Any:
    """The same in what JSON has; NaN and infinities are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
