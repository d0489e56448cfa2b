"""The cache in memory of one of several server processes, which also finds what the other processes computed."""

from typing_extensions import override

from gradewire_server.storage.cache import ReadCounter, SegmentedLru, StorageTelemetry
from gradewire_server.storage.shared_table import SharedTable


class SharedLru(SegmentedLru):
    """An LRU cache in front of a table that processes share. Keys have 16 bytes, and values end with a tier.

    Every value goes to the table, unless the caller forbids it. A value that only the table has goes to this process's
    own memory when it is found.
    """

    __slots__ = ("_table",)

    def __init__(self, max_bytes: int, table: SharedTable) -> None:
        super().__init__(max_bytes)
        self._table = table

    @override
    def get(self, key: bytes) -> bytes | None:
        value = super().get(key)
        if value is None and (found := self._table.get(key)) is not None:
            value = found.value
            super().put(key, value, pinned=found.pinned)
        return value

    @override
    def refresh(self, key: bytes, value: bytes) -> None:
        super().refresh(key, value)
        self._table.mark(key, value[-1])

    @override
    def put(self, key: bytes, value: bytes, *, pinned: bool, shared: bool = True) -> None:
        super().put(key, value, pinned=pinned)
        if shared:
            self._table.put(key, value, pinned=pinned)

    @override
    def put_new(self, key: bytes, value: bytes, *, pinned: bool) -> bytes:
        current = super().put_new(key, value, pinned=pinned)
        if current is value:
            self._table.put(key, value, pinned=pinned)
        return current


def expose_table(table: SharedTable, telemetry: StorageTelemetry) -> None:
    """Expose this process's use of the shared table, which is read at each scrape."""
    telemetry.gauge("shared_bytes", "Bytes in the memory that processes share.", lambda: table.used_bytes)
    for name, what, read in (
        ("shared_found_values", "Values found in the memory that processes share.", lambda: table.found),
        ("shared_rejected_values", "Values in shared memory that failed their check.", lambda: table.refused),
        (
            "shared_joined_texts",
            "Texts and judges' questions that another process was working on already.",
            lambda: table.joined,
        ),
    ):
        telemetry.registry.register(ReadCounter(f"gradewire_engine_{name}", what, read))
