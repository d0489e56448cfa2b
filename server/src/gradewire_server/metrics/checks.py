"""Checks that every metric makes of an item before it grades it, and the warning that a part of it was left out."""

import re
from typing import Final
from unicodedata import category

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, Status, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.text.folding import BLANK_PATTERN, FILLERS

MAX_QUESTION_CHARACTERS: Final = 32_768
"""Longest question that is put before answers: a thousand references would make a thousand copies of it."""
_UNSEEN: Final = FILLERS | {BLANK_PATTERN}
_EMPTY_LETTERS: Final = "".join(sorted(filter(str.isalnum, FILLERS)))
"""Hangul fillers: letters of which nothing is seen."""
_WORD_CHARACTER: Final = re.compile(rf"[^\W{_EMPTY_LETTERS}]")
_LETTER_OR_DIGIT: Final = re.compile(rf"[^\W_{_EMPTY_LETTERS}]")
_UNSEEN_KINDS: Final = frozenset({"Cc", "Cf"})


def is_blank(text: str) -> bool:
    """Whether a text shows nothing to a reader.

    It then holds only white space, control and format characters (Cc, Cf; zero-width ones), Hangul fillers, variation
    selectors and the like (Unicode's default ignorable ones), and the blank of Braille.
    """
    if _WORD_CHARACTER.search(text):
        return False  # nearly every text, after its first character
    return all(
        character.isspace() or character in _UNSEEN or category(character) in _UNSEEN_KINDS for character in set(text)
    )


def has_letter_or_digit(text: str) -> bool:
    """Whether a text has a letter or digit that a reader sees."""
    return _LETTER_OR_DIGIT.search(text) is not None


def check_references(references: tuple[str, ...]) -> Failure | None:
    """INVALID_INPUT where there is no reference or a blank one."""
    if not references:
        return Failure(Status.INVALID_INPUT, "references: give at least one right answer")
    for index, reference in enumerate(references):
        if is_blank(reference):
            return Failure(Status.INVALID_INPUT, f"references[{index}]: is blank; leave it out or write the answer")
    return None


def check_item(item: Item) -> Failure | None:
    """INVALID_INPUT as `check_references`, else EMPTY_PREDICTION where the prediction is blank."""
    failure = check_references(item.references)
    if failure is None and is_blank(item.prediction):
        return Failure(
            Status.EMPTY_PREDICTION,
            "prediction: is blank; summaries count it as wrong, beside the mean of scored items",
        )
    return failure


def check_question(
    question: str, *, why: str = "this metric compares answers together with it", where: str = "before answers"
) -> Failure | None:
    """INVALID_INPUT where the question is blank or too long.

    Args:
        question: By default that of a metric that puts it before the answers.
        why: Why it is needed, for the message.
        where: Where it is used, likewise.
    """
    if is_blank(question):
        return Failure(Status.INVALID_INPUT, f"question: is blank; {why}")
    if len(question) > MAX_QUESTION_CHARACTERS:
        message = f"question: has {len(question)} characters; {where} it may have {MAX_QUESTION_CHARACTERS}"
        return Failure(Status.INVALID_INPUT, message)
    return None


def cut_warning(*cut: bool) -> tuple[Warning, ...]:
    """TRUNCATED where any part of an item was looked at only in part."""
    return (Warning.TRUNCATED,) if any(cut) else ()
