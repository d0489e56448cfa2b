"""A memory of words' token IDs, because a tokenizer of BERT's kind reads each word alone and texts repeat words."""

import re
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, Self

import numpy as np
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

_MOST_WORDS: Final = 16_384
"""The number of remembered words after which the memory starts again. They need about 2 MiB, at most 6."""
_LONGEST_WORD: Final = 32
"""The number of characters in the longest remembered word. WordPiece itself has a limit, usually 100."""
_LONGEST_DIVIDED: Final = 16
"""The number of characters up to which a word is divided here. The time grows with the square of its length."""
_ID_BYTES: Final = 4
_PUNCTUATION: Final = re.escape(string.punctuation)
"""ASCII characters that are words of their own for BERT's pre-tokenizer."""


class WordPieces:
    """Token IDs of texts, word by word. Create this object with `of`. Thread-safe.

    A word has the IDs that the library gives it. A word is a run of ASCII letters and digits, an ASCII punctuation
    character, or a run of other characters between spaces, in which the library may find several words.
    """

    def __init__(self, tokenizer: Tokenizer, *, begin: Sequence[int], end: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._piece_id: Callable[[str], int | None] = tokenizer.model.token_to_id
        self._continued: str = tokenizer.model.continuing_subword_prefix
        self._lowercase: bool = tokenizer.normalizer.lowercase
        self._begin, self._end = _bytes(begin), _bytes(end)
        letters = "a-z" if self._lowercase else "A-Za-z"
        self._find = re.compile(rf"[{letters}0-9]+|[{_PUNCTUATION}]").findall
        # The library finds added tokens before it splits the text, and removes control characters inside words.
        added = re.escape("".join(sorted({token.content[0] for token in _added(tokenizer)})))
        self._odd = re.compile(rf"[^\t\n\r -~]|[{added}]" if added else r"[^\t\n\r -~]").search
        self._known: dict[str, bytes] = {"": b""}

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
        known = self._known
        if len(known) > _MOST_WORDS:
            known = self._known = {"": b""}  # other threads may still use the old one
        begin, end = self._begin, self._end
        room = (max_tokens - self.special_tokens) * _ID_BYTES
        encoded: list[bytes | None] = []
        divided: list[tuple[int, list[str]]] = []
        for position, text in enumerate(texts):
            # Windows are in lower case and often have only known words.
            known_ids = self._joined(text, known) if text.islower() else None
            encoded.append(known_ids)
            if known_ids is not None:
                continue
            if (words := self._words(text)) is not None:
                divided.append((position, words))
        missing = [word for word in set(chain.from_iterable([words for _, words in divided])) if word not in known]
        if missing:
            known.update(self._read(missing))
        for position, words in divided:
            encoded[position] = b"".join([known[word] for word in words])
        return [None if ids is None else (b"".join((begin, ids[:room], end)), len(ids) > room) for ids in encoded]

    @staticmethod
    def _joined(text: str, known: Mapping[str, bytes]) -> bytes | None:
        """Return a text's IDs if each part between two spaces equals a known word, which then has the same IDs."""
        try:
            return b"".join([known[part] for part in text.split(" ")])
        except KeyError:
            return None

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
            pieces = self._pieces(word) if len(word) <= _LONGEST_DIVIDED and self._odd(word) is None else []
            if pieces:
                read[word] = b"".join([piece.to_bytes(_ID_BYTES, sys.byteorder) for piece in pieces])
            else:
                divided.append(word)
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

    def _pieces(self, word: str) -> list[int]:
        """Return the IDs of a plain word's longest pieces from left to right; empty if the word is unknown.

        This is WordPiece. For short words, it takes a third of the library's time.
        """
        piece_id, ids, start, prefix = self._piece_id, [], 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                if (found := piece_id(prefix + word[start:end])) is not None:
                    break
            else:
                return []
            ids.append(found)
            start, prefix = end, self._continued
        return ids


def _bytes(ids: Sequence[int]) -> bytes:
    return np.array(ids, np.int32).tobytes()


def _added(tokenizer: Tokenizer) -> Sequence[AddedToken]:
    return [*tokenizer.get_added_tokens_decoder().values()]


def _splits_words(token: AddedToken) -> bool:
    """Return True if an added token begins with ASCII punctuation, and if words around it do not change it."""
    is_plain = token.special and not token.single_word and " " not in token.content
    return is_plain and token.content[:1] in set(string.punctuation)
