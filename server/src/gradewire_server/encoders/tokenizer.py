"""Text to token ids, with the tokenizers library; releases the GIL while it works."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

_HEAD_CHARACTERS_PER_TOKEN = 32
"""Of a text with more characters than this times the token limit, the beginning is tried first (words have about 5)."""

_ONE_BY_ONE = 64
"""Up to so many texts are tokenized one after another. A batch is spread over the library's threads, and where encoder
runs keep all cores busy, waiting for these takes ten times as long as the work."""


@dataclass(frozen=True, slots=True)
class Tokenized:
    """One text as the model reads it.

    Attributes:
        ids: int32[tokens], special tokens included, at most the model's limit.
        truncated: The text was longer.
        offsets: int32[n, 2], half-open character ranges in the text of the tokens that are not special; None where
            they were not asked for.
        kept: int32[n], positions of those tokens in `ids`; None likewise.
        special: int32[m], positions of the tokens that the model puts around every text; None likewise.
    """

    ids: NDArray[np.int32]
    truncated: bool
    offsets: NDArray[np.int32] | None = None
    kept: NDArray[np.int32] | None = None
    special: NDArray[np.int32] | None = None


class TokenRows(NamedTuple):
    """Which of a text's tokens are answered, and what they stand for.

    Attributes:
        positions: int32[n], in the text as the model reads it.
        offsets: int32[n, 2], (0, 0) for special tokens.
        ids: int32[n], -1 for special tokens.
    """

    positions: NDArray[np.int32]
    offsets: NDArray[np.int32]
    ids: NDArray[np.int32]


class TextTokenizer:
    """The tokenizer of one model.

    Args:
        path: tokenizer.json.
        max_tokens: The model's limit, special tokens included.
        prefix: Put before every text.
    """

    def __init__(self, path: Path, *, max_tokens: int, prefix: str) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._prefix = prefix
        self._head_characters = _HEAD_CHARACTERS_PER_TOKEN * max_tokens
        self._around = np.unique(np.array(self._tokenizer.encode("").ids, np.int32))

    def encode(self, texts: Sequence[str], *, offsets: bool = False) -> list[Tokenized]:
        """Tokenizes `texts`; about 9 µs for a short one, half as much again with offsets."""
        inputs = [self._prefix + self._head(text) for text in texts]
        if len(inputs) <= _ONE_BY_ONE:
            encodings = [self._tokenizer.encode(each) for each in inputs]
        else:
            encode_batch = self._tokenizer.encode_batch if offsets else self._tokenizer.encode_batch_fast
            encodings = encode_batch(inputs)
        tokenized = []
        for text, encoding in zip(texts, encodings, strict=True):
            exact = encoding
            if len(text) > self._head_characters and not encoding.overflowing:
                exact = self._tokenizer.encode(self._prefix + text)
            tokenized.append(self._read(exact, offsets=offsets))
        return tokenized

    def rows(self, tokenized: Tokenized, *, special: bool) -> TokenRows:
        """The tokens of a text that was encoded with offsets; those of the prefix are never among them.

        Args:
            tokenized: The text.
            special: Whether the tokens around it are wanted. The same tokens written into the text are then numbered -1
                as well: nobody shall write what weighs nothing for the model's own and something for the metric.
        """
        assert tokenized.kept is not None  # noqa: S101 - for mypy: the three are there or none
        assert tokenized.offsets is not None  # noqa: S101 - as above
        assert tokenized.special is not None  # noqa: S101 - as above
        if not special:
            return TokenRows(tokenized.kept, tokenized.offsets, tokenized.ids[tokenized.kept])
        positions = np.concatenate((tokenized.kept, tokenized.special))
        around = np.zeros((len(tokenized.special), 2), np.int32)
        order = np.argsort(positions)
        positions = positions[order]
        ids = tokenized.ids[positions]
        ids[np.isin(ids, self._around)] = -1
        return TokenRows(positions, np.concatenate((tokenized.offsets, around))[order], ids)

    def _head(self, text: str) -> str:
        # Tokenizing a megabyte to keep 256 tokens would block everyone else. Words never merge across white space, so
        # a beginning that overflows the limit gives the same ids as the whole text; `encode` checks that it does.
        if len(text) <= self._head_characters:
            return text
        for end in range(self._head_characters, min(len(text), 2 * self._head_characters)):
            if text[end].isspace():
                return text[:end]
        return text

    def _read(self, encoding: Encoding, *, offsets: bool) -> Tokenized:
        ids, truncated = np.array(encoding.ids, np.int32), bool(encoding.overflowing)
        if not offsets:
            return Tokenized(ids, truncated)
        ranges = np.array(encoding.offsets, np.int32).reshape(-1, 2)
        special = np.array(encoding.special_tokens_mask, np.bool_)
        # A token of the prefix stands for no part of the text either.
        of_text = ~special & (ranges[:, 1] > len(self._prefix))
        kept = np.flatnonzero(of_text).astype(np.int32)
        offsets_in_text = np.maximum(ranges[kept] - len(self._prefix), 0).astype(np.int32)
        return Tokenized(ids, truncated, offsets_in_text, kept, np.flatnonzero(special).astype(np.int32))
