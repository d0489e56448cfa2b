"""Rows of Parquet and Arrow files; pyarrow is imported when one is read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gradewire.cli.input.opening import STDIN
from gradewire.cli.input.record import Record
from gradewire.cli.input.urls import is_url, open_url
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow.parquet import ParquetFile

_BATCH_ROWS = 1024
_FILE_MARK = b"ARROW1"


def parquet_records(path: str) -> Iterator[Record]:
    """Rows of a Parquet file; raises InputError where it is none, or pyarrow is missing."""
    index = 0
    with _parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            for fields in batch.to_pylist():
                yield Record(index, f"row {index + 1}", fields)
                index += 1


def parquet_rows(path: str) -> int:
    """Number of rows of a Parquet file; raises InputError as `parquet_records`."""
    with _parquet_file(path) as file:
        return int(file.metadata.num_rows)


def arrow_records(path: str) -> Iterator[Record]:
    """Rows of an Arrow file (Feather, as `datasets` writes it), of random access or a stream.

    Raises:
        InputError: It is none, or pyarrow is missing.
    """
    _refuse_stdin(path)
    with _readable(path, "Arrow"):
        from pyarrow import PythonFile, ipc, memory_map  # noqa: PLC0415 - optional and slow to import

        index = 0
        with PythonFile(open_url(path), "r") if is_url(path) else memory_map(path) as source:
            for batch in _batches(source, ipc):
                for fields in batch.to_pylist():
                    yield Record(index, f"row {index + 1}", fields)
                    index += 1


def _batches(source: Any, ipc: Any) -> Iterator[Any]:
    if source.read(len(_FILE_MARK)) == _FILE_MARK:
        file = ipc.open_file(source)
        yield from map(file.get_batch, range(file.num_record_batches))
    else:
        source.seek(0)
        yield from ipc.open_stream(source)


@contextlib.contextmanager
def _parquet_file(path: str) -> Iterator[ParquetFile]:
    _refuse_stdin(path)
    with _readable(path, "Parquet"):
        from pyarrow import parquet  # noqa: PLC0415 - optional and slow to import

        with (
            open_url(path) if is_url(path) else contextlib.nullcontext(path) as source,
            parquet.ParquetFile(source) as file,
        ):
            yield file


def _refuse_stdin(path: str) -> None:
    if path == STDIN:
        raise InputError("Parquet cannot be read from standard input: give a file")


@contextlib.contextmanager
def _readable(path: str, format_: str) -> Iterator[None]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        raise InputError(f"{path}: reading {format_} needs pyarrow: pip install 'gradewire[parquet]'") from error
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as {format_}: {error}") from error
