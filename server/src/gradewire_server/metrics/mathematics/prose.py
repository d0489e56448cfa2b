"""Recognise plain prose, which is no mathematical object as a whole; most references are."""

import re
from collections.abc import Iterator
from typing import Final

from gradewire_server.metrics.mathematics.claims import UNITS
from gradewire_server.metrics.mathematics.parsing import FUNCTIONS
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["mathematics"]["words"]
_LETTERS: Final = re.compile(r"[A-Za-z .,;:'&\"!?/()-]+")
_RUN: Final = re.compile(r"[A-Za-z]+")
_FEWEST_LETTERS: Final = 4
"""Number of letters in a row that cannot be a product of variables."""
_FUNCTION: Final = re.compile(rf"(?:pi|{'|'.join(FUNCTIONS)})(?![a-z])")
"""A part of a word that the parser of expressions reads apart from the letters before it: "capi" is c * a * pi."""
_EITHER_LETTER: Final = re.compile(r"\[([A-Za-z])\w\]")
_ESCAPE: Final = re.compile(r"\\[A-Za-z]")
_LEADING: Final = re.compile(
    f"(?:{'|'.join(sorted(set(_RUN.findall(_ESCAPE.sub(' ', _WORDS['leading'])))))})+[a-z]?", re.IGNORECASE
)
"""Words that may stand before an object, which are read even without blanks between them."""
_ELSEWHERE: Final = (
    "positive negative nonpositive nonnegative real reals number numbers even geraden odd ungeraden integers ganzen"
    " zahlen entiers nombres enteros pairs pares impairs impares base basis binary octal decimal hexadecimal from"
    " between both with end ends endpoints inclusive included exclusive excluded without except such that which sein"
    " sind times numpy sympy torch array matrix tensor vector diag recurring recurs"
)
"""Words of the patterns of `reading`, `phrases` and `notation` that the vocabulary lacks or has in pieces."""
_LONG: Final = 6
"""Number of letters by which longer words of the vocabulary are known: "solution" and its plurals."""
# These are read in any place, or leave out other words: "hardly any of the infinitely many", "Paris equals x".
_MATHEMATICAL: Final = re.compile(
    r"(?i:infini|unendlich|integ|whole|entier|entero|ganz|root of|(?:for|pour|para|where|with) |hex|binar|octal|decimal"
    r"|bas(?:e|is) |equal|gleich|igual|multiple|divisible|vielfach)"
    rf"|(?<![A-Za-z])(?:e|i|pi|{'|'.join(FUNCTIONS)})+(?![A-Za-z])"
)


def _strings(found: object) -> Iterator[str]:
    if isinstance(found, dict):
        for each in found.values():
            yield from _strings(each)
    elif isinstance(found, str):
        yield found


def _vocabulary() -> frozenset[str]:
    """Return the words that the readers of objects know, cut to `_LONG` letters, also without a last letter."""
    patterns = (*_strings(_WORDS), *VOCABULARY["mathematics"]["spoken"], VOCABULARY["numerals"]["small"], _ELSEWHERE)
    plain = (_ESCAPE.sub(" ", _EITHER_LETTER.sub(r"\1", pattern)) for pattern in patterns)
    words = {*UNITS, *(word for each in plain for word in _RUN.findall(each))}
    return frozenset(form.lower()[:_LONG] for word in words for form in (word, word[:-1]))


_KNOWN: Final = _vocabulary()


def reads_as_prose(text: str) -> bool:
    """Return True if a text is no mathematical object and gives no values to names, whatever the question is.

    It is fast. It returns True only for ASCII letters and punctuation with a word that can be neither a part of a
    formula nor one of the words in which objects are written.
    """
    if _LETTERS.fullmatch(text) is None or _MATHEMATICAL.search(text) is not None:
        return False
    return any(map(_is_ordinary, _RUN.findall(text)))


def _is_ordinary(word: str) -> bool:
    if len(word) < _FEWEST_LETTERS or word[:_LONG].lower() in _KNOWN:
        return False
    function = _FUNCTION.search(word)
    return (function is None or function.start() >= _FEWEST_LETTERS) and _LEADING.fullmatch(word) is None
