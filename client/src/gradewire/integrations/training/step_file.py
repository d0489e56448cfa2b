"""The file of one step: a header, a line for each row, and an end with their number and digest."""

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Final

from gradewire._calls.submit import snapshot
from gradewire.items import Item

_NAMES = tuple(field.name for field in fields(Item))


def encode_row(item: Any, read: AbstractSet[str]) -> bytes:
    """One line, with its end; never raises: a row that cannot be written becomes one that has no score.

    Args:
        item: Of a call.
        read: Names of the fields that are kept, as `snapshot` takes them.
    """
    try:
        taken, _ = snapshot(item, read)
        if isinstance(taken, Item):
            taken = {name: getattr(taken, name) for name in _NAMES}
        elif isinstance(taken, Mapping):
            taken = {str(name): value for name, value in taken.items()}
        line = json.dumps(taken, default=_stand_in)
    except Exception:  # noqa: BLE001 - whatever the values of a caller raise: its neighbours are scored
        line = json.dumps(_unreadable(item))
    return line.encode() + b"\n"


def decode_row(line: bytes) -> Any:
    """The row of a line.

    Raises:
        ValueError: It is no line of `encode_row`.
    """
    return json.loads(line, object_hook=_restored)


def _stand_in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal | Fraction):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, PathLike):
        return {"$path": str(fspath(value))}
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # a picture of Pillow's
        file = io.BytesIO()
        value.save(file, "PNG")
        return {"$bytes": base64.b64encode(file.getvalue()).decode()}
    return _unreadable(value)


def _unreadable(value: Any) -> dict[str, str]:
    return {"$unreadable": type(value).__name__}


def _restored(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        ((key, content),) = value.items()
        if key == "$bytes" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
        if key == "$path" and isinstance(content, str):
            return Path(content)
    return value


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
