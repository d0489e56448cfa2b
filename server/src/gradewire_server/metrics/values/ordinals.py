"""Parse positions in an order ("third"), and numbers in names ("Apollo 11", "Henry VIII")."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.values.numerals import ORDINAL_ENDINGS, ORDINALS, SMALL, TENS
from gradewire_server.metrics.values.tokens import (
    VOCABULARY,
    Token,
    adjacent,
    lower_at,
    number_at,
    phrase_at,
    phrases,
    roman_value,
    tokens_are,
)
from gradewire_server.metrics.values.units import unit_at

_WORDS: Final = VOCABULARY["ordinals"]
_LABELS: Final = frozenset(_WORDS["labels"].split())
"""Nouns that may have a number even in lower case, like "chapter"."""
_NO_NAMES: Final = frozenset(_WORDS["no_names"].split())
_NO_NOUNS: Final = _NO_NAMES.union(_WORDS["no_nouns"].split())
_BEFORE_SECONDS: Final = frozenset(_WORDS["before_seconds"].split())
_AFTER_KINGS: Final = frozenset(_WORDS["after_kings"].split())
_NO_PREFIXES: Final = frozenset({*_WORDS["no_prefixes"].split(), *SMALL, *TENS})
_FROM_THE_END: Final = phrases(dict.fromkeys(_WORDS["from_the_end"], True))
_NUMBERS: Final = frozenset({"no", "number"})
_MAX_NAME: Final = 3
_MAX_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Ordinal:
    """A position in an order, or a number in a name.

    Attributes:
        number: The number in digits: "8" for "VIII" and "eighth", "3.10" for a version.
        noun: The numbered thing in lower case: "floor", "henry"; may be empty.
        named: True if the noun comes before the number: "Apollo 11".
    """

    number: str
    noun: str
    named: bool = False

    def equals(self, reference: "Ordinal") -> bool:
        """Return True if the numbers are equal, and the nouns are equal or one of them is missing."""
        return self.number == reference.number and self.contradicts(reference)

    def contradicts(self, reference: "Ordinal") -> bool:
        """Return True if both ordinals may refer to the same noun. Different numbers then contradict each other."""
        return not self.noun or not reference.noun or self.noun == reference.noun


def ordinal_number_at(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """Parse "3rd", "third" or "forty-fourth"; return the value and the index after it, or None."""
    if at >= len(tokens):
        return None
    token = tokens[at]
    if token.number is not None:
        behind = at + 1
        counted = token.text.isdecimal() and len(token.text) <= _MAX_DIGITS
        if counted and adjacent(tokens, behind) and lower_at(tokens, behind) in ORDINAL_ENDINGS:
            return int(token.number), behind + 1
        return None
    if token.lower in ORDINALS:
        return ORDINALS[token.lower], at + 1
    if token.lower in TENS:
        rest = at + 1 + (lower_at(tokens, at + 1) == "-")
        value = ORDINALS.get(lower_at(tokens, rest), 0)
        return (TENS[token.lower] + value, rest + 1) if 0 < value < 10 else None
    return None


def ordinal_at(tokens: Sequence[Token], at: int) -> tuple[Ordinal, int] | None:
    """Return the ordinal at a token, including its noun ("the third floor"), and the index of the next token."""
    found = ordinal_number_at(tokens, at)
    if found is None:
        return None
    number, end = found
    last = phrase_at(tokens, end, _FROM_THE_END)
    if last is not None:
        return Ordinal(f"-{number}", ""), last[1]
    before = lower_at(tokens, at - 1)
    if before == "the" and (named := _name(tokens, at - 2)) and tokens[at - 2].end + 1 == tokens[at - 1].start:
        return Ordinal(str(number), named, named=True), end
    noun, behind = _noun(tokens, end)
    if lower_at(tokens, at) == "second" and (
        (before in _BEFORE_SECONDS and not noun) or number_at(tokens, at - 1) is not None or before in {"one", "per"}
    ):
        return None
    return Ordinal(str(number), noun), behind


def label_at(tokens: Sequence[Token], at: int) -> tuple[Ordinal, int] | None:
    """Parse the number at a token if a name precedes the number: "Apollo 11", "World War Two", "WWII"."""
    token = tokens[at]
    war = _WORDS["abbreviated_wars"].get(token.lower)
    if war:
        return Ordinal(war, "war", named=True), at + 1
    if war is not None:
        number = number_at(tokens, at + 1)
        return None if number not in {1.0, 2.0} else (Ordinal(f"{number:.0f}", "war", named=True), at + 2)
    name = _word_before_hyphen(tokens, at) or _name(tokens, at - 1)
    if name in _NUMBERS or (at > 1 and tokens_are(tokens, at - 2, "no", ".")):
        return _number_without_name(tokens, at, name)
    roman = roman_value(token.text) if token.word else None
    if roman is not None:
        return _roman(tokens, at, name, roman)
    numbered = _number_of_name(tokens, at, name) if name else None
    return None if numbered is None else (Ordinal(numbered, name, named=True), at + 1)


def _number_of_name(tokens: Sequence[Token], at: int, name: str) -> str | None:
    """Return the digits of a number that is part of a name; None for an amount: "Weight 60 kg", "ROA 12.4%"."""
    token = tokens[at]
    if token.number is not None:
        unit = unit_at(tokens, at + 1)
        counts = unit is not None and (len(unit.name) > 1 or not unit.name.isalpha())
        whole = "," not in token.text and " " not in token.text and len(token.text) <= _MAX_DIGITS + 2
        return token.text.lstrip("0") or "0" if whole and not counts else None
    value = SMALL.get(token.lower)
    return None if value is None or not (token.text[0].isupper() or name in _LABELS) else str(value)


def _number_without_name(tokens: Sequence[Token], at: int, name: str) -> tuple[Ordinal, int] | None:
    token = tokens[at]
    value = token.whole
    if token.number is None and name != "no":
        value = SMALL.get(token.lower)
    return None if value is None else (Ordinal(str(value), "", named=True), at + 1)


def _word_before_hyphen(tokens: Sequence[Token], at: int) -> str:
    if lower_at(tokens, at - 1) != "-" or not adjacent(tokens, at) or not adjacent(tokens, at - 1) or at < 2:
        return ""
    word = tokens[at - 2]
    return word.lower if word.word and word.lower not in _NO_PREFIXES else ""


def _roman(tokens: Sequence[Token], at: int, name: str, value: int) -> tuple[Ordinal, int] | None:
    """Return a Roman numeral. Without a name, return None for a single letter or a likely word."""
    text = tokens[at].text
    if len(text) == 1:
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        pronoun = text == "I" and following is not None and following.word and following.lower not in _AFTER_KINGS
        if not name or (pronoun and name not in _LABELS):
            return None
        return Ordinal(str(value), name, named=True), at + 1
    if not name and not set(text) <= set("IVX"):
        return None
    return Ordinal(str(value), name, named=bool(name)), at + 1


def _name(tokens: Sequence[Token], at: int) -> str:
    """Return the lower-case token if it is a name before a number, such as "apollo" before "11", or "" if it is not."""
    if not 0 <= at < len(tokens) - 1 or not tokens[at].word or tokens[at + 1].start - tokens[at].end > 1:
        return ""
    token = tokens[at]
    if token.lower in _LABELS:
        return token.lower
    capital = any(letter.isupper() for letter in token.text)
    return token.lower if capital and token.lower not in _NO_NAMES and len(token.text) > 1 else ""


def _noun(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the noun (or the last word of a capitalised name) after an ordinal, and the index after the noun."""
    if at >= len(tokens) or not tokens[at].word or tokens[at].lower in _NO_NOUNS:
        return "", at
    end = at + 1
    if tokens[at].text[0].isupper():
        while end < len(tokens) and end - at < _MAX_NAME and tokens[end].word and tokens[end].text[0].isupper():
            end += 1
    return tokens[end - 1].lower, end
