"""Splits labelled rows by question: what is fitted or selected on the fit split is measured on the held-out split.

By the question's words and not by row, so that no question, however it is written, stands on both sides; by hash, so
that the splits of a file do not depend on its order or on what else is in it.
"""

import hashlib
import re
import unicodedata
from typing import Literal

Half = Literal["a", "b"]

_NO_WORD = re.compile(r"[\W_]+")


def question_key(question: str) -> str:
    """The question as it is compared: NFKC, case-folded, its words parted by one blank; "" where it has none.

    Two questions with the same key are the same question: "Who wrote Hamlet?" and "who  wrote hamlet".
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    return _NO_WORD.sub(" ", folded).strip()


def half_of(question: str) -> Half:
    """The split that a question belongs to: "a", the fit split, or "b", the held-out split.

    The parity of the first byte of BLAKE2b over `question_key` in UTF-8: even is "a".
    """
    return "b" if hashlib.blake2b(question_key(question).encode("utf-8"), digest_size=8).digest()[0] % 2 else "a"
