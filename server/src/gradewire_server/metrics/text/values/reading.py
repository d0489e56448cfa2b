"""Reads the values of a text.

In time linear in the text, of which the first 8 192 characters, 2 048 tokens and 256 values are read.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.text.values.dates.clock import time_at
from gradewire_server.metrics.text.values.dates.date_reading import DECADES, MONTH_NAMES, SEASONS, WEEKDAYS, date_at
from gradewire_server.metrics.text.values.kinds import Kind
from gradewire_server.metrics.text.values.writing.number_words import ORDINALS, SMALL, TENS, TIMES
from gradewire_server.metrics.text.values.signs.ordinals import label_at, ordinal_at
from gradewire_server.metrics.text.values.writing.plain_form import plain
from gradewire_server.metrics.text.values.amounts.quantity_reading import quantity_at
from gradewire_server.metrics.text.values.writing.roman_numerals import roman_value
from gradewire_server.metrics.text.values.writing.tokens import Token, tokens_of
from gradewire_server.metrics.text.values.value import Value

MAX_VALUES: Final = 256
"""Values of a text that are compared, the first ones."""

_BEGINNERS: Final = frozenset({
    *MONTH_NAMES, *WEEKDAYS, *DECADES, *SEASONS, *SMALL, *TENS, *ORDINALS, *TIMES, "ad", "ce", "q", "noon", "midday",
    "midnight", "half", "a", "an", "ww", "wwi", "wwii",
})  # fmt: skip
"""Words that a value may begin with."""


@lru_cache(maxsize=256)
def values_of(text: str) -> tuple[Value, ...]:
    """The values that a text names, in their order.

    Args:
        text: Any text; what is beyond the bounds of this module is left out.
    """
    written = plain(text)
    tokens = tokens_of(written)
    found: list[Value] = []
    at = 0
    while at < len(tokens) and len(found) < MAX_VALUES:
        token = tokens[at]
        if token.number is None and not (token.word and (token.lower in _BEGINNERS or roman_value(token.text))):
            at += 1
            continue
        value, at = _value_at(written, tokens, at)
        if value is not None:
            found.append(value)
    if len(found) == 1 and found[0].text.strip(" .!\n") == written.strip(" .!\n"):
        found = [replace(found[0], whole=True)]
    return tuple(found)


def _value_at(written: str, tokens: Sequence[Token], at: int) -> tuple[Value | None, int]:
    """The value that begins at a token, if there is one, and the place to go on from."""
    if (date := date_at(tokens, at)) is not None:
        return Value(Kind.DATE, _text(written, tokens, date[1], date[2]), date[0]), date[2]
    if (time := time_at(tokens, at)) is not None:
        return Value(Kind.TIME, _text(written, tokens, at, time[1]), time[0]), time[1]
    if (label := label_at(tokens, at)) is not None:
        return Value(Kind.ORDINAL, _text(written, tokens, at - 1, label[1]), label[0]), label[1]
    if (quantity := quantity_at(tokens, at)) is not None:
        return Value(Kind.QUANTITY, _text(written, tokens, quantity[1], quantity[2]), quantity[0]), quantity[2]
    if (ordinal := ordinal_at(tokens, at)) is not None:
        return Value(Kind.ORDINAL, _text(written, tokens, at, ordinal[1]), ordinal[0]), ordinal[1]
    return None, at + 1


def _text(written: str, tokens: Sequence[Token], start: int, end: int) -> str:
    return written[tokens[max(0, start)].start : tokens[end - 1].end]
