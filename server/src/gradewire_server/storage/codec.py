"""Encode cache entries: hashes of texts as names, and vectors, token vectors and logits as bytes."""

import struct
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel
from gradewire_server.domain.needs import Tier, TokenVectors

VectorKind: TypeAlias = int
"""SENTENCE, WORDS or a layer number."""

SENTENCE: Final[VectorKind] = -1
WORDS: Final[VectorKind] = 0
"""The last layer's token vectors without special tokens. Kinds from 1 on are layers with special tokens."""

Blobs: TypeAlias = Mapping[VectorKind, bytes]
"""A text's blobs by kind. SENTENCE is always present, because every pass computes the sentence vector."""


FORMAT_VERSION = 1
HASH_BYTES = 16
_WITHOUT_SIGN: Final = np.uint16(0x7FFF)
_NOT_FINITE: Final = np.uint16(0x7C00)
"""The bits of infinity in float16."""
LOGIT_DIMS = 2
"""The number of float16 values that take the space of a logit (float32)."""

_HEADER = struct.Struct("<2sBBHI8s")  # magic, version, flags, dims, expiry in Unix seconds (0: never), check
_CHECKED = _HEADER.size - 8

_VERSION = 1
_TRUNCATED = 1

_COUNT_BYTES = 4

_BLOB: Final = struct.Struct("<fBB")
_LOGIT_TRUNCATED: Final = 1
_PIECES_SHIFT: Final = 1


class EntryKind(StrEnum):
    """The type of an entry's content. Keys for token vectors with special tokens also contain the layer number."""

    SENTENCE = "s"
    TOKENS = "t"
    VERDICT = "v"
    LOGIT = "g"


class KeySpace:
    """The keys for one namespace, one model and one kind of entry.

    In the process, an entry's name is a hash of the space's prefix and the text. Stores outside the process use
    `stored`, with a readable prefix. For token vectors with special tokens, `layer` is the vectors' layer; for all
    other entries, `layer` is 0. `input_prefix` is the text that the model requires before its input.
    """

    __slots__ = ("_seed", "kind", "prefix")

    def __init__(
        self, *, namespace: str, model_digest: str, kind: EntryKind, layer: int = 0, input_prefix: str = ""
    ) -> None:
        self.kind = kind
        self.prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:{model_digest}:{kind}{layer or ''}:".encode()
        self._seed = blake2b(self.prefix, digest_size=HASH_BYTES)
        # The length keeps prefix and text apart: ("ab", "c") and ("a", "bc") are different inputs.
        encoded = input_prefix.encode()
        self._seed.update(len(encoded).to_bytes(4, "little") + encoded)

    def hashes(self, texts: Sequence[str]) -> list[bytes]:
        """Return the in-process names of `texts` (NFC, no lone surrogates), 16 bytes each."""
        seed = self._seed
        hashes = []
        for text in texts:
            state = seed.copy()
            state.update(text.encode())
            hashes.append(state.digest())
        return hashes

    def stored(self, text_hash: bytes) -> bytes:
        """Return an entry's name in a store outside the process."""
        return self.prefix + text_hash


class ModelSpaces:
    """The names for a model's cache entries, and the entries' size.

    Attributes:
        dims: The number of float16 values in an entry: a vector's dimensions, or LOGIT_DIMS for a grader's logit.
        sentence: The keys for sentence vectors or for a grader's logits.
    """

    __slots__ = ("_digest", "_kind", "_make", "_prefix", "_spaces", "dims", "sentence")

    @classmethod
    def of_model(cls, namespace: str, model: BuiltModel) -> Self:
        """Return the names for a built encoder or grader."""
        if model.kind == "grader":
            return cls(namespace=namespace, digest=model.digest, dims=LOGIT_DIMS, kind=EntryKind.LOGIT)
        return cls(namespace=namespace, digest=model.digest, prefix=model.prefix, dims=model.dims)

    def __init__(
        self, *, namespace: str, digest: str, dims: int, prefix: str = "", kind: EntryKind = EntryKind.SENTENCE
    ) -> None:
        self.dims = dims
        self._digest, self._prefix, self._kind = digest, prefix, kind
        self._make = partial(KeySpace, namespace=namespace, model_digest=digest, input_prefix=prefix)
        self.sentence = self._make(kind=kind)
        self._spaces = {SENTENCE: self.sentence}

    def within(self, namespace: str) -> "ModelSpaces":
        """Return the names for the same model in a different namespace."""
        return ModelSpaces(
            namespace=namespace, digest=self._digest, prefix=self._prefix, dims=self.dims, kind=self._kind
        )

    def of(self, kind: VectorKind) -> KeySpace:
        """Return the keys for entries of `kind`."""
        space = self._spaces.get(kind)
        if space is None:
            space = self._spaces[kind] = self._make(kind=EntryKind.TOKENS, layer=kind)
        return space


_MAGIC = {EntryKind.SENTENCE: b"gw", EntryKind.TOKENS: b"gt", EntryKind.VERDICT: b"gv", EntryKind.LOGIT: b"gl"}
_ONE_LENGTH = frozenset({EntryKind.SENTENCE, EntryKind.LOGIT})


class Stored(NamedTuple):
    """A checked value from a second level, with its tier. An expiry of 0 means that the value never expires."""

    blob: bytes
    expires_unix_s: int


