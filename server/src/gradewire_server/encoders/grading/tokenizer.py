"""What a grader reads of joined texts, as token ids."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer
from typing_extensions import override

from gradewire_models.repository.grader_input import (
    MAX_PIECES,
    MAX_TOKENS,
    QUESTION_TOKENS,
    REFERENCE_TOKENS,
    grader_input,
)
from gradewire_server.encoders.grading.texts import parted
from gradewire_server.encoders.tokenizer import TextTokenizer, Tokenized

_AROUND: Final = 2
_MORE: Final = 1
"""Tokens beyond those that are read, so that it shows that there are more."""
_ANSWER_TOKENS: Final = MAX_TOKENS * (MAX_PIECES + 1) // 2


class GraderTokenizer(TextTokenizer):
    """The tokenizer of one grader; of texts as `joined` makes them.

    Args:
        path: tokenizer.json.

    Raises:
        KeyError: It has no token [CLS] or [SEP].
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, max_tokens=_ANSWER_TOKENS + _MORE + _AROUND, prefix="", as_text=True)
        first = max(QUESTION_TOKENS, REFERENCE_TOKENS) + _MORE + _AROUND
        self._short = TextTokenizer(path, max_tokens=first, prefix="", as_text=True)
        vocabulary = Tokenizer.from_file(str(path)).get_vocab()
        self._begin, self._separator = vocabulary["[CLS]"], vocabulary["[SEP]"]

    @override
    def encode(self, texts: Sequence[str], *, offsets: bool = False) -> list[Tokenized]:
        """Tokenizes joined texts; there are no offsets in three texts, and `kept` stays None."""
        del offsets
        parts = [parted(text) for text in texts]
        short = self._short.encode([text for question, reference, _ in parts for text in (question, reference)])
        answers = super().encode([answer for _, _, answer in parts])
        return [self._put_together(*group) for group in zip(short[::2], short[1::2], answers, strict=True)]

    def _put_together(self, question: Tokenized, reference: Tokenized, answer: Tokenized) -> Tokenized:
        texts = (_bare(each) for each in (question, reference, answer))
        read = grader_input(*texts, begin=self._begin, separator=self._separator)
        # A text may be cut by its characters, before it has too many tokens.
        cut = question.truncated or reference.truncated or answer.truncated
        return Tokenized(
            ids=np.concatenate([np.array(piece.ids, np.int32) for piece in read.pieces]),
            truncated=read.truncated or cut,
            ends=tuple(accumulate(len(piece.ids) for piece in read.pieces)),
        )


def _bare(text: Tokenized) -> list[int]:
    """Ids without those that the tokenizer puts around a text."""
    ids: list[int] = text.ids[1:-1].tolist()
    return ids
