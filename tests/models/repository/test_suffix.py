"""Texts with a suffix, whole and cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_models.repository.suffix import cut_before_suffix


@pytest.mark.parametrize(
    ("max_tokens", "body_end", "truncated"), [(9, 4, False), (8, 4, False), (7, 3, True), (5, 1, True), (4, 0, True)]
)
def test_tokens_of_the_text_make_room(max_tokens: int, body_end: int, truncated: bool) -> None:  # noqa: FBT001
    # A special token, three tokens of the text, three of the suffix (one of which begins in the text), a special token.
    ends, special = [0, 2, 5, 8, 10, 14, 17, 0], [1, 0, 0, 0, 0, 0, 0, 1]
    found = cut_before_suffix(ends, special, text_end=9, max_tokens=max_tokens)
    assert found == (body_end, 4, truncated)


def test_the_closing_token_stays_though_the_suffix_has_no_tokens() -> None:
    # A special token, three tokens of the text, a special token. A blank in the end has no token of its own.
    found = cut_before_suffix([0, 2, 5, 8, 0], [1, 0, 0, 0, 1], text_end=8, max_tokens=4)
    assert found == (3, 4, True)


@given(
    st.lists(st.integers(1, 5), max_size=12), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(5, 20)
)
def test_the_suffix_always_stays(text: list[int], suffix: list[int], max_tokens: int) -> None:
    ends = [sum([*text, *suffix][: place + 1]) for place in range(len(text) + len(suffix))]
    found = cut_before_suffix(ends, [0] * len(ends), text_end=sum(text), max_tokens=max_tokens)
    assert found.tail_start == len(text)
    assert found.body_end == min(len(text), max_tokens - len(suffix))
    assert found.truncated == (len(text) + len(suffix) > max_tokens)
