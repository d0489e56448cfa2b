"""A text as words, numbers and signs, each with its place, in one plain form of characters."""

import re
import unicodedata
from itertools import islice
from math import isfinite
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 16_384
"""Characters of a text that values are read from; of a longer one the first three quarters of them and its last."""

_TAIL: Final = MAX_CHARACTERS // 4
_LAST_PIECE: Final = re.compile(r"(?<!\S)\S{1,64}\Z")
_FIRST_PIECE: Final = re.compile(r"\A\S{1,64}(?!\S)")
_MOST_EXPANSION: Final = 4
_NESTING: Final = 4
"""Fractions within fractions that are unfolded."""

_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni")
_SUBSCRIPTS: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢⱼₖ", "0123456789+-nijk")
_SUPERSCRIPT: Final = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ]+")
_SUBSCRIPT: Final = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢⱼₖ]+")
_CHARGE: Final = re.compile(r"\d?[+-]")
_SIGNS: Final = str.maketrans({
    "\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": " - ", "\ufe63": "-",
    "\u2044": "/", "\u2215": "/", "\u00f7": "/", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u2217": "*",
    "\u2264": "<=", "\u2a7d": "<=", "\u2265": ">=", "\u2a7e": ">=", "\u2260": "!=", "\u2248": "~", "\u2243": "~",
    "\u2192": "->", "\u21d2": "->", "\u27f6": "->", "\u221a": "sqrt", "\u03c0": " pi ", "\u00b1": "+/-",
    "\u2018": "'", "\u2019": "'", "\u2032": "'", "\u201c": '"', "\u201d": '"', "\u2033": '"', "\u00a0": " ",
    "\u202f": " ", "\u2009": " ", "\u00ba": "°",
})  # fmt: skip
_VULGAR: Final = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")

_DOTTED_DATE: Final = re.compile(r"(?<![\w.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})(?![\w]|\.\d)")
_APOSTROPHES: Final = re.compile(r"(?<![\w.,'])\d{1,3}(?:'\d{3}){1,5}(?![\w'\"])")

_PI: Final = re.compile(r"(?<=\d)pi\b")

_FRACTION: Final = re.compile(r"\\[dt]?frac\s{0,9}\{([^{}]{1,200})\}\s{0,9}\{([^{}]{1,200})\}")
_ROOT: Final = re.compile(r"\\sqrt\s{0,9}\{([^{}]{1,200})\}")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|mathbf|boxed|operatorname)\s{0,9}\{([^{}]{0,200})\}")
_COMMANDS: Final = {
    "times": "*", "cdot": "*", "div": "/", "pi": " pi ", "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "ne": "!=",
    "neq": "!=", "lt": "<", "gt": ">", "to": "->", "rightarrow": "->", "approx": "~", "pm": "+/-", "circ": "°",
    "alpha": "\u03b1", "beta": "\u03b2", "gamma": "\u03b3", "delta": "\u03b4", "lambda": "\u03bb", "mu": "\u03bc",
    "theta": "\u03b8", "sigma": "\u03c3", "omega": "\u03c9", "left": "", "right": "", "quad": " ", "sqrt": "sqrt",
    "sin": "sin", "cos": "cos", "tan": "tan",
    "ln": "ln", "log": "log", "exp": "exp", "infty": "∞", "degree": "°",
}  # fmt: skip
_COMMAND: Final = re.compile(r"\\([A-Za-z]{1,20})|\\[,;:! ()\[\]]")


def plain(text: str) -> str:
    """A text, of a long one both ends, in plain form: its signs, raised and lowered digits, foreign digits and LaTeX.

    "m²" is "m^2", "λ₁" is "λ1", "≤" is "<=", an en dash is "-", "3½" is "3 1/2", "25.12.1999" is
    "1999-12-25", "12'345" is "12,345". Letters keep their case.
    """
    begin = text if len(text) <= MAX_CHARACTERS else _both_ends(text)
    if not begin.isascii():
        begin = _ascii_signs(begin)
    if "." in begin:
        begin = _DOTTED_DATE.sub(r"\3-\2-\1", begin)
    if "'" in begin:
        begin = _APOSTROPHES.sub(lambda number: number[0].replace("'", ","), begin)
    if "pi" in begin:
        begin = _PI.sub(" pi ", begin)
    return _without_latex(begin) if "\\" in begin else begin


def _both_ends(text: str) -> str:
    """Three quarters of what is read from the beginning and one from the end, with words and numbers as a whole."""
    head, tail = text[: MAX_CHARACTERS - _TAIL - 1], text[-_TAIL:]
    return f"{_LAST_PIECE.sub('', head)}\n{_FIRST_PIECE.sub('', tail)}"


