"""Tokenizers for encoders and graders. The tokenizers library releases the GIL."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from typing_extensions import override

from gradewire_models.repository.grader_input import (
    MAX_PIECES,
    MAX_TOKENS,
    QUESTION_TOKENS,
    REFERENCE_TOKENS,
    begin_and_separator,
    grader_input,
)
from gradewire_models.repository.suffix import Cut, cut_before_suffix
from gradewire_server.domain.needs import GradedTexts
from gradewire_server.encoders.word_pieces import WordPieces

_HEAD_CHARACTERS_PER_TOKEN: Final = 32
"""The number of characters in a long text's head for each token that the model reads. This is ample, because a word has
only about 5 characters.
"""
_LONGEST_UNKNOWN_CHARACTERS: Final = 128
"""A word length above WordPiece's limit of 100. A word that is cut to this length is still too long to be known."""
_WORD_ENDS: Final = " \n\t\r"
"""Characters that always end a word. Some tokenizers silently drop other white space."""
_LEAST_READ_CHARACTERS: Final = 32_768
"""The minimum number of characters to read from a text, even if the model accepts few tokens."""
_CHARACTERS_AT_ONCE: Final = 65_536
"""The maximum number of characters in a library call for several texts. Such a call needs about 13 MiB of memory."""

_ONE_BY_ONE: Final = 64
"""The maximum number of texts to tokenize one by one. For a batch, the library starts threads, so a batch takes ten
times as long while encoder runs keep all cores busy.
"""
_AROUND: Final = 2
_MORE: Final = 1
"""The number of tokens to request beyond the model's limit, to detect longer texts."""
_ANSWER_TOKENS: Final = MAX_TOKENS * (MAX_PIECES + 1) // 2


class Tokenized(NamedTuple):
    """A tokenized text. `offsets`, `kept` and `special` are None if offsets were not requested.

    Attributes:
        ids: int32[tokens], including special tokens, at most the model's limit.
        offsets: int32[n, 2], half-open character ranges of the tokens in `kept`.
        kept: int32[n], the text's own tokens (neither special tokens nor prefix nor suffix) as positions in `ids`.
        special: int32[m], the special tokens as positions in `ids`.
        ends: For a grader, each piece's end in `ids`, which contains all pieces in sequence.
    """

    ids: NDArray[np.int32]
    truncated: bool
    offsets: NDArray[np.int32] | None = None
    kept: NDArray[np.int32] | None = None
    special: NDArray[np.int32] | None = None
    ends: tuple[int, ...] = ()

    @property
    def rows(self) -> list[NDArray[np.int32]]:
        """The model's input rows: one row for the whole text or, for a grader, one row per piece."""
        return np.split(self.ids, self.ends[:-1]) if self.ends else [self.ids]


class TokenRows(NamedTuple):
    """A text's tokens, with their character ranges.

    Attributes:
        positions: int32[n], positions in the model's input.
        offsets: int32[n, 2], character ranges in the text; (0, 0) for special tokens.
        ids: int32[n], token IDs; special tokens have the ID -1.
    """

    positions: NDArray[np.int32]
    offsets: NDArray[np.int32]
    ids: NDArray[np.int32]


