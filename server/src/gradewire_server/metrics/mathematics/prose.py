"""Recognise plain prose, which is no mathematical object as a whole; most references are."""

import re
from collections.abc import Iterator
from typing import Final

from gradewire_server.metrics.mathematics.parsing import FUNCTIONS
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["mathematics"]["words"]
_STEM_LETTERS: Final = 4

_LETTERS: Final = re.compile(r"[A-Za-z .,'&\"-]+")
_ORDINARY: Final = re.compile(r"(?<![A-Za-z])[A-Z]?[a-z]{4,}(?![A-Za-z])")
"""A word that cannot be a product of variables, which has at most three letters."""
_PRODUCT: Final = re.compile(rf"[A-Za-z]{{0,3}}(?:pi|{'|'.join(FUNCTIONS)})")
"""A longer word that is a product or a function: "capi" is c * a * pi."""
_RUN: Final = re.compile(r"[A-Za-z]+")
_EITHER_LETTER: Final = re.compile(r"\[([A-Za-z])\w\]")
_ESCAPE: Final = re.compile(r"\\[A-Za-z]")
_LEADING: Final = re.compile(
    f"(?:{'|'.join(sorted(set(_RUN.findall(_ESCAPE.sub(' ', _WORDS['leading'])))))})+[a-z]?", re.IGNORECASE
)
"""Words that may stand before an object, which are read even without blanks between them."""
_ELSEWHERE: Final = (
    "positive negative nonpositive nonnegative real reals number numbers even geraden odd ungeraden integers ganzen"
    " zahlen entiers nombres enteros pairs pares impairs impares base basis binary octal decimal hexadecimal from between"
    " both with ends endpoints inclusive included exclusive excluded without except such that which sein sind times"
)
"""Words of the patterns of `reading`, `phrases` and `notation` that the vocabulary lacks."""
# These are read in any place, or leave out other words: "hardly any of the infinitely many", "Paris equals x".
_MATHEMATICAL: Final = re.compile(
    r"(?i:infini|unendlich|integ|whole|entier|entero|ganz|root of|(?:for|pour|para|where|with) |hex|binar|octal|decimal"
    r"|bas(?:e|is) |equal|gleich|igual)"
    rf"|(?<![A-Za-z])(?:e|i|pi|{'|'.join(FUNCTIONS)})+(?![A-Za-z])"
)


def _strings(found: object) -> Iterator[str]:
    if isinstance(found, dict):
        for each in found.values():
            yield from _strings(each)
    elif isinstance(found, str):
        yield found


def _stems() -> frozenset[str]:
    """Return the first letters of all longer words that the readers of objects know."""
    patterns = (*_strings(_WORDS), *VOCABULARY["mathematics"]["spoken"], VOCABULARY["numerals"]["small"], _ELSEWHERE)
    plain = (_ESCAPE.sub(" ", _EITHER_LETTER.sub(r"\1", pattern)) for pattern in patterns)
    return frozenset(word[:_STEM_LETTERS].lower() for each in plain for word in _RUN.findall(each))


_STEMS: Final = _stems()


def reads_as_prose(text: str) -> bool:
    """Return True if a text is no mathematical object and gives no values to names, whatever the question is.

    It is fast. It returns True only for ASCII letters and blanks with a word that can be neither a part of a formula
    nor one of the words in which objects are written.
    """
    if _LETTERS.fullmatch(text) is None or _MATHEMATICAL.search(text) is not None:
        return False
    return any(
        word[:_STEM_LETTERS].lower() not in _STEMS
        and _PRODUCT.fullmatch(word) is None
        and _LEADING.fullmatch(word) is None
        for word in _ORDINARY.findall(text)
    )
