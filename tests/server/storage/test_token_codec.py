"""Token vectors survive the round trip."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.storage import codec, token_codec

_DIMS = 4


def sentence(value: float) -> bytes:
    rounded, _ = codec.round_vectors(np.array([[value, 1, 0, 0]], np.float32))
    return codec.encode_blobs(rounded, np.array([True]))[0]


@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_round_trip(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    tokens = random.normal(size=(count, _DIMS)).astype(np.float32)
    offsets = random.integers(0, 1000, (count, 2)).astype(np.int32)
    ids = random.integers(0, 30_000, count).astype(np.int32)
    blob = token_codec.encode_tokens(sentence(0.5), tokens, offsets, ids)
    assert blob is not None
    read = token_codec.decode_tokens(blob, _DIMS)
    assert np.array_equal(read.tokens, tokens.astype(np.float16).astype(np.float32))
    assert np.array_equal(read.offsets, offsets)
    assert np.array_equal(read.ids, ids)
    assert read.truncated
    assert np.array_equal(read.sentence, codec.decode_blobs([sentence(0.5)], _DIMS)[0][0])
    assert token_codec.sentence_of(blob, _DIMS) == sentence(0.5)


def test_the_sentence_can_be_replaced_by_the_cached_one() -> None:
    blob = token_codec.encode_tokens(
        sentence(0.5), np.ones((2, _DIMS), np.float32), np.zeros((2, 2), np.int32), np.zeros(2, np.int32)
    )
    assert blob is not None
    changed = token_codec.decode_tokens(token_codec.with_sentence(blob, sentence(0.1)), _DIMS)
    assert np.array_equal(changed.sentence, codec.decode_blobs([sentence(0.1)], _DIMS)[0][0])
    assert np.array_equal(changed.tokens, np.ones((2, _DIMS), np.float32))


def test_what_is_not_finite_is_refused() -> None:
    tokens = np.array([[1, 1, 1, np.nan]], np.float32)
    assert token_codec.encode_tokens(sentence(0.5), tokens, np.zeros((1, 2), np.int32), np.zeros(1, np.int32)) is None
