"""The in-process cache: least recently used, bounded in bytes, in two segments.

New entries enter *probation*; a second hit, or the wish to pin, moves them to the *protected* segment. Room is made
from probation first, so a scan of windows that are looked at once washes through probation and pushes nothing else out.
"""

from collections import OrderedDict
from sys import getsizeof

ENTRY_OVERHEAD_BYTES = 240
"""What a dictionary with order spends on an entry at its worst, beside key and value; tested by tracing."""


class SegmentedLru:
    """Bytes by key. Not thread-safe: it belongs to the event loop's thread.

    Args:
        max_bytes: Bound of everything it keeps alive: keys, values and its own structure.
        protected_share: Largest share of `max_bytes` for the protected segment, 0 to 1.

    Attributes:
        evicted_entries: Total since the start.
    """

    __slots__ = (
        "_bytes",
        "_max_bytes",
        "_probation",
        "_protected",
        "_protected_bytes",
        "_protected_max",
        "evicted_entries",
    )

    def __init__(self, max_bytes: int, *, protected_share: float = 0.8) -> None:
        if max_bytes < 1 or not 0 <= protected_share <= 1:
            raise ValueError("max_bytes must be positive and protected_share between 0 and 1")
        self._max_bytes = max_bytes
        self._protected_max = int(max_bytes * protected_share)
        self._probation: OrderedDict[bytes, bytes] = OrderedDict()
        self._protected: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0
        self._protected_bytes = 0
        self.evicted_entries = 0

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def __contains__(self, key: bytes) -> bool:
        return key in self._protected or key in self._probation

    @property
    def used_bytes(self) -> int:
        """Bytes accounted for, at most `max_bytes`."""
        return self._bytes

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, which becomes the most recently used one, or None."""
        value = self._protected.get(key)
        if value is not None:
            self._protected.move_to_end(key)
            return value
        value = self._probation.pop(key, None)
        if value is not None:
            self._protect(key, value)
        return value

    def peek(self, key: bytes) -> bytes | None:
        """The value of `key` or None; not a use."""
        value = self._protected.get(key)
        return self._probation.get(key) if value is None else value

    def refresh(self, key: bytes, value: bytes) -> None:
        """Replaces the value of `key`, if it is there, by one of equal length; not a use."""
        for segment in (self._protected, self._probation):
            if key in segment:
                segment[key] = value

    def put(self, key: bytes, value: bytes, *, pinned: bool) -> None:
        """Keeps `value`, replacing what is there.

        Args:
            key: Name of the entry.
            value: What to keep; refused where it alone would not fit.
            pinned: Goes to the protected segment at once; else to probation, unless it is protected already.
        """
        size = _size(key, value)
        if size > self._max_bytes:
            self.discard(key)
            return
        protected = pinned or key in self._protected
        self.discard(key)
        self._bytes += size
        if protected:
            self._protect(key, value)
        else:
            self._probation[key] = value
        self._evict()

    def discard(self, key: bytes) -> None:
        """Forgets `key`."""
        value = self._probation.pop(key, None)
        if value is None:
            value = self._protected.pop(key, None)
            if value is None:
                return
            self._protected_bytes -= _size(key, value)
        self._bytes -= _size(key, value)

    def _protect(self, key: bytes, value: bytes) -> None:
        self._protected[key] = value
        self._protected_bytes += _size(key, value)
        while self._protected_bytes > self._protected_max:
            old_key, old_value = self._protected.popitem(last=False)
            self._protected_bytes -= _size(old_key, old_value)
            self._probation[old_key] = old_value

    def _evict(self) -> None:
        while self._bytes > self._max_bytes:
            segment = self._probation or self._protected
            key, value = segment.popitem(last=False)
            size = _size(key, value)
            self._bytes -= size
            if segment is self._protected:
                self._protected_bytes -= size
            self.evicted_entries += 1


def _size(key: bytes, value: bytes) -> int:
    return getsizeof(key) + getsizeof(value) + ENTRY_OVERHEAD_BYTES
