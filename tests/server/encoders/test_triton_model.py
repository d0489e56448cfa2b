"""Padded lengths are few, never too long, and what is padded reads as it was."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.encoders.encoder import pad
from gradewire_server.encoders.triton_model import padded_tokens

_LIMITS = st.sampled_from([16, 100, 128, 150, 256, 384, 512, 8192])


@given(st.data(), _LIMITS)
def test_a_padded_length_holds_the_text_and_stays_within_the_model(data: st.DataObject, max_tokens: int) -> None:
    tokens = data.draw(st.integers(1, max_tokens))
    padded = padded_tokens(tokens, max_tokens=max_tokens)
    assert tokens <= padded <= max_tokens
    assert padded <= max(8, 1.34 * tokens + 8)
    longer = data.draw(st.integers(tokens, max_tokens))
    assert padded <= padded_tokens(longer, max_tokens=max_tokens)


def test_lengths_are_few() -> None:
    assert len({padded_tokens(tokens, max_tokens=256) for tokens in range(1, 257)}) == 8 + 4 + 4


@given(st.lists(st.lists(st.integers(1, 30_000), min_size=1, max_size=100), min_size=1, max_size=12))
def test_padding_keeps_every_id_and_masks_the_rest(texts: list[list[int]]) -> None:
    width = padded_tokens(max(map(len, texts)), max_tokens=100)
    ids, mask = pad([np.array(text, np.int32) for text in texts], width)
    assert ids.shape == mask.shape == (len(texts), width)
    assert ids.dtype == mask.dtype == np.int64
    assert [row[keep == 1].tolist() for row, keep in zip(ids, mask, strict=True)] == texts
    assert mask.sum() == sum(map(len, texts))
    assert not ids[mask == 0].any()
