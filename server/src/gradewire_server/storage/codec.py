"""Vectors as bytes.

In the process an entry is its *blob*: a float16 vector, a byte of flags and a byte with the tier it is kept as
(WINDOW: by this process only). Blobs of one model have one length, so n of them become float32[n, dims] by one join.
Outside the process the vector travels behind a header with a check over key and payload: what is torn, foreign or of
another format is a miss, never an answer.
"""

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import Tier
from gradewire_server.storage.keys import EntryKind

_HEADER = struct.Struct("<2sBBHI8s")  # magic, version, flags, dims, expiry in Unix seconds (0: never), check
_CHECKED = _HEADER.size - 8
_MAGIC = {EntryKind.SENTENCE: b"gw", EntryKind.TOKENS: b"gt", EntryKind.VERDICT: b"gv", EntryKind.LOGIT: b"gl"}
_ONE_LENGTH = frozenset({EntryKind.SENTENCE, EntryKind.LOGIT})
_VERSION = 1
_TRUNCATED = 1


class Stored(NamedTuple):
    """A value from a second level that passed its check.

    Attributes:
        blob: With the tier it is stored as.
        expires_unix_s: 0 for never.
    """

    blob: bytes
    expires_unix_s: int


def round_vectors(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
    """Rounds to what every use sees, first or cached.

    Returns:
        float16[n, dims], and bool[n]: the row is finite and not zero. Other rows must not enter the cache.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not finite, which the second value says
        rounded = vectors.astype(np.float16)
        squares = np.einsum("ij,ij->i", rounded, rounded, dtype=np.float32)
    return rounded, np.isfinite(squares) & (squares > 0)


def encode_blobs(vectors: NDArray[np.float16], truncated: NDArray[np.bool_]) -> list[bytes]:
    """Blobs of float16[n, dims] that no second level keeps yet."""
    n, dims = vectors.shape
    rows = np.empty((n, dims + 1), np.uint16)
    rows[:, :dims] = vectors.view(np.uint16)
    rows[:, dims] = truncated.astype(np.uint16) | (Tier.WINDOW << 8)  # low byte: flags; high byte: tier
    flat, size = rows.astype("<u2", copy=False).tobytes(), 2 * (dims + 1)
    return [flat[start : start + size] for start in range(0, n * size, size)]


def decode_blobs(blobs: Sequence[bytes], dims: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Blobs to (float32[n, dims] of unit rows, truncated bool[n])."""
    rows = np.frombuffer(b"".join(blobs), "<u2").reshape(len(blobs), dims + 1)
    values = rows[:, :dims].view(np.float16).astype(np.float32)
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return values, (rows[:, dims] & _TRUNCATED).astype(np.bool_)


def with_tier(blob: bytes, tier: Tier) -> bytes:
    """The blob of an entry that the second level keeps as `tier`."""
    return blob[:-1] + bytes((tier,))


def pack(key: bytes, blob: bytes, dims: int, expires_unix_s: int, *, kind: EntryKind = EntryKind.SENTENCE) -> bytes:
    """A blob as the value to store under `key` outside the process."""
    payload = blob[:-2]
    head = _HEADER.pack(_MAGIC[kind], _VERSION, blob[-2], dims, expires_unix_s, b"")[:_CHECKED]
    return b"".join((head, _check(key, head, payload), payload))


def unpack(key: bytes, value: bytes, dims: int, *, kind: EntryKind = EntryKind.SENTENCE) -> Stored | None:
    """The entry that `value` holds for `key`, or None where it holds none of this kind and of `dims` dimensions."""
    if len(value) < _HEADER.size + 2 * dims or (kind in _ONE_LENGTH and len(value) > _HEADER.size + 2 * dims):
        return None
    magic, version, flags, stored_dims, expires_unix_s, check = _HEADER.unpack_from(value)
    payload = value[_HEADER.size :]
    if (magic, version, stored_dims) != (_MAGIC[kind], _VERSION, dims):
        return None
    if check != _check(key, value[:_CHECKED], payload):
        return None
    tier = Tier.PREDICTION if expires_unix_s else Tier.REFERENCE
    return Stored(payload + bytes((flags, tier)), expires_unix_s)


def _check(key: bytes, head: bytes, payload: bytes) -> bytes:
    # The key's length first, so that no shift of bytes between key and head checks alike.
    state = blake2b(len(key).to_bytes(4, "little"), digest_size=8)
    state.update(key)
    state.update(head)
    state.update(payload)
    return state.digest()
