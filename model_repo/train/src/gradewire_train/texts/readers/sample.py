"""A seeded sample of a stream of any length, in bounded memory: groups with the smallest hashes."""

import hashlib
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Sample(Generic[T]):
    """Keeps all entries of the `size` keys, at least 1, whose hashes with the seed are smallest.

    Which keys are kept depends on the seed and the keys alone, not on their order, and all entries of a key are kept.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        self._size = size
        self._salt = f"{seed}/".encode()
        self._groups: dict[bytes, list[T]] = {}
        self._limit: bytes | None = None

    def add(self, key: str, entry: T) -> None:
        """Adds an entry to its key's group."""
        name = hashlib.blake2b(self._salt + key.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if self._limit is not None and name > self._limit:
            return
        self._groups.setdefault(name, []).append(entry)
        if len(self._groups) > 2 * self._size:
            self._cut()

    def groups(self) -> Iterator[list[T]]:
        """The groups that were kept, by their hashes: an order that is as good as random."""
        self._cut()
        return (self._groups[name] for name in sorted(self._groups))

    def _cut(self) -> None:
        names = sorted(self._groups)
        if len(names) > self._size:
            self._limit = names[self._size - 1]
            for name in names[self._size :]:
                del self._groups[name]