def _ascii_signs(text: str) -> str:
    raised = _SUPERSCRIPT.sub(_raised, _SUBSCRIPT.sub(lambda run: run[0].translate(_SUBSCRIPTS), text))
    apart = _VULGAR.sub(" ", raised).translate(_SIGNS)
    folded = unicodedata.normalize("NFKC", apart).replace("\u2044", "/")
    digits = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), folded)
    return digits[: _MOST_EXPANSION * len(text)]


def _raised(run: re.Match[str]) -> str:
    written = run[0].translate(_SUPERSCRIPTS)
    return written if _CHARGE.fullmatch(written) else f"^{written}"


def _without_latex(text: str) -> str:
    for _ in range(_NESTING):
        found = _TEXT.sub(r"\1", _ROOT.sub(r"sqrt(\1)", _FRACTION.sub(r"((\1)/(\2))", text)))
        if found == text:
            break
        text = found
    named = _COMMAND.sub(lambda command: _COMMANDS.get(command[1] or "", " "), text)
    return named.replace("$", "").replace("{", "(").replace("}", ")")


MAX_TOKENS: Final = 8_192
"""Words, numbers and signs of a text that values are read from."""
_MAX_DIGITS: Final = 40
DIGITS: Final = frozenset("0123456789")
"""The digits of a text in plain form."""

# Commas, blanks or points part thousands; a point with one group behind it is a decimal point.
_NUMBER: Final = (
    r"\d{1,3}(?:,\d{3}){1,9}(?![\d,]\d)(?:\.\d+)?|\d{1,2}(?:,\d{2}){1,4},\d{3}(?!\d)|\d{1,3}(?:\.\d{3}){2,9}(?![\d.])"
    r"|(?<![\d.])\d{1,3}(?: \d{3}){1,9}(?![\d.])|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?![\w.]))?|(?<![\w.])\.\d+"
)
_TOKEN: Final = re.compile(
    rf"(?P<number>{_NUMBER})|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?|\u00b0)|(?P<sign><=|>=|!=|->|\+/-|\*\*|[^\w\s])"
)


class Token(NamedTuple):
    """One word, number or sign.

    Attributes:
        text: As written, in plain form.
        lower: In small letters.
        start: Where it begins in the plain text.
        end: Where it ends.
        number: Its value, for one that begins with a digit or a decimal point; at least 0.
        place: What its last digit that is not a trailing zero counts: 100 for "8,800", 0.01 for "3.14".
        word: Whether it is a word.
    """

    text: str
    lower: str
    start: int
    end: int
    number: float | None = None
    place: float = 1.0
    word: bool = False

    @property
    def whole(self) -> int | None:
        """The number of a plain run of at most four digits, None for all else."""
        return int(self.text) if self.number is not None and len(self.text) <= 4 and self.text.isdecimal() else None


def tokens_of(text: str) -> list[Token]:
    """The first MAX_TOKENS tokens of a text in plain form; numbers beyond what floats hold are words without value."""
    return [_token(match) for match in islice(_TOKEN.finditer(text), MAX_TOKENS)]


def _token(match: re.Match[str]) -> Token:
    text = match[0]
    if match.lastgroup != "number":
        return Token(text, text.lower(), match.start(), match.end(), word=match.lastgroup == "word")
    number, place = read_number(text)
    return Token(text, text, match.start(), match.end(), number if isfinite(number) else None, place)


def read_number(text: str) -> tuple[float, float]:
    """Value and place of a number in digits; points part thousands where there are several."""
    digits = text.replace(",", "").replace(" ", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    if len(digits) > _MAX_DIGITS and "." not in digits:
        return float("inf"), 1.0
    mantissa, _, power = digits.lower().partition("e")
    whole, _, decimals = mantissa[:_MAX_DIGITS].partition(".")
    scale = float(f"1e{power}") if power else 1.0
    if decimals:
        return float(digits[: _MAX_DIGITS * 2]), scale * 10.0 ** -len(decimals)
    zeros = len(whole) - len(whole.rstrip("0"))
    return float(digits), scale * 10.0 ** min(zeros, len(whole) - 1)


_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN: Final = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def roman_value(word: str) -> int | None:
    """1 to 3 999 for a numeral in capitals, as it is written by rule; None for all else ("IIX", "Mix", "")."""
    if not word or _ROMAN.fullmatch(word) is None:
        return None
    values = [_DIGITS[letter] for letter in word]
    return sum(-value if value < behind else value for value, behind in zip(values, [*values[1:], 0], strict=True))
