"""Stretches of a text that are written as formulas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_TOKENS: Final = 64
"""Tokens of a formula; longer ones are left alone."""

_FUNCTIONS: Final = ("sqrt", "cbrt", "sin", "cos", "tan", "ln", "log10", "log2", "log", "exp", "abs")
FUNCTIONS: Final = frozenset(_FUNCTIONS)
"""Functions of one argument."""
RELATIONS: Final = frozenset({"=", "<", ">", "<=", ">=", "!="})
"""Between two sides."""
_TOKEN: Final = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3}){1,5}(?![\d,])|\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3}(?!\w))?|(?<![\w.])\.\d{1,40})"
    r"|(?P<function>(?:sqrt|cbrt|sin|cos|tan|ln|log10|log2|log|exp|abs)(?![a-z]))|(?P<constant>pi(?![a-z]))"
    r"|(?P<name>[A-Za-z\u03b1-\u03c9]{1,3}(?![^\W\d_]|'))"
    r"|(?P<relation><=|>=|!=|==|=|<(?!-)|>)|(?P<operator>\*\*|[-+*/^!])(?!>)|(?P<bracket>[()])|(?P<other>[^\W\d_]+'?|[^\w\s]|_)"
)
# What formulas are about is hardly ever an English word.
_WORDS: Final = frozenset({
    "is", "in", "of", "or", "to", "as", "at", "by", "be", "if", "it", "an", "on", "no", "so", "we", "he", "do", "up",
    "us", "my", "me", "am", "go", "and", "the", "for", "are", "was", "but", "not", "all", "can", "had", "her", "has",
    "him", "his", "how", "its", "may", "new", "now", "old", "one", "our", "out", "own", "say", "see", "she", "too",
    "two", "use", "way", "who", "you", "yes", "any", "day", "get", "let", "man", "put", "set", "did", "per", "six",
    "ten", "km", "kg", "cm", "mm", "ml", "min", "hr", "ft", "mi", "lb", "oz", "kw", "mw", "mph", "usd", "eur", "gbp",
    "ad", "bc", "ce", "pm", "st", "nd", "rd", "th", "co", "vs", "eg", "ie", "etc", "aka", "tv", "uk", "eu", "usa",
    "mid",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sign:
    """A token of a formula.

    Attributes:
        kind: "number", "function", "constant", "name", "relation", "operator" or "bracket".
        text: As written, "**" as "^" and "==" as "=".
        start: Where it begins in the text.
        end: Where it ends.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def opens(self) -> bool:
        """Whether an operand begins with it."""
        return self.kind in {"number", "function", "constant", "name"} or self.text == "("

    @property
    def closes(self) -> bool:
        """Whether an operand ends with it."""
        return self.kind in {"number", "constant", "name"} or self.text in {")", "!"}


def runs_of(text: str) -> Iterator[list[Sign]]:
    """Stretches in which operands and operators follow one another, of two tokens at least and at most MAX_TOKENS."""
    run: list[Sign] = []
    for match in _TOKEN.finditer(text):
        sign = _sign(match)
        if sign is None or (run and _apart(run[-1], sign)):
            yield from _ended(run)
            run = []
        if sign is not None:
            run.append(sign)
    yield from _ended(run)


def _sign(match: re.Match[str]) -> Sign | None:
    kind, text = match.lastgroup or "other", match[0]
    if kind == "other" or (kind == "name" and text.lower() in _WORDS):
        return None
    if (
        text == "x"
        and match.string[match.start() - 1 : match.start()].isdigit()
        and match.string[match.end() : match.end() + 1].isdigit()
    ):
        kind, text = "operator", "*"
    if kind == "name" and len(text) > 1 and not text.islower():
        return None
    return Sign(kind, {"**": "^", "==": "="}.get(text, text), match.start(), match.end())


def _apart(last: Sign, sign: Sign) -> bool:
    """Whether two tokens are of two formulas: operands with a blank between them, but "sqrt 2", "4 pi", "2 (x + 1)"."""
    if last.end == sign.start or not (last.closes and sign.opens):
        return False
    return not (sign.kind in {"constant", "function"} and last.kind == "number") and last.kind != "function"


def _ended(run: list[Sign]) -> Iterator[list[Sign]]:
    """The run without what cannot begin or end a formula."""
    if len(run) > 4 * MAX_TOKENS or (run and run[0].text == "/"):  # "kg/m^3" is a unit
        return
    first, last = 0, len(run)
    while first < last and (run[first].kind == "relation" or run[first].text in {"*", "/", "^", "!", ")", "+"}):
        first += 1
    while last > first and (run[last - 1].kind in {"relation", "function"} or run[last - 1].text in "*/^+-("):
        last -= 1
    if 1 < last - first <= MAX_TOKENS:
        yield run[first:last]
