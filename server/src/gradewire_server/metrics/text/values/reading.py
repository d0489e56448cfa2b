"""Reads the values of a text.

In time linear in the text, of which 16 384 characters, 8 192 tokens and 64 values are read: of a longer one three
quarters from its beginning and one from its end, where long answers say what they come to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Final

from gradewire_server.metrics.text.values.amounts.quantities import Quantity
from gradewire_server.metrics.text.values.amounts.quantity_reading import quantity_at
from gradewire_server.metrics.text.values.dates.clock import time_at
from gradewire_server.metrics.text.values.dates.date_reading import date_at
from gradewire_server.metrics.text.values.dates.date_words import DECADES, MONTH_NAMES, SEASONS, WEEKDAYS
from gradewire_server.metrics.text.values.formulas.formula import Formula
from gradewire_server.metrics.text.values.formulas.reading import formulas_of, with_signs
from gradewire_server.metrics.text.values.formulas.relations import Relation
from gradewire_server.metrics.text.values.kinds import Kind
from gradewire_server.metrics.text.values.signs.locants import Locant, locants_of
from gradewire_server.metrics.text.values.signs.ordinals import label_at, ordinal_at
from gradewire_server.metrics.text.values.signs.symbols import Symbol, symbols_of
from gradewire_server.metrics.text.values.standing import DENIES, denied, on_top, side
from gradewire_server.metrics.text.values.value import Content, Value
from gradewire_server.metrics.text.values.writing.number_words import ORDINALS, SCALES, SMALL, TENS, TIMES
from gradewire_server.metrics.text.values.writing.numerals import DURATIONS
from gradewire_server.metrics.text.values.writing.plain_form import plain
from gradewire_server.metrics.text.values.writing.roman_numerals import roman_value
from gradewire_server.metrics.text.values.writing.tokens import DIGITS, Token, tokens_of

MAX_VALUES: Final = 64
"""Values of a text that are compared: where it has more, half of them are its first and half its last ones."""

_BEGINNERS: Final = frozenset({
    *MONTH_NAMES, *WEEKDAYS, *DECADES, *SEASONS, *SMALL, *TENS, *ORDINALS, *TIMES, "ad", "ce", "q", "noon", "midday",
    "midnight", "half", "quarter", "a", "an", "ww", "wwi", "wwii",
})  # fmt: skip
"""Words that a value may begin with."""
_ALL_BEGINNERS: Final = (
    (_BEGINNERS - {"a", "an"}) | set(SCALES) | {"couple", "alpha", "beta", "gamma", "delta", "omega", "sqrt", "pi"}
)
"""One of which a text without digits has, where it has a value: an article alone begins none."""
_SIGNS: Final = frozenset("^*/=<>+(-\u03b1\u03b2\u03b3\u03c9")
_LASTING: Final = re.compile(rf"\ban? (?:{'|'.join(sorted(DURATIONS))})\b")
_WORD: Final = re.compile(r"[a-z]+")
_CUES: Final = ("not", "n't", "never", "neither", "nor", "rather than", "instead of", "as opposed to")
"""One of which every denial has."""
_ON_TOP: Final = ("another", "additional", "extra", "further")
_ROMAN_WORD: Final = re.compile(r"\b[IVXLCDM]+\b")
_ROMAN: Final = frozenset("IVXLCDM")
_KINDS: Final[Mapping[type[Content], Kind]] = {
    Quantity: Kind.QUANTITY,
    Formula: Kind.EXPRESSION,
    Relation: Kind.OPERATOR,
    Symbol: Kind.SYMBOL,
    Locant: Kind.LOCANT,
}


@lru_cache(maxsize=128)
def values_of(text: str) -> tuple[Value, ...]:
    """The values that a text names, in their order.

    Args:
        text: Any text; what is beyond the bounds of this module is left out.
    """
    written = with_signs(plain(text))
    characters = frozenset(written)
    if DIGITS.isdisjoint(characters) and not _begins_in_words(written) and _SIGNS.isdisjoint(characters):
        return ()
    claims = _claims(written, characters)
    tokens = tokens_of(_without(written, claims) if claims else written)
    found: list[tuple[int, Value]] = [(start, value) for start, _, value in claims]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        behind = at + 1
        if token.number is not None or token.lower in _BEGINNERS or (token.word and _is_roman(token.text)):
            value, behind = _value_at(written, tokens, at)
            if value is not None:
                found.append((token.start, value))
        at = behind
    in_order = sorted(found, key=itemgetter(0))
    if len(in_order) > MAX_VALUES:
        in_order = in_order[: MAX_VALUES // 2] + in_order[-MAX_VALUES // 2 :]
    values = _standing(written, in_order)
    if len(values) == 1 and values[0].text.strip(" .!\n") == written.strip(" .!\n"):
        values = [replace(values[0], whole=True)]
    return tuple(values)


def _standing(written: str, found: Sequence[tuple[int, Value]]) -> list[Value]:
    """The values, with what the text around them makes of them where it has a word that may."""
    values = [value for _, value in found]
    lower = written.lower() if found else ""
    if any(cue in lower for cue in _CUES) and DENIES.search(written) is not None:
        values = [
            replace(value, denied=True) if denied(written, start) else value
            for (start, _), value in zip(found, values, strict=True)
        ]
    if any(cue in lower for cue in _ON_TOP):
        values = [
            replace(value, on_top=on_top(written, start, start + len(value.text)))
            for (start, _), value in zip(found, values, strict=True)
        ]
    return values


def _begins_in_words(written: str) -> bool:
    """Whether a text without digits may have a value: a word that begins one, or a Roman numeral."""
    lower = written.lower()
    if not _ALL_BEGINNERS.isdisjoint(_WORD.findall(lower)) or _LASTING.search(lower) is not None:
        return True
    return any(roman_value(word) for word in _ROMAN_WORD.findall(written))


def _is_roman(word: str) -> bool:
    return _ROMAN.issuperset(word) and roman_value(word) is not None


def _claims(written: str, characters: AbstractSet[str]) -> list[tuple[int, int, Value]]:
    """What is read by its signs and not word by word: chemical names, indices, formulas; the first claim counts."""
    found: list[tuple[int, int, Value]] = []
    taken: list[tuple[int, int]] = []
    for start, end, content in islice(_by_signs(written, characters), MAX_VALUES):
        if not any(start < other_end and other_start < end for other_start, other_end in taken):
            taken.append((start, end))
            found.append((start, end, Value(_KINDS[type(content)], written[start:end], content)))
    return sorted(found, key=itemgetter(0))


def _by_signs(written: str, characters: AbstractSet[str]) -> Iterator[tuple[int, int, Content]]:
    yield from locants_of(written, characters)
    yield from symbols_of(written, characters)
    for formula in formulas_of(written, characters):
        yield formula.start, formula.end, formula.content


def _without(written: str, claims: Sequence[tuple[int, int, Value]]) -> str:
    """The text with a mark and blanks for what is claimed, so that places stay."""
    pieces: list[str] = []
    at = 0
    for start, end, _ in claims:
        pieces.extend((written[at:start], ";", " " * (end - start - 1)))
        at = end
    return "".join((*pieces, written[at:]))


def _value_at(written: str, tokens: Sequence[Token], at: int) -> tuple[Value | None, int]:
    """The value that begins at a token, if there is one, and the place to go on from."""
    if (date := date_at(tokens, at)) is not None:
        lies = side(written, tokens[max(0, date[1])].start)
        return Value(Kind.DATE, _text(written, tokens, date[1], date[2]), date[0], side=lies), date[2]
    if (time := time_at(tokens, at)) is not None:
        return Value(Kind.TIME, _text(written, tokens, at, time[1]), time[0]), time[1]
    if (label := label_at(tokens, at)) is not None:
        return Value(Kind.ORDINAL, _text(written, tokens, at - 1, label[1]), label[0]), label[1]
    if (quantity := quantity_at(tokens, at)) is not None:
        amount, start, end = quantity
        noun = tokens[end].lower if amount.unit is None and end < len(tokens) and tokens[end].word else ""
        return Value(Kind.QUANTITY, _text(written, tokens, start, end), amount, noun=noun), end
    if (ordinal := ordinal_at(tokens, at)) is not None:
        return Value(Kind.ORDINAL, _text(written, tokens, at, ordinal[1]), ordinal[0]), ordinal[1]
    return None, at + 1


def _text(written: str, tokens: Sequence[Token], start: int, end: int) -> str:
    return written[tokens[max(0, start)].start : tokens[end - 1].end]
