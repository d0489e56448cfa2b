"""Rows of the tables that people have: of pandas, polars and Arrow; none of these is imported.

A Hugging Face dataset needs nothing here: it is an iterable of rows by itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeGuard

from gradewire.errors import InvalidRequest


class PandasTable(Protocol):
    """`pandas.DataFrame`."""

    @property
    def columns(self) -> Iterable[Any]: ...
    def itertuples(self, *, index: bool, name: None) -> Iterable[tuple[Any, ...]]: ...


class PolarsTable(Protocol):
    """`polars.DataFrame`."""

    def iter_rows(self, *, named: Any) -> Iterator[Any]: ...


class ArrowBatch(Protocol):
    """`pyarrow.RecordBatch`."""

    @property
    def schema(self) -> Any: ...
    def to_pylist(self) -> list[Any]: ...


class ArrowArray(Protocol):
    """`pyarrow.StructArray`, `pyarrow.ChunkedArray` of structs."""

    def to_pylist(self) -> list[Any]: ...


class ArrowTable(Protocol):
    """`pyarrow.Table`, `pyarrow.dataset.Dataset`."""

    def to_batches(self) -> Iterable[Any]: ...


class ArrowReader(Protocol):
    """`pyarrow.RecordBatchReader`."""

    def read_next_batch(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


Table: TypeAlias = PandasTable | PolarsTable | ArrowTable | ArrowReader | ArrowBatch | ArrowArray
_METHODS = ("iter_rows", "itertuples", "to_batches", "read_next_batch", "to_pylist")
"""One of them tells which table it is."""


def is_table(source: object) -> TypeGuard[Table]:
    """Whether `table_rows` reads it."""
    # Of the type: some libraries compute what an object is asked for, or have every name.
    return any(callable(getattr(type(source), method, None)) for method in _METHODS)


def table_rows(name: str, table: Any) -> Iterator[Mapping[str, Any]]:
    """Rows of a table, lazily, each with its values by column.

    Args:
        name: Of the argument, for messages.
        table: What `is_table` says yes to.

    Raises:
        InvalidRequest: Two columns of the table have the same name.
    """
    kind = type(table)
    if hasattr(kind, "iter_rows"):
        return iter(table.iter_rows(named=True))
    if hasattr(kind, "itertuples"):
        columns = _distinct(name, map(str, table.columns))
        return (dict(zip(columns, row, strict=True)) for row in table.itertuples(index=False, name=None))
    if hasattr(kind, "to_pylist") and not hasattr(kind, "schema"):
        return iter(table.to_pylist())
    if hasattr(kind, "to_batches"):
        return _arrow_rows(name, table.to_batches())
    return _arrow_rows(name, table if hasattr(kind, "read_next_batch") else (table,))


def _arrow_rows(name: str, batches: Iterable[ArrowBatch]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        _distinct(name, batch.schema.names)
        yield from batch.to_pylist()


def _distinct(name: str, columns: Iterable[str]) -> list[str]:
    listed = list(columns)
    if repeated := sorted({column for column in listed if listed.count(column) > 1}):
        raise InvalidRequest(f"{name} has more than one column {repeated[0]!r}: rename one, or leave it out")
    return listed
