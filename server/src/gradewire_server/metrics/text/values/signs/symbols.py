"""Signs with an index or a charge: "x_3", "CD4", "H2O", "Na+"; and numbers that are read digit by digit."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.writing.tokens import DIGITS

# An index is no unit: "m2" behind a number. Words with a digit at their end are names: "iPhone4".
_INDEXED: Final = re.compile(r"(?<![\w.'])(?<!\d )([^\W\d_]{1,4})_?(\d{1,3})(?![\w%]|[.,]\d|-\d)")
_GREEK: Final = {
    "alpha": "\u03b1", "beta": "\u03b2", "gamma": "\u03b3", "delta": "\u03b4", "lambda": "\u03bb", "mu": "\u03bc",
    "theta": "\u03b8", "sigma": "\u03c3", "omega": "\u03c9",
}  # fmt: skip
_GREEK_INDEXED: Final = re.compile(rf"(?<![\w.'])({'|'.join(_GREEK)})_?(\d{{1,3}})(?![\w%]|[.,]\d|-\d)")
# Elements with counts: "H2O", "C6H12O6"; "CO2" comes here too.
_COMPOUND: Final = re.compile(r"(?<![\w.])((?:[A-Z][a-z]?\d{0,3}){2,12})(?![\w])")
_CHARGED: Final = re.compile(r"(?<![\w.])((?:[A-Z][a-z]?\d{0,2}){1,4}(?:\^\d?)?[+-])(?![\w+-])")
_DIGITED: Final = re.compile(
    r"(?<![\w.-])(?:v(?:ersion)?\.? ?)?(\d{1,4}(?:\.\d{1,4}){2,4})(?![\w]|\.\d)|"
    r"(?<![\w.-])(\+?\d{1,4}[- ])?((?:\d{3}-)?\d{3}-\d{4})(?![\w-])"
)
# Quarters of a year, years of a budget, the wars.
_NO_SIGNS: Final = frozenset({"Q", "q", "FY", "WW"})
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:\.\d{3})+")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A sign that is told from others by its digits or its charge.

    Attributes:
        stem: What it has in common with others: "\u03bb" of "\u03bb1", "phone" of telephone numbers, "version".
        key: All of it, without "_".
    """

    stem: str
    key: str

    def says(self, reference: "Symbol") -> bool:
        """Whether both are the same sign."""
        return self.key == reference.key

    def contradicts(self, reference: "Symbol") -> bool:
        """Whether both are signs of the same family."""
        return self.stem == reference.stem and self.key != reference.key


def symbols_of(text: str, characters: AbstractSet[str]) -> Iterator[tuple[int, int, Symbol]]:
    """Where signs stand in a text in plain form, and what they are; `characters` are the text's."""
    digits = not DIGITS.isdisjoint(characters)
    if digits and ("." in characters or "-" in characters):
        yield from _digit_by_digit(text)
    if "+" in characters or "-" in characters:
        for match in _CHARGED.finditer(text):
            if len(match[1]) > 2 or match[1][-1] == "+":
                key = match[1].replace("^", "")
                yield match.start(), match.end(), Symbol(re.sub(r"[\d+-]", "", key), key)
    if digits:
        yield from _indexed(text)


def _digit_by_digit(text: str) -> Iterator[tuple[int, int, Symbol]]:
    for match in _DIGITED.finditer(text):
        if match[1] is not None and not _THOUSANDS.fullmatch(match[1]):
            yield match.start(), match.end(), Symbol("version", match[1])
        elif match[3] is not None:
            yield match.start(), match.end(), Symbol("phone", re.sub(r"\D", "", match[0]))


def _indexed(text: str) -> Iterator[tuple[int, int, Symbol]]:
    for match in _COMPOUND.finditer(text):
        stem = "".join(sign for sign in match[1] if not sign.isdigit())
        if stem != match[1] and stem not in _NO_SIGNS and sum(sign.isupper() for sign in stem) > 1:
            yield match.start(), match.end(), Symbol(stem, match[1])
    for match in _GREEK_INDEXED.finditer(text) if any(name in text for name in _GREEK) else ():
        yield match.start(), match.end(), Symbol(_GREEK[match[1]], _GREEK[match[1]] + match[2])
    for match in _INDEXED.finditer(text):
        if _is_sign(match[1]):
            yield match.start(), match.end(), Symbol(match[1], match[1] + match[2])


def _is_sign(letters: str) -> bool:
    """Whether letters before digits are a sign of their own and no word: "x", "CD", "\u03bb"."""
    return letters not in _NO_SIGNS and (len(letters) == 1 or letters.isupper())
