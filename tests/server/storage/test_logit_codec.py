import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.needs import Tier
from gradewire_server.storage.codec import pack, unpack, with_tier
from gradewire_server.storage.keys import LOGIT_DIMS, EntryKind
from gradewire_server.storage.logit_codec import decode_logits, encode_logit

LOGITS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ENTRIES = st.lists(st.tuples(LOGITS, st.booleans(), st.integers(1, 8)), min_size=1, max_size=20)


@given(ENTRIES)
def test_a_logit_comes_back_to_the_last_bit(entries: list[tuple[float, bool, int]]) -> None:
    blobs = [encode_logit(logit, truncated=cut, pieces=pieces) for logit, cut, pieces in entries]
    logits, truncated, pieces = decode_logits(blobs)
    assert logits.tobytes() == np.array([logit for logit, _, _ in entries], np.float32).tobytes()
    assert truncated.tolist() == [cut for _, cut, _ in entries]
    assert pieces.tolist() == [count for _, _, count in entries]


@given(logit=LOGITS, cut=st.booleans(), pieces=st.integers(1, 8))
def test_it_is_the_same_behind_a_store(*, logit: float, cut: bool, pieces: int) -> None:
    blob = with_tier(encode_logit(logit, truncated=cut, pieces=pieces), Tier.PREDICTION)
    value = pack(b"key", blob, LOGIT_DIMS, 99, kind=EntryKind.LOGIT)
    stored = unpack(b"key", value, LOGIT_DIMS, kind=EntryKind.LOGIT)
    assert stored is not None
    assert stored.blob == blob
    assert stored.expires_unix_s == 99


def test_a_torn_or_foreign_value_is_a_miss() -> None:
    value = pack(b"key", encode_logit(1.5, truncated=False, pieces=2), LOGIT_DIMS, 0, kind=EntryKind.LOGIT)
    for wrong in (value[:-1], value + b"x", value[:-1] + bytes([value[-1] ^ 1])):
        assert unpack(b"key", wrong, LOGIT_DIMS, kind=EntryKind.LOGIT) is None
    assert unpack(b"other", value, LOGIT_DIMS, kind=EntryKind.LOGIT) is None
    # Two float16 numbers are a vector of two dimensions: the kind tells them apart.
    assert unpack(b"key", value, LOGIT_DIMS, kind=EntryKind.SENTENCE) is None