class TextTokenizer:
    """One model's tokenizer.

    Args:
        max_tokens: The model's limit, including special tokens.
        suffix: Text after every input, whose tokens stay if the input is cut. Special tokens may be spelled out.
        as_text: True to treat spelled-out special tokens as ordinary characters.
    """

    def __init__(self, path: Path, *, max_tokens: int, prefix: str, suffix: str = "", as_text: bool = False) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = as_text
        if suffix:
            # The library would cut the suffix off.
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(max_tokens)
        self._prefix, self._suffix = prefix, suffix
        self._head_characters = _HEAD_CHARACTERS_PER_TOKEN * max_tokens
        # A vocabulary entry is at least as long as the characters that the entry encodes.
        longest = max(map(len, self._tokenizer.get_vocab()), default=0)
        self._read_characters = max(
            max_tokens * max(longest + 1, _LONGEST_UNKNOWN_CHARACTERS), self._head_characters, _LEAST_READ_CHARACTERS
        )
        self._sure_tokens = max_tokens + _LONGEST_UNKNOWN_CHARACTERS
        self._around = np.unique(np.array(self._tokenizer.encode("").ids, np.int32))
        self._max_tokens = max_tokens
        self._pieces = None if suffix else WordPieces.of(self._tokenizer)

    def encode(self, texts: Sequence[str], *, offsets: bool = False) -> list[Tokenized]:
        """Tokenize texts, in about 2 µs per short text of known words (see `WordPieces`), or 14 µs with offsets.

        Read only a text's first `_read_characters` characters, and mark a longer text as truncated.
        """
        tokenized: list[Tokenized] = []
        for part in _parts(texts, self._head_characters):
            tokenized += self._encode_part(part, offsets=offsets)
        return tokenized

    def _encode_part(self, texts: Sequence[str], *, offsets: bool) -> list[Tokenized]:
        if self._pieces is None or offsets:
            return self._encode_with_library(texts, offsets=offsets)
        most = self._head_characters
        inputs = [self._prefix + text if len(text) <= most else "" for text in texts]
        found = self._pieces.encode(inputs, max_tokens=self._max_tokens)
        left = [at for at, each in enumerate(found) if each is None or len(texts[at]) > most]
        others = dict(zip(left, self._encode_with_library([texts[at] for at in left], offsets=False), strict=True))
        return [
            others[at] if each is None or at in others else Tokenized(np.frombuffer(each[0], np.int32), each[1])
            for at, each in enumerate(found)
        ]

    def _encode_with_library(self, texts: Sequence[str], *, offsets: bool) -> list[Tokenized]:
        most = self._head_characters
        heads = [text if len(text) <= most else self._head(text) for text in texts]
        around = bool(self._prefix or self._suffix)
        inputs = [f"{self._prefix}{head}{self._suffix}" for head in heads] if around else heads
        if len(inputs) <= _ONE_BY_ONE:
            encodings = [self._tokenizer.encode(each) for each in inputs]
        else:
            needs_offsets = offsets or self._suffix
            encode_batch = self._tokenizer.encode_batch if needs_offsets else self._tokenizer.encode_batch_fast
            encodings = encode_batch(inputs)
        tokenized = []
        for text, head, encoding in zip(texts, heads, encodings, strict=True):
            if len(head) < len(text) and not self._is_enough(text, head, encoding):
                tokenized.append(self._encode_long(text, offsets=offsets))
            else:
                tokenized.append(self._read(encoding, head, offsets=offsets))
        return tokenized

    def _encode_long(self, text: str, *, offsets: bool) -> Tokenized:
        read = text[: self._read_characters]
        encoding = self._tokenizer.encode(f"{self._prefix}{read}{self._suffix}")
        tokenized = self._read(encoding, read, offsets=offsets)
        if len(read) < len(text) and not tokenized.truncated:
            # A text does not count as truncated if only white space was cut.
            return tokenized._replace(truncated=not text[len(read) :].isspace())
        return tokenized

    def rows(self, tokenized: Tokenized, *, special: bool) -> TokenRows:
        """Return the tokens of a text that was encoded with offsets, without the prefix's tokens.

        If `special` is True, include the special tokens around the text, and give the ID -1 to these tokens and to
        equal tokens inside the text, because metrics must not count them.
        """
        assert tokenized.kept is not None  # noqa: S101 - for mypy: all three are set, or none
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
        """Return the part of a long text that is sure to have enough tokens for the model."""
        # Tokenizing a megabyte only to use 256 tokens would block all other calls.
        for end in range(self._head_characters, min(len(text), self._head_characters + _LONGEST_UNKNOWN_CHARACTERS)):
            if text[end] in _WORD_ENDS:
                return text[:end]
        return text[: self._head_characters]

    def _is_enough(self, text: str, head: str, encoding: Encoding) -> bool:
        """Return True if, up to the model's limit, the head is sure to have the same tokens as the whole text.

        Words never merge across white space. If the head ends inside a word, this word's tokens may differ, so the head
        needs some tokens beyond the limit.
        """
        if self._suffix:
            cut = self._cut(encoding, head)
            known = text[len(head)] in _WORD_ENDS or cut.tail_start >= self._sure_tokens
            return cut.truncated and known
        if not encoding.overflowing:
            return False
        if text[len(head)] in _WORD_ENDS:
            return True
        return len(encoding.ids) + sum(len(further.ids) for further in encoding.overflowing) >= self._sure_tokens

    def _cut(self, encoding: Encoding, text: str) -> Cut:
        """Return which tokens of a text with prefix and suffix the model reads."""
        return cut_before_suffix(
            [end for _, end in encoding.offsets],
            encoding.special_tokens_mask,
            text_end=len(self._prefix) + len(text),
            max_tokens=self._max_tokens,
        )

    def _read(self, encoding: Encoding, text: str, *, offsets: bool) -> Tokenized:
        ids, truncated = np.array(encoding.ids, np.int32), bool(encoding.overflowing)
        tail = len(ids)
        chosen: slice | NDArray[np.intp] = slice(None)
        if self._suffix:
            cut = self._cut(encoding, text)
            chosen, truncated, tail = np.r_[: cut.body_end, cut.tail_start : len(ids)], cut.truncated, cut.body_end
            ids = ids[chosen]
        if not offsets:
            return Tokenized(ids, truncated)
        ranges = np.array(encoding.offsets, np.int32).reshape(-1, 2)[chosen]
        special = np.array(encoding.special_tokens_mask, np.bool_)[chosen]
        of_text = ~special & (ranges[:, 1] > len(self._prefix)) & (np.arange(len(ids)) < tail)
        kept = np.flatnonzero(of_text).astype(np.int32)
        offsets_in_text = np.maximum(ranges[kept] - len(self._prefix), 0).astype(np.int32)
        return Tokenized(ids, truncated, offsets_in_text, kept, np.flatnonzero(special).astype(np.int32))


