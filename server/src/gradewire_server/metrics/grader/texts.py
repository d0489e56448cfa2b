"""What a grader is asked of an item."""

from collections.abc import Sequence
from typing import Final

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import GradedTexts
from gradewire_server.metrics.checks import is_blank

MAX_CHARACTERS: Final = 32_768
"""Of each text: far more than a grader reads of it, and few enough to be written beside a thousand references."""


def graded_texts(item: Item, references: Sequence[int]) -> tuple[GradedTexts, ...]:
    """The item's question and answer with each of these references; a blank question is empty."""
    question = "" if is_blank(item.question) else item.question[:MAX_CHARACTERS]
    answer = item.prediction[:MAX_CHARACTERS]
    return tuple((question, item.references[index][:MAX_CHARACTERS], answer) for index in references)


def is_shortened(item: Item, references: Sequence[int]) -> bool:
    """Whether `graded_texts` leaves out a part of a text."""
    texts = (item.question, item.prediction, *(item.references[index] for index in references))
    return any(len(text) > MAX_CHARACTERS for text in texts)
