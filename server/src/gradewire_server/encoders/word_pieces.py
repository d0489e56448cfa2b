"""A memory of words' token IDs, because a tokenizer of BERT's kind reads each word alone and texts repeat words."""

import re
import string
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, Self

import numpy as np
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

_MOST_WORDS: Final = 32_768
"""The number of remembered words after which the memory starts again, with about 6 MiB."""
_LONGEST_WORD: Final = 32
"""The number of characters in the longest remembered word. WordPiece itself has a limit, usually 100."""
_ID_BYTES: Final = 4
_PUNCTUATION: Final = re.escape(string.punctuation)
"""ASCII characters that are words of their own for BERT's pre-tokenizer."""


class WordPieces:
    """Token IDs of texts, word by word. Create this object with `of`. Thread-safe.

    The library gives the IDs of every word. A word is a run of ASCII letters and digits, an ASCII punctuation
    character, or a run of other characters between spaces, in which the library may find several words.
    """

    def __init__(self, tokenizer: Tokenizer, *, begin: Sequence[int], end: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._piece: Callable[[str], int | None] = tokenizer.model.token_to_id
        self._lowercase: bool = tokenizer.normalizer.lowercase
        self._begin, self._end = _bytes(begin), _bytes(end)
        letters = "a-z" if self._lowercase else "A-Za-z"
        self._find = re.compile(rf"[{letters}0-9]+|[{_PUNCTUATION}]").findall
        # The library finds added tokens before it splits the text, and removes control characters inside words.
        added = re.escape("".join(sorted({token.content[0] for token in _added(tokenizer)})))
        self._odd = re.compile(rf"[^\t\n\r -~]|[{added}]" if added else r"[^\t\n\r -~]").search
        self._known: dict[str, bytes] = {}

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self | None:
        """Return the word pieces of a tokenizer, or None if it may read words together.

        The tokenizer's settings must not change afterwards, except for the maximum number of tokens.
        """
        if not (
            isinstance(tokenizer.normalizer, BertNormalizer)
            and isinstance(tokenizer.pre_tokenizer, BertPreTokenizer)
            and isinstance(tokenizer.model, WordPiece)
            and tokenizer.model.max_input_chars_per_word >= _LONGEST_WORD
            and all(_splits_words(token) for token in _added(tokenizer))
        ):
            return None
        alone, whole = tokenizer.encode("a", add_special_tokens=False).ids, tokenizer.encode("a")
        around = whole.special_tokens_mask
        begin = next((at for at, special in enumerate(around) if not special), 0)
        end = begin + len(alone)
        if not alone or whole.ids[begin:end] != alone or not all(around[end:]) or whole.overflowing:
            return None
        return cls(tokenizer, begin=whole.ids[:begin], end=whole.ids[end:])

    @property
    def special_tokens(self) -> int:
        """The number of special tokens around each text."""
        return (len(self._begin) + len(self._end)) // _ID_BYTES

    def encode(self, texts: Sequence[str], *, max_tokens: int) -> list[tuple[bytes, bool] | None]:
        """Return each text's IDs as the bytes of int32[tokens], and True if the text was cut to `max_tokens`.

        The IDs include the special tokens. The result is None for a text with a word that is too long to remember.

        Raises:
            TypeError: A text has a lone surrogate, which the library does not accept.
        """
        split = [self._words(text) for text in texts]
        known = self._known
        if len(known) > _MOST_WORDS:
            known = self._known = {}  # other threads may still use the old one
        missing = [word for word in set(chain.from_iterable(filter(None, split))) if word not in known]
        if missing:
            known.update(self._read(missing))
        begin, end = self._begin, self._end
        room = (max_tokens - self.special_tokens) * _ID_BYTES
        encoded: list[tuple[bytes, bool] | None] = []
        for words in split:
            if words is None:
                encoded.append(None)
                continue
            ids = b"".join([known[word] for word in words])
            cut = len(ids) > room
            encoded.append((b"".join((begin, ids[:room] if cut else ids, end)), cut))
        return encoded

    def _words(self, text: str) -> list[str] | None:
        odd, find = self._odd, self._find
        if odd(text) is None:
            words = find(text.lower() if self._lowercase else text)
        else:
            words = []
            for part in text.split(" "):  # the only white space that every normalizer keeps
                if odd(part) is not None:
                    words.append(part)
                elif part:
                    words += find(part.lower() if self._lowercase else part)
        return None if words and max(map(len, words)) > _LONGEST_WORD else words

    def _read(self, words: Sequence[str]) -> dict[str, bytes]:
        """Return the IDs of words that the memory lacks."""
        read = {}
        divided = []
        for word in words:
            piece = self._piece(word) if self._odd(word) is None else None
            if piece is None:
                divided.append(word)
            else:
                read[word] = piece.to_bytes(_ID_BYTES, sys.byteorder, signed=True)
        if divided:
            found = self._tokenizer.encode(divided, is_pretokenized=True, add_special_tokens=False)
            ids = np.array([*chain(found.ids, *(each.ids for each in found.overflowing))], np.int32)
            of_word = np.array([*chain(found.word_ids, *(each.word_ids for each in found.overflowing))], np.intp)
            ends = np.searchsorted(of_word, np.arange(len(divided)), side="right") * _ID_BYTES
            flat, start = ids.tobytes(), 0
            for word, end in zip(divided, ends.tolist(), strict=True):
                read[word] = flat[start:end]
                start = end
        return read


def _bytes(ids: Sequence[int]) -> bytes:
    return np.array(ids, np.int32).tobytes()


def _added(tokenizer: Tokenizer) -> Sequence[AddedToken]:
    return [*tokenizer.get_added_tokens_decoder().values()]


def _splits_words(token: AddedToken) -> bool:
    """Return True if an added token begins with ASCII punctuation, and if words around it do not change it."""
    is_plain = token.special and not token.single_word and " " not in token.content
    return is_plain and token.content[:1] in set(string.punctuation)