def _parts(texts: Sequence[str], head_characters: int) -> Iterator[Sequence[str]]:
    """Yield groups of consecutive texts. A group's heads have at most `_CHARACTERS_AT_ONCE` characters in total."""
    start = characters = 0
    for index, text in enumerate(texts):
        size = min(len(text), head_characters)
        if index > start and characters + size > _CHARACTERS_AT_ONCE:
            yield texts[start:index]
            start, characters = index, 0
        characters += size
    yield texts[start:]


def joined(texts: GradedTexts) -> str:
    """Join question, reference and answer into one text, which `parted` can split again."""
    question, reference, answer = texts
    return f"{len(question)} {len(reference)} {question}{reference}{answer}"


def parted(text: str) -> GradedTexts:
    """Split a text from `joined` into question, reference and answer."""
    question_length, reference_length, texts = text.split(" ", 2)
    end = int(question_length)
    answer = end + int(reference_length)
    return texts[:end], texts[end:answer], texts[answer:]


class GraderTokenizer(TextTokenizer):
    """One grader's tokenizer, for texts from `joined`.

    Raises:
        ValueError: The tokenizer adds other tokens to a text than one before and one after it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, max_tokens=_ANSWER_TOKENS + _MORE + _AROUND, prefix="", as_text=True)
        first = max(QUESTION_TOKENS, REFERENCE_TOKENS) + _MORE + _AROUND
        self._short = TextTokenizer(path, max_tokens=first, prefix="", as_text=True)
        self._begin, self._separator = begin_and_separator(Tokenizer.from_file(str(path)))

    @override
    def encode(self, texts: Sequence[str], *, offsets: bool = False) -> list[Tokenized]:
        """Tokenize joined texts. `kept` is always None, because three texts have no common offsets."""
        del offsets
        parts = [parted(text) for text in texts]
        short = self._short.encode([text for question, reference, _ in parts for text in (question, reference)])
        answers = super().encode([answer for _, _, answer in parts])
        return [self._put_together(*group) for group in zip(short[::2], short[1::2], answers, strict=True)]

    def _put_together(self, question: Tokenized, reference: Tokenized, answer: Tokenized) -> Tokenized:
        texts = (_without_special_tokens(each) for each in (question, reference, answer))
        read = grader_input(*texts, begin=self._begin, separator=self._separator)
        # A text may exceed the character limit before it exceeds the token limit.
        cut = question.truncated or reference.truncated or answer.truncated
        return Tokenized(
            ids=np.concatenate([np.array(piece.ids, np.int32) for piece in read.pieces]),
            truncated=read.truncated or cut,
            ends=tuple(accumulate(len(piece.ids) for piece in read.pieces)),
        )


def _without_special_tokens(text: Tokenized) -> list[int]:
    ids: list[int] = text.ids[1:-1].tolist()
    return ids
