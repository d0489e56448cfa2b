"""The file of one step: a header, a line for each row, and an end that says how many there are and their digest.

All lines are JSON, so that people can read what waits. A file without its end, or with another digest, is damaged.
"""

import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradewire.integrations.validation.row_codec import decode_row

FORMAT: Final = "gradewire-step/1"


class DamagedStepError(ValueError):
    """The file of a step is not what was written; the message says how."""


class TooLargeStepError(ValueError):
    """The rows take more bytes than a step may."""


@dataclass(frozen=True, slots=True)
class StepHeader:
    """What stands in the first line.

    Attributes:
        step: As the loop gave it.
        name: Of the data set.
        submitted_unix_s: Seconds since 1970.
        metrics: Metric lines by label; None for those that the server has as usual ones.
        reference_set: Of the call; empty without.
    """

    step: int
    name: str
    submitted_unix_s: float
    metrics: dict[str, str] | None
    reference_set: str = ""


def write_step(path: Path, header: StepHeader, rows: Iterable[bytes], max_bytes: int) -> tuple[int, int]:
    """Writes the file under another name and renames it, so that it is there whole or not at all.

    Args:
        path: Of the file.
        header: Its first line.
        rows: Lines, as `encode_row` makes them; written as they come.
        max_bytes: Of the whole file.

    Returns:
        Number of rows, and bytes of the file.

    Raises:
        TooLargeStepError: It would take more than `max_bytes`.
        OSError: The disk takes no more.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(_line({"format": FORMAT, **asdict(header)}))
            count, digest = _write_rows(file, rows, max_bytes)
            file.write(_line({"rows": count, "digest": digest}))
            size = file.tell()
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return count, size


def read_step(path: Path) -> tuple[StepHeader, list[Any]]:
    """Header and rows.

    Raises:
        DamagedStepError: They are not what was written.
        OSError: The file cannot be read.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) < 2:
        raise DamagedStepError("it ends before its last line")
    header = _header(lines[0])
    digest = hashlib.blake2b(b"".join(lines[1:-1]), digest_size=16).hexdigest()
    if lines[-1] != _line({"rows": len(lines) - 2, "digest": digest}):
        raise DamagedStepError("its rows are not those that its last line counts")
    try:
        return header, [decode_row(line) for line in lines[1:-1]]
    except ValueError as error:
        raise DamagedStepError(f"a row cannot be read: {error}") from error


def read_outline(path: Path) -> tuple[StepHeader, int]:
    """Header and number of rows, without reading the rows.

    Raises:
        DamagedStepError: They are not what was written.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        header = _header(file.readline())
        file.seek(max(file.tell(), file.seek(0, io.SEEK_END) - 200))
        last = file.read().splitlines(keepends=True)
    try:
        end = json.loads(last[-1])
        rows = int(end["rows"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DamagedStepError("it ends before its last line") from error
    return header, rows


def _write_rows(file: BinaryIO, rows: Iterable[bytes], max_bytes: int) -> tuple[int, str]:
    digest = hashlib.blake2b(digest_size=16)
    count = 0
    for row in rows:
        digest.update(row)
        count += 1
        file.write(row)
        if file.tell() > max_bytes:
            raise TooLargeStepError(f"its rows take more than {max_bytes} bytes")
    return count, digest.hexdigest()


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _header(line: bytes) -> StepHeader:
    try:
        values = json.loads(line)
        found = values.pop("format")
        header = StepHeader(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStepError(f"its first line cannot be read: {error}") from error
    if found != FORMAT:
        raise DamagedStepError(f"its format is {found!r}; this version reads {FORMAT!r}")
    if not _has_types(values):
        raise DamagedStepError("its first line has values of wrong types")
    return header


def _has_types(values: dict[str, Any]) -> bool:
    metrics = values["metrics"]
    return (
        isinstance(values["step"], int)
        and isinstance(values["name"], str)
        and isinstance(values["submitted_unix_s"], float | int)
        and isinstance(values.get("reference_set", ""), str)
        and (metrics is None or (isinstance(metrics, dict) and all(isinstance(line, str) for line in metrics.values())))
    )
