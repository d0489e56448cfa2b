"""Which of the best reference's new words an answer lacks: head of the phrase, modifiers, names, members of a list."""

import re
from collections.abc import Collection, Sequence
from math import nan
from typing import Final

from gradewire_server.metrics.correctness.features.words import FUNCTION_WORDS, STOP_WORDS, Said, core_of, recall, share
from gradewire_server.metrics.text.lemmas import known_words

_ALL: Final = 0.99
"""Recall from which on a part is there."""
# Between modifiers and a head stand none of these but "and": an English phrase ends before them.
_BEHIND_HEAD: Final = FUNCTION_WORDS - {"a", "an", "the", "and", "or", "his", "her", "their", "its", "one"}
_COMMA: Final = re.compile(r"[,;:(]")


def missing_features(
    best: Said, parts: Sequence[Said], said: Collection[str], asked: Collection[str]
) -> dict[str, float]:
    """What of the best reference an answer has, by the place of a word; NaN where it has no such word.

    Args:
        best: SMILE's best reference.
        parts: Its parts between commas and "and".
        said: Words of the answer, other forms among them.
        asked: Words of the question.

    Returns:
        `head_recall`: whether the head of the reference's phrase is there. `modifier_recall`: share of its other new
        words. `name_recall`: share of its new words that no dictionary has, names mostly. `member_recall`: share of
        the parts of a list that are there as a whole.
    """
    core = core_of(best)
    new = [word for word in dict.fromkeys(core.content) if word not in asked]
    head = head_of(core)
    names = [word for word in new if word.isalpha() and word not in known_words()]
    members = [recall(part, said, asked) >= _ALL for part in parts] if len(parts) > 1 else []
    return {
        "head_recall": float(head in said) if head in new else nan,
        "modifier_recall": share(word in said for word in new if word != head),
        "name_recall": share(word in said for word in names),
        "member_recall": share(members),
    }


def head_of(reference: Said) -> str:
    """The last word that counts before the first preposition, verb or comma behind one.

    "kitchen" of "a large kitchen in the old house"; of a phrase that begins with such a word, the last one before the
    next.
    """
    words = Said.of(_COMMA.split(reference.raw, 1)[0]).words if _COMMA.search(reference.raw) else reference.words
    head = ""
    for word in words:
        if head and word in _BEHIND_HEAD:
            return head
        if word not in STOP_WORDS:
            head = word
    return head or reference.content[-1]
