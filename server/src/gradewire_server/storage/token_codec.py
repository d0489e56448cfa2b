"""Token vectors as bytes: one blob holds a text's token vectors, their offsets and ids, and its sentence vector.

The last two bytes are flags and tier as in a sentence blob; the tier is that of this entry, not of the sentence's.
"""

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import Tier, TokenVectors
from gradewire_server.storage.codec import decode_blobs, with_tier

_COUNT_BYTES = 4


def encode_tokens(
    sentence_blob: bytes, tokens: NDArray[np.float32], offsets: NDArray[np.int32], ids: NDArray[np.int32]
) -> bytes | None:
    """Blob of one text.

    Args:
        sentence_blob: Of the same text; its flags become this blob's.
        tokens: float32[n, dims] of the tokens that stand for text.
        offsets: int32[n, 2].
        ids: int32[n].

    Returns:
        None where a value is not finite.
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
    """The text that `encode_tokens` made `blob` of."""
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
    """The sentence blob inside; of which nobody knows here whether a second level keeps it."""
    return with_tier(blob[-2 * (dims + 1) :], Tier.WINDOW)


def with_sentence(blob: bytes, sentence_blob: bytes) -> bytes:
    """The blob, as what it is kept, with another sentence vector inside."""
    return blob[: -len(sentence_blob)] + sentence_blob[:-1] + blob[-1:]


def is_whole(payload: bytes, dims: int) -> bool:
    """Whether a blob without its last two bytes is as long as it says."""
    count = int.from_bytes(payload[:_COUNT_BYTES], "little")
    return len(payload) == _COUNT_BYTES + count * (12 + 2 * dims) + 2 * dims
