"""Write results as a table: CSV, TSV or Parquet with a column for each value.

For --resume, a run writes JSONL next to the table, and converts the JSONL at the end.
"""

import contextlib
import csv
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.results.journal import replacing
from gradewire_cli.results.resumable_output import check_lines, read_results, without_lines
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import Row

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_PARQUET: Final = frozenset({".parquet", ".pq"})
TABLE_SUFFIXES: Final = frozenset(_DELIMITERS) | _PARQUET
_LINES: Final = frozenset({".jsonl", ".ndjson", ""})
_BATCH_ROWS: Final = 4096
_INT64: Final = range(-(1 << 63), 1 << 63)
_HEAD: Final = ("id", "index")
_TAIL: Final = ("picture_digest", "digest")


def is_table(path: Path) -> bool:
    """Return True if the output's suffix means a table, and False for JSONL.

    Raises:
        InputError: The suffix is unknown, or pyarrow is missing.
    """
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        _pyarrow(path)
    elif suffix not in _DELIMITERS and suffix not in _LINES and not path.exists():
        raise InputError(f"--out {path}: cannot write {suffix} files. Use .jsonl, .csv, .tsv or .parquet")
    return suffix in TABLE_SUFFIXES


def part_of(path: Path) -> Path:
    """Return the path of the JSONL file that collects a table's rows during the run."""
    return path.with_name(f"{path.name}.part.jsonl")


def write_table(path: Path, rows: Path) -> None:
    """Convert the JSONL file `rows` to a durable table; raise InputError on failure."""
    kinds: dict[str, set[str]] = {column: set() for column in (*_HEAD, "digest")}
    for row in _rows_with_identifiers_first(rows):
        for column, value in _flat(row).items():
            kinds.setdefault(column, set()).add(_kind(value))
    kinds |= {column: kinds.pop(column) for column in _TAIL if column in kinds}
    flat = map(_flat, _rows_with_identifiers_first(rows))
    with named_errors(path), replacing(path) as unfinished:
        if path.suffix.lower() in _PARQUET:
            _write_parquet(unfinished, kinds, flat)
        else:
            _write_delimited(unfinished, list(kinds), flat, _DELIMITERS[path.suffix.lower()])


def check_whole(path: Path, rows: Iterable[Row], lines: Mapping[str, str]) -> list[set[str]]:
    """Return each row's statuses; raise InputError unless a table has exactly these rows and metrics."""
    statuses: list[set[str]] = []
    remaining = iter(rows)
    with named_errors(path), _named_format_errors(path):
        for cells in _cells_by_column(path):
            labels = [name.removesuffix(".status") for name in cells if name.endswith(".status")]
            found = {label: str(cells[f"{label}.status"]) for label in labels if f"{label}.score" in cells}
            if not statuses:
                scores = {label: {"line": cells.get(f"{label}.line") or ""} for label in found}
                check_lines(path, {"scores": scores}, lines)
            row = next(remaining, None)
            if row is None or [str(row.index), row.digest] != [str(cells.get("index")), cells.get("digest")]:
                break
            statuses.append(set(found.values()))
        else:
            if next(remaining, None) is None:
                return statuses
    raise InputError(
        f"{path} is a complete table, but row {len(statuses) + 1} does not match the input. The input has changed. "
        "Use another --out, or --overwrite"
    )


@contextlib.contextmanager
def _named_format_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (csv.Error, ValueError) as error:
        raise InputError(f"{path} is not a table from gradewire score ({error}). Use another --out") from error


def _cells_by_column(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix.lower() in _PARQUET:
        _, parquet = _pyarrow(path)
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                yield from batch.to_pylist()
    else:
        csv.field_size_limit(sys.maxsize)
        with path.open(newline="", encoding="utf-8") as stream:
            yield from csv.DictReader(stream, delimiter=_DELIMITERS[path.suffix.lower()])


def _rows_with_identifiers_first(path: Path) -> Iterator[dict[str, Any]]:
    for place, (_, row) in enumerate(read_results(path)):
        yield row if place == 0 else without_lines(row)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row to cells by column name: METRIC.KEY for a result's fields, plus the input's columns."""
    cells = {name: row.get(name) for name in (*_HEAD, "digest")}
    cells |= {name: row[name] for name in ("file", "picture_digest") if name in row}
    for column, value in row.get("input", {}).items():
        # An input column may share its name with any row's output column.
        taken = column in cells or column in _TAIL or column.startswith(tuple(f"{label}." for label in row["scores"]))
        cells[f"input.{column}" if taken else column] = value
    for label, result in row["scores"].items():
        cells |= {f"{label}.{key}": value for key, value in result.items()}
    return cells


def _kind(value: Any) -> str:
    if isinstance(value, list) and value:
        kinds = {_kind(entry) for entry in value}
        return f"list of {min(kinds)}" if len(kinds) == 1 and kinds <= {"str", "int", "float"} else "json"
    if isinstance(value, int) and value not in _INT64:
        return "json"
    kind = type(value).__name__
    return kind if kind in {"bool", "int", "float", "str", "NoneType"} else "json"


def _write_delimited(path: Path, columns: list[str], rows: Iterable[Mapping[str, Any]], delimiter: str) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="replace") as stream:
        writer = csv.DictWriter(stream, columns, delimiter=delimiter)
        writer.writeheader()
        writer.writerows({column: _text(value) for column, value in row.items()} for row in rows)


def _text(value: Any) -> Any:
    return _json(value) if isinstance(value, list | dict | bool) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _write_parquet(path: Path, kinds: Mapping[str, set[str]], rows: Iterator[Mapping[str, Any]]) -> None:
    pa, parquet = _pyarrow(path)
    types = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "str": pa.string(),
        "list of float": pa.list_(pa.float64()),
        "list of int": pa.list_(pa.int64()),
        "list of str": pa.list_(pa.string()),
    }
    # Readers expect one type in a column, so mixed types become JSON.
    chosen = {column: _of_all(found) for column, found in kinds.items()}
    # Escape surrogates in column names, because replacing could make two names equal.
    names = {column: column.encode(errors="backslashreplace").decode() for column in chosen}
    schema = pa.schema({names[column]: types.get(kind, pa.string()) for column, kind in chosen.items()})
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(itertools.islice(rows, _BATCH_ROWS)):
            cells = [{names[column]: _cell(row.get(column), kind) for column, kind in chosen.items()} for row in batch]
            writer.write_table(pa.Table.from_pylist(cells, schema=schema))


def _of_all(kinds: set[str]) -> str:
    found = kinds - {"NoneType"}
    if found == {"int", "float"}:
        return "float"
    return min(found) if len(found) == 1 else "json" if found else "str"


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return None
    match kind:
        case "json":
            return printable(_json(value))
        case "float":
            return float(value)  # pyarrow rejects integers that a float cannot represent
        case "str":
            return printable(value)
        case "list of str":
            return [printable(entry) for entry in value]
    return value


def _pyarrow(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415 - as above
    except ImportError:
        raise InputError(f"--out {path}: Parquet needs pyarrow. Run: pip install 'gradewire[parquet]'") from None
    return pa, parquet
