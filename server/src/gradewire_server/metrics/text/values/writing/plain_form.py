"""One form of the characters that numbers, units and formulas are written with."""

import re
import unicodedata
from typing import Final

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