def round_vectors(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
    """Round vectors, so that computed vectors and cached vectors have the same values.

    Returns:
        float16[n, dims], and bool[n], which is True for rows that are finite and not zero. Cache only these rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the second result excludes overflows, which are not finite
        rounded = vectors.astype(np.float16)
    # Without their signs, float16 values have the order of their bits, and those that are not finite come last.
    largest = (rounded.view(np.uint16) & _WITHOUT_SIGN).max(axis=1, initial=0)
    return rounded, (largest > 0) & (largest < _NOT_FINITE)


def encode_blobs(vectors: NDArray[np.float16], truncated: NDArray[np.bool_]) -> list[bytes]:
    """Return the blobs of float16[n, dims]. The blobs state that no second level stores them yet."""
    n, dims = vectors.shape
    rows = np.empty((n, dims + 1), np.uint16)
    rows[:, :dims] = vectors.view(np.uint16)
    rows[:, dims] = truncated.astype(np.uint16) | (Tier.WINDOW << 8)  # low byte: flags; high byte: tier
    flat, size = rows.astype("<u2", copy=False).tobytes(), 2 * (dims + 1)
    return [flat[start : start + size] for start in range(0, n * size, size)]


def decode_blobs(blobs: Sequence[bytes], dims: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return (float32[n, dims] with unit rows, truncated bool[n])."""
    rows = np.frombuffer(b"".join(blobs), "<u2").reshape(len(blobs), dims + 1)
    values = rows[:, :dims].view(np.float16).astype(np.float32)
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return values, (rows[:, dims] & _TRUNCATED).astype(np.bool_)


def with_tier(blob: bytes, tier: Tier) -> bytes:
    """Return the blob, marked as stored in the second level with `tier`."""
    return blob[:-1] + bytes((tier,))


def pack(key: bytes, blob: bytes, dims: int, expires_unix_s: int, *, kind: EntryKind = EntryKind.SENTENCE) -> bytes:
    """Pack a blob into the value to store under `key` outside the process."""
    payload = blob[:-2]
    head = _HEADER.pack(_MAGIC[kind], _VERSION, blob[-2], dims, expires_unix_s, b"")[:_CHECKED]
    return b"".join((head, _check(key, head, payload), payload))


def unpack(key: bytes, value: bytes, dims: int, *, kind: EntryKind = EntryKind.SENTENCE) -> Stored | None:
    """Return the entry in `value`; None unless the entry is valid for `key`, `kind` and `dims`."""
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
    # The key's length comes first, so that bytes cannot move between key and head.
    return blake2b(b"".join((len(key).to_bytes(4, "little"), key, head, payload)), digest_size=8).digest()


def encode_tokens(
    sentence_blob: bytes, tokens: NDArray[np.float32], offsets: NDArray[np.int32], ids: NDArray[np.int32]
) -> bytes | None:
    """Return the blob of a text's token vectors, with its sentence blob and flags; None if a value is not finite.

    Args:
        sentence_blob: The same text's sentence blob.
        tokens: float32[n, dims], token vectors.
        offsets: int32[n, 2], each token's start and end.
        ids: int32[n], token IDs.
    """
    with np.errstate(over="ignore"):
        rounded = tokens.astype("<f2")
    if not np.isfinite(rounded).all():
        return None
    count = len(offsets).to_bytes(_COUNT_BYTES, "little")
    return b"".join(
        (count, offsets.astype("<i4").tobytes(), ids.astype("<i4").tobytes(), rounded.tobytes(), sentence_blob)
    )


def decode_tokens(blob: bytes, dims: int) -> TokenVectors:
    """Return the token vectors in a blob from `encode_tokens`."""
    count = int.from_bytes(blob[:_COUNT_BYTES], "little")
    offsets_end = _COUNT_BYTES + 8 * count
    ids_end = offsets_end + 4 * count
    tokens_end = ids_end + 2 * count * dims
    sentence, truncated = decode_blobs([blob[tokens_end:]], dims)
    return TokenVectors(
        sentence=sentence[0],
        tokens=np.frombuffer(blob, "<f2", count * dims, ids_end).reshape(count, dims).astype(np.float32),
        offsets=np.frombuffer(blob, "<i4", 2 * count, _COUNT_BYTES).reshape(count, 2).astype(np.int32),
        ids=np.frombuffer(blob, "<i4", count, offsets_end).astype(np.int32),
        truncated=bool(truncated[0]),
    )


def sentence_of(blob: bytes, dims: int) -> bytes:
    """Return a token blob's sentence blob, marked as not yet stored in the second level."""
    return with_tier(blob[-2 * (dims + 1) :], Tier.WINDOW)


def with_sentence(blob: bytes, sentence_blob: bytes) -> bytes:
    """Return a token blob with its sentence vector replaced and its tier unchanged."""
    return blob[: -len(sentence_blob)] + sentence_blob[:-1] + blob[-1:]


def is_complete(payload: bytes, dims: int) -> bool:
    """Return True if `payload`, a token blob without its last two bytes, has the length that its header states."""
    count = int.from_bytes(payload[:_COUNT_BYTES], "little")
    return len(payload) == _COUNT_BYTES + count * (12 + 2 * dims) + 2 * dims


def encode_logit(logit: float, *, truncated: bool, pieces: int) -> bytes:
    """Return the blob of a logit for an answer of 1 to 127 `pieces`.

    The blob states that no second level stores it yet.
    """
    return _BLOB.pack(logit, truncated * _LOGIT_TRUNCATED | pieces << _PIECES_SHIFT, Tier.WINDOW)


def decode_logits(blobs: Sequence[bytes]) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int32]]:
    """Return (logits float32[n], truncated bool[n], pieces int32[n])."""
    rows = np.frombuffer(b"".join(blobs), np.dtype([("logit", "<f4"), ("flags", "u1"), ("tier", "u1")]))
    flags = rows["flags"].astype(np.int32)
    return rows["logit"].astype(np.float32), (flags & _LOGIT_TRUNCATED).astype(np.bool_), flags >> _PIECES_SHIFT
