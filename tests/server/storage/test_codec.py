"""A stored value is exactly what was stored under that key, or nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from gradewire_server.domain.needs import Tier
from gradewire_server.storage import codec
from gradewire_server.storage import codec as token_codec
from gradewire_server.storage.codec import (
    LOGIT_DIMS,
    EntryKind,
    decode_logits,
    encode_logit,
    encode_tokens,
    is_complete,
    pack,
    unpack,
    with_tier,
)

_DIMS = 8
_ROWS = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 6), st.just(_DIMS)), elements=st.floats(-1, 1, width=32)
).filter(lambda rows: bool((np.abs(rows).max(axis=1) > 0.01).all()))


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def blobs_of(rows: NDArray[np.float32], truncated: list[bool] | None = None) -> list[bytes]:
    rounded, good = codec.round_vectors(rows)
    assert good.all()
    return codec.encode_blobs(rounded, np.array(truncated or [False] * len(rows)))


@given(_ROWS, st.data())
def test_a_body_gives_the_rounded_vector_back(rows: NDArray[np.float32], data: st.DataObject) -> None:
    truncated = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    values, flags = codec.decode_blobs(blobs_of(unit(rows), truncated), _DIMS)
    assert values.dtype == np.float32
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-6)
    assert np.abs(values - unit(rows)).max() < 1e-3  # float16 keeps 11 bits
    assert flags.tolist() == truncated


@given(_ROWS)
def test_decoding_does_not_depend_on_the_batch(rows: NDArray[np.float32]) -> None:
    blobs = blobs_of(unit(rows))
    together, _ = codec.decode_blobs(blobs, _DIMS)
    for row, blob in enumerate(blobs):
        alone, _ = codec.decode_blobs([blob], _DIMS)
        assert np.abs(alone[0] - together[row]).max() <= 1e-7


def test_nothing_decodes_to_nothing() -> None:
    values, truncated = codec.decode_blobs([], _DIMS)
    assert values.shape == (0, _DIMS)
    assert truncated.shape == (0,)


@given(key=st.binary(max_size=80), rows=_ROWS, truncated=st.booleans(), expires_unix_s=st.sampled_from([0, 1, 2**31]))
def test_a_packed_value_opens_with_its_key(
    key: bytes, rows: NDArray[np.float32], *, truncated: bool, expires_unix_s: int
) -> None:
    blob = blobs_of(unit(rows)[:1], [truncated])[0]
    stored = codec.unpack(key, codec.pack(key, blob, _DIMS, expires_unix_s), _DIMS)
    assert stored is not None
    assert stored.expires_unix_s == expires_unix_s
    tier = Tier.PREDICTION if expires_unix_s else Tier.REFERENCE
    assert stored.blob == codec.with_tier(blob, tier)
    assert stored.blob[-1] == tier


@given(st.data(), _ROWS)
def test_no_changed_bit_passes(data: st.DataObject, rows: NDArray[np.float32]) -> None:
    value = codec.pack(b"key", blobs_of(unit(rows)[:1])[0], _DIMS, 7)
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << (bit % 8)
    assert codec.unpack(b"key", bytes(changed), _DIMS) is None


@given(st.binary(max_size=200))
def test_garbage_is_a_miss(value: bytes) -> None:
    assert codec.unpack(b"key", value, _DIMS) is None


@given(_ROWS, st.integers(0, 60))
def test_torn_or_padded_values_are_misses(rows: NDArray[np.float32], size: int) -> None:
    value = codec.pack(b"key", blobs_of(unit(rows)[:1])[0], _DIMS, 0)
    torn = (value + b"\0" * 60)[:size] if size != len(value) else value + b"\0"
    assert codec.unpack(b"key", torn, _DIMS) is None


def test_the_stored_form_stays_as_it_was() -> None:
    packed = codec.pack(b"gradewire:1:a:s:0123456789abcdef", bytes(range(8)) + b"\x01\x02", 4, 7)
    assert packed.hex() == "677701010400070000007b5566ae15a48e210001020304050607"


@given(_ROWS, st.binary(max_size=20), st.binary(max_size=20))
def test_another_keys_value_is_a_miss(rows: NDArray[np.float32], mine: bytes, theirs: bytes) -> None:
    value = codec.pack(theirs, blobs_of(unit(rows)[:1])[0], _DIMS, 0)
    assert (codec.unpack(mine, value, _DIMS) is None) == (mine != theirs)


def test_other_dimensions_are_a_miss() -> None:
    value = codec.pack(b"key", blobs_of(np.ones((1, _DIMS), np.float32))[0], _DIMS, 0)
    assert codec.unpack(b"key", value, _DIMS - 1) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, 0.0])
def test_broken_rows_are_told_from_good_ones(bad: float) -> None:
    rows = np.full((3, _DIMS), 0.5, np.float32)
    rows[1] = bad
    _, good = codec.round_vectors(rows)
    assert good.tolist() == [True, False, True]


@given(hnp.arrays(np.float32, (3, _DIMS), elements=st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, 6e-8]))))
def test_good_rows_are_finite_and_not_zero_in_float16(rows: NDArray[np.float32]) -> None:
    rounded, good = codec.round_vectors(rows)
    assert good.tolist() == (np.isfinite(rounded).all(axis=1) & (rounded != 0).any(axis=1)).tolist()


def test_a_sentence_is_never_read_as_tokens_nor_tokens_as_a_sentence() -> None:
    sentence = blobs_of(np.ones((1, _DIMS), np.float32))[0]
    for written, read in ((EntryKind.SENTENCE, EntryKind.TOKENS), (EntryKind.TOKENS, EntryKind.SENTENCE)):
        value = codec.pack(b"key", sentence, _DIMS, 0, kind=written)
        assert codec.unpack(b"key", value, _DIMS, kind=written) is not None
        assert codec.unpack(b"key", value, _DIMS, kind=read) is None


@given(st.integers(0, 5), st.data())
def test_no_changed_bit_of_token_vectors_passes(count: int, data: st.DataObject) -> None:
    sentence = blobs_of(np.ones((1, _DIMS), np.float32))[0]
    vectors = np.linspace(-2, 2, count * _DIMS, dtype=np.float32).reshape(count, _DIMS)
    blob = encode_tokens(sentence, vectors, np.zeros((count, 2), np.int32), np.arange(count, dtype=np.int32))
    assert blob is not None
    value = codec.pack(b"key", blob, _DIMS, 0, kind=EntryKind.TOKENS)
    stored = codec.unpack(b"key", value, _DIMS, kind=EntryKind.TOKENS)
    assert stored is not None
    assert stored.blob == codec.with_tier(blob, Tier.REFERENCE)
    assert is_complete(stored.blob[:-2], _DIMS)
    assert not is_complete(stored.blob[:-4], _DIMS)
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << (bit % 8)
    assert codec.unpack(b"key", bytes(changed), _DIMS, kind=EntryKind.TOKENS) is None


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


_DIMS_TOKEN_CODEC = 4


def sentence(value: float) -> bytes:
    rounded, _ = codec.round_vectors(np.array([[value, 1, 0, 0]], np.float32))
    return codec.encode_blobs(rounded, np.array([True]))[0]


@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_round_trip(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    tokens = random.normal(size=(count, _DIMS_TOKEN_CODEC)).astype(np.float32)
    offsets = random.integers(0, 1000, (count, 2)).astype(np.int32)
    ids = random.integers(0, 30_000, count).astype(np.int32)
    blob = token_codec.encode_tokens(sentence(0.5), tokens, offsets, ids)
    assert blob is not None
    read = token_codec.decode_tokens(blob, _DIMS_TOKEN_CODEC)
    assert np.array_equal(read.tokens, tokens.astype(np.float16).astype(np.float32))
    assert np.array_equal(read.offsets, offsets)
    assert np.array_equal(read.ids, ids)
    assert read.truncated
    assert np.array_equal(read.sentence, codec.decode_blobs([sentence(0.5)], _DIMS_TOKEN_CODEC)[0][0])
    assert token_codec.sentence_of(blob, _DIMS_TOKEN_CODEC) == sentence(0.5)


def test_the_sentence_can_be_replaced_by_the_cached_one() -> None:
    blob = token_codec.encode_tokens(
        sentence(0.5), np.ones((2, _DIMS_TOKEN_CODEC), np.float32), np.zeros((2, 2), np.int32), np.zeros(2, np.int32)
    )
    assert blob is not None
    changed = token_codec.decode_tokens(token_codec.with_sentence(blob, sentence(0.1)), _DIMS_TOKEN_CODEC)
    assert np.array_equal(changed.sentence, codec.decode_blobs([sentence(0.1)], _DIMS_TOKEN_CODEC)[0][0])
    assert np.array_equal(changed.tokens, np.ones((2, _DIMS_TOKEN_CODEC), np.float32))


def test_what_is_not_finite_is_refused() -> None:
    tokens = np.array([[1, 1, 1, np.nan]], np.float32)
    assert token_codec.encode_tokens(sentence(0.5), tokens, np.zeros((1, 2), np.int32), np.zeros(1, np.int32)) is None
