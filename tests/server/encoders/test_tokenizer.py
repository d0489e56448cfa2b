"""Token ids are the model's own, whatever the length; offsets point into the text."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tokenizers import Tokenizer

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.tokenizer import TextTokenizer

_WORDS = st.sampled_from(["cat", "Zoë", "antidisestablishmentarianism", "7", "...", "日本", "\n", "e\u0301", "a" * 120])


@pytest.fixture(scope="module")
def path(minilm: Path) -> Path:
    return load_built(minilm, "all-MiniLM-L6-v2").tokenizer_path


@cache
def cut_at(path: Path, max_tokens: int) -> TextTokenizer:
    return TextTokenizer(path, max_tokens=max_tokens, prefix="")


@cache
def plain(path: Path, max_tokens: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


@settings(max_examples=example_count(60))
@given(words=st.lists(_WORDS, max_size=60), glue=st.sampled_from([" ", "  ", "-", ""]), max_tokens=st.integers(4, 12))
def test_a_long_text_gives_the_ids_of_the_whole_text(path: Path, words: list[str], glue: str, max_tokens: int) -> None:
    text = glue.join(words)
    mine = cut_at(path, max_tokens)
    expected = plain(path, max_tokens).encode(text)
    for offsets in (False, True):
        (tokenized,) = mine.encode([text], offsets=offsets)
        assert tokenized.ids.tolist() == expected.ids
        assert tokenized.truncated == bool(expected.overflowing)


def test_exactly_at_the_limit_is_not_truncated(path: Path) -> None:
    tokenizer = TextTokenizer(path, max_tokens=8, prefix="")
    fits, over = tokenizer.encode(["a b c d e f", "a b c d e f g"])
    assert (len(fits.ids), fits.truncated) == (8, False)
    assert (len(over.ids), over.truncated) == (8, True)


def test_trailing_blanks_do_not_make_a_text_too_long(path: Path) -> None:
    tokenizer = TextTokenizer(path, max_tokens=8, prefix="")
    (tokenized,) = tokenizer.encode(["a b c d e f" + " " * 100_000])
    assert not tokenized.truncated


def test_offsets_point_at_the_words(path: Path) -> None:
    text = "Zoë's two cats!"
    (tokenized,) = TextTokenizer(path, max_tokens=32, prefix="").encode([text], offsets=True)
    assert tokenized.offsets is not None
    assert tokenized.kept is not None
    assert [text[start:end] for start, end in tokenized.offsets] == ["Zoë", "'", "s", "two", "cats", "!"]
    assert tokenized.kept.tolist() == list(range(1, len(tokenized.ids) - 1))


def test_a_prefix_is_read_but_stands_for_no_text(path: Path) -> None:
    plain_text = TextTokenizer(path, max_tokens=32, prefix="").encode(["query: two cats"])[0]
    (tokenized,) = TextTokenizer(path, max_tokens=32, prefix="query: ").encode(["two cats"], offsets=True)
    assert np.array_equal(tokenized.ids, plain_text.ids)
    assert tokenized.offsets is not None
    assert tokenized.kept is not None
    assert ["two cats"[start:end] for start, end in tokenized.offsets] == ["two", "cats"]
    assert tokenized.kept.tolist() == [3, 4]
