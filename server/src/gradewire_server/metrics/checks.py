"""What every metric checks of an item before it grades it."""

import re
from typing import Final
from unicodedata import category

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, Status

MAX_QUESTION_CHARACTERS: Final = 32_768
"""Longest question that is put before answers: a thousand references would make a thousand copies of it."""
_WORD_CHARACTER: Final = re.compile(r"\w")
_UNSEEN: Final = frozenset({"Cc", "Cf"})


def is_blank(text: str) -> bool:
    """Whether nothing of a text is seen: white space, control and format characters (Cc, Cf; zero-width ones) only."""
    if _WORD_CHARACTER.search(text):
        return False  # nearly every text, after its first character
    return all(character.isspace() or category(character) in _UNSEEN for character in set(text))


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


def check_question(question: str) -> Failure | None:
    """INVALID_INPUT where the question is blank or too long, for metrics that put it before the answers."""
    if is_blank(question):
        return Failure(Status.INVALID_INPUT, "question: is blank; this metric compares answers together with it")
    if len(question) > MAX_QUESTION_CHARACTERS:
        message = f"question: has {len(question)} characters; before answers it may have {MAX_QUESTION_CHARACTERS}"
        return Failure(Status.INVALID_INPUT, message)
    return None
