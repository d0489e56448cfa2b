"""Parse expressions in plain mathematical notation, in linear time and with bounded depth."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.mathematics.expressions import Expression
from gradewire_server.metrics.mathematics.values import ARGUMENTS, Step
from gradewire_server.metrics.values.tokens import VOCABULARY

_MAX_TOKENS: Final = 160
_MAX_DEPTH: Final = 24
_MAX_DIGITS: Final = 400
FUNCTIONS: Final = (
    *("arcsin", "arccos", "arctan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sqrt", "cbrt", "root", "binom"),
    *("mix", "sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "lg", "exp", "abs", "floor", "ceil", "max", "min"),
    *("gcd", "lcm"),
)
"""Names of functions, each before a name that it begins with."""
_WITH_BASE: Final = r"log(?:_\([^()]{1,12}\)|_?\d{1,2}(?=[\s(])|_[\da-z])?"
_TOKEN: Final = re.compile(
    r"(?P<number>\d*\.\d*(?:\(\d+\)|overline\(\d+\))"
    r"|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4}(?!\w))?(?: ?\u2026|\.\.\.)?)"
    rf"|(?P<function>(?:{'|'.join(FUNCTIONS).replace('|log|', f'|{_WITH_BASE}|')})(?![a-z]))"
    r"|(?P<constant>pi(?![a-z])|\u03c0)"
    r"|(?P<name>[A-Za-z\u0391-\u03c9]'*(?:_\([A-Za-z0-9+\-, ]{1,12}\)|_[A-Za-z0-9])?)"
    r"|(?P<sign>\*\*|[-+*/^!°()\[\]|,⌊⌋⌈⌉])|(?P<blank> +)"
)
_DECIMAL: Final = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_PERIOD: Final = re.compile(r"(\d*)\.(\d*)(?:\(|overline\()(\d+)\)")
_SHOWN: Final = re.compile(r"(\d*)\.(\d*?)(\d+?)\3{1,60}(\d*)")
_TIMES: Final = re.compile(r"(?<=\d) ?x ?(?=\d)")
UNLIKELY_NAMES: Final = frozenset(VOCABULARY["formulas"]["no_names"].split()) | {"lim", "det", "mod"}
"""Words of two or three letters that are no products of variables."""
_MAX_NAME: Final = 3
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CLOSERS: Final = {"(": ")", "[": "]", "|": "|", "⌊": "⌋", "⌈": "⌉"}
_AFTER: Final = {"|": "abs", "⌊": "floor", "⌈": "ceil"}
_INVERSES: Final = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}
_PAIRED: Final = {"binom": 2, "root": 2, "mix": 3}


class _SyntaxError(ValueError):
    """A text that is no expression."""


@lru_cache(maxsize=512)
def expression(text: str) -> Expression | None:
    """Parse an expression in plain notation; return None if the text is none."""
    if not text or len(text) > _MAX_DIGITS * 4:
        return None
    if "x" in text:
        text = _TIMES.sub("*", text)
    if "," in text:
        text = _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
    signs = _signs(text)
    if signs is None:
        return None
    if "".join(sign for _, sign in signs) in {"∞", "+∞", "-∞"}:
        return None
    parser = _Parser(signs)
    try:
        parser.sum()
    except (_SyntaxError, IndexError):
        return None
    if not parser.done:
        return None
    places, digits = _precision(signs)
    joined = "".join(sign for _, sign in signs)
    return Expression(tuple(parser.steps), frozenset(parser.names), joined, places, digits)


def infinity(text: str) -> Expression | None:
    """Return infinity, with its sign, or None for any other text."""
    sign = text.replace(" ", "")
    if sign in {"∞", "+∞", "-∞"}:
        return Expression((("infinity", -1 if sign[0] == "-" else 1),), frozenset(), sign)
    return None


def _signs(text: str) -> list[tuple[str, str]] | None:
    """Return the kinds and texts of an expression's signs; None if a word or another sign is among them."""
    signs: list[tuple[str, str]] = []
    at = 0
    letters = ""
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or len(signs) > _MAX_TOKENS:
            return None
        at = found.end()
        kind, sign = found.lastgroup or "", found[0]
        letters = letters + sign[0] if kind == "name" else ""
        if len(letters) > _MAX_NAME or letters.lower() in UNLIKELY_NAMES:
            return None
        if kind != "blank":
            signs.append((kind, "^" if sign == "**" else sign))
    return signs


def _precision(signs: Sequence[tuple[str, str]]) -> tuple[int | None, int]:
    """Return the decimal places and the significant digits of a single number."""
    if len(signs) == 2 and signs[0][1] in {"-", "+"}:
        signs = signs[1:]
    if len(signs) != 1 or signs[0][0] != "number":
        return None, 0
    text = signs[0][1].rstrip(" .\u2026")
    if not text.replace(".", "").isdecimal():
        return None, 0
    whole, point, decimals = text.partition(".")
    return len(decimals) if point else None, max(1, len((whole + decimals).lstrip("0")))


def _read(text: str) -> Fraction:
    """Return the exact value of a number; a period repeats, and dots after a period shown twice mean that it does."""
    if (period := _PERIOD.fullmatch(text)) is not None:
        return _periodic(period[1], period[2], period[3])
    bare = text.rstrip("….")
    if bare.strip() != text:
        text = bare.strip()
        shown = _SHOWN.fullmatch(text)
        if shown is not None and shown[3].startswith(shown[4]):
            return _periodic(shown[1], shown[2], shown[3])
        if "." not in text:
            raise _SyntaxError("dots behind a whole number")
    found = _DECIMAL.fullmatch(text)
    if found is None or len(text) > _MAX_DIGITS:
        raise _SyntaxError("a number that is too long")
    power = int(found[3] or 0) - len(found[2])
    return Fraction(int(f"{found[1]}{found[2]}")) * Fraction(10) ** power


def _periodic(whole: str, begin: str, period: str) -> Fraction:
    if len(begin) + len(period) > _MAX_DIGITS:
        raise _SyntaxError("a period that is too long")
    scale = 10 ** len(begin)
    return Fraction(int(f"0{whole}{begin}"), scale) + Fraction(int(period), (10 ** len(period) - 1) * scale)


class _Parser:
    """A parser whose recursion is limited to _MAX_DEPTH brackets, powers and signs."""

    def __init__(self, signs: Sequence[tuple[str, str]]) -> None:
        self._signs = signs
        self._at = 0
        self._depth = 0
        self._bars = 0
        self.steps: list[Step] = []
        self.names: set[str] = set()

    @property
    def done(self) -> bool:
        return self._at == len(self._signs)

    def _next(self) -> tuple[str, str]:
        return self._signs[self._at] if self._at < len(self._signs) else ("end", "")

    def _takes(self, *texts: str) -> str:
        """Consume and return the next sign if it is one of these; otherwise return ""."""
        kind, text = self._next()
        if kind == "sign" and text in texts:
            self._at += 1
            return text
        return ""

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise _SyntaxError(f"{text} is missing")

    def sum(self) -> None:
        self._product()
        while sign := self._takes("+", "-"):
            self._product()
            self.steps.append((sign, 0))

    def _product(self) -> None:
        self._factors()
        while sign := self._takes("*", "/"):
            literal = self._at
            self._factors(behind=sign)
            self.steps.append((sign, 0))
            # "1/2 x" is half of x.
            if sign == "/" and self._at == literal + 1 and self._signs[literal][0] == "number" and self._opens():
                self._factors()
                self.steps.append(("*", 0))

    def _factors(self, behind: str = "") -> None:
        """Read factors without signs between them; a number below a fraction's bar stands alone."""
        begin = self._at
        self._signed()
        if behind == "/" and self._at == begin + 1 and self._signs[begin][0] == "number":
            above = self._signs[begin - 2][0] if begin >= 2 else "end"
            if above == "number":
                return
        while self._opens():
            self._power()
            self.steps.append(("*", 0))

    def _opens(self) -> bool:
        kind, text = self._next()
        if kind in {"function", "constant", "name"}:
            return True
        if kind == "number":
            return self._signs[self._at - 1][1] in {")", "]", "j", "!"}
        return text in {"(", "[", "⌊", "⌈"} or (text == "|" and not self._bars)

    def _signed(self) -> None:
        sign = self._takes("-", "+")
        if not sign:
            self._power()
            return
        self._deeper()
        self._signed()
        self._depth -= 1
        if sign == "-":
            self.steps.append(("negate", 0))

    def _power(self) -> None:
        self._atom()
        while sign := self._takes("!", "°"):
            self.steps.append((sign, 0))
        if self._takes("^"):
            self._deeper()
            self._exponent()
            self._depth -= 1
            self.steps.append(("^", 0))
            while sign := self._takes("!"):
                self.steps.append((sign, 0))

    def _exponent(self) -> None:
        sign = self._takes("-", "+")
        self._power()
        if sign == "-":
            self.steps.append(("negate", 0))

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _SyntaxError("too deep")

    def _atom(self) -> None:
        kind, text = self._next()
        self._at += 1
        if kind == "number":
            self.steps.append(("number", _read(text)))
        elif kind == "constant":
            self.steps.append(("pi", 0))
        elif kind == "function":
            self._call(text)
        elif kind == "name":
            self._name(text)
        elif kind == "sign" and text in _CLOSERS:
            self._bracket(text)
        else:
            raise _SyntaxError("an operand is missing")

    def _bracket(self, opener: str) -> None:
        self._deeper()
        bars, self._bars = self._bars, int(opener == "|")
        self.sum()
        self._expect(_CLOSERS[opener])
        self._bars = bars
        self._depth -= 1
        if opener in _AFTER:
            self.steps.append((_AFTER[opener], 0))

    def _name(self, text: str) -> None:
        if text in {"e", "i"}:
            self.steps.append((text, 0))
            return
        if text in {"C", "P"} and self._next()[1] == "(" and self._has_comma():
            self._arguments(2)
            self.steps.append(("binom" if text == "C" else "permutations", 0))
            return
        self.names.add(text)
        self.steps.append((f"={text}", 0))

    def _has_comma(self) -> bool:
        """Return True if the bracket that follows has a comma and no further bracket."""
        for kind, text in self._signs[self._at + 1 : self._at + 12]:
            if text in {",", ")"} or kind == "end":
                return text == ","
        return False

    def _arguments(self, count: int) -> None:
        self._deeper()
        bars, self._bars = self._bars, 0
        self._expect("(")
        self.sum()
        for _ in range(count - 1):
            self._expect(",")
            self.sum()
        self._expect(")")
        self._bars = bars
        self._depth -= 1

    def _call(self, name: str) -> None:
        if name in _PAIRED:
            self._arguments(_PAIRED[name])
            self.steps.append((name, 0))
            return
        if name in {"max", "min", "gcd", "lcm"}:
            self._arguments(2)
            self.steps.append((name, 0))
            return
        self._deeper()
        name, base = self._logarithm(name)
        raised = self._raised()
        if raised == -1 and name in _INVERSES:
            name, raised = _INVERSES[name], None
        if raised is not None and name == "sqrt":
            raise _SyntaxError("a power of a root's sign")
        self._argument(name)
        self.steps.append((ARGUMENTS.get(name, name), 0))
        if base is not None:
            self.names.update(base.names)
            self.steps.extend([*base.steps, ("ln", 0), ("/", 0)])
        if raised is not None:
            self.steps.extend([("number", Fraction(raised)), ("^", 0)])
        self._depth -= 1

    @staticmethod
    def _logarithm(name: str) -> tuple[str, Expression | None]:
        r"""Return "ln" and the base of "\log_2" or "log2"; other functions stay."""
        if not name.startswith("log") or name == "log":
            return name, None
        base = expression(name.removeprefix("log").lstrip("_").strip("()"))
        if base is None:
            raise _SyntaxError("a logarithm with an unusual base")
        return "ln", base

    def _raised(self) -> int | None:
        r"""Return the exponent in "\sin^2 x", -1 for the inverse function, or None."""
        if not self._takes("^"):
            return None
        bracket = self._takes("(")
        sign = self._takes("-")
        kind, text = self._next()
        if kind != "number" or not text.isdecimal() or len(text) > 2:
            raise _SyntaxError("a function with an unusual exponent")
        self._at += 1
        if bracket:
            self._expect(")")
        return -int(text) if sign else int(text)

    def _argument(self, name: str) -> None:
        """Read a function's argument: a bracket, or, for "sin 2x" and "ln 3x", a product without brackets."""
        self._power_of_argument()
        if name in {"sqrt", "cbrt"}:
            return
        if self._signs[self._at - 1][1] in {")", "]", "|"}:
            return
        while self._next()[0] in {"constant", "name"}:
            self._power()
            self.steps.append(("*", 0))

    def _power_of_argument(self) -> None:
        kind, text = self._next()
        if text in {"(", "[", "|"} and kind == "sign":
            self._at += 1
            self._bracket(text)
            return
        if kind in {"number", "constant", "name"}:
            self._atom()
            while sign := self._takes("!", "°"):
                self.steps.append((sign, 0))
            if self._next()[1] == "^":
                self._takes("^")
                self._exponent()
                self.steps.append(("^", 0))
            return
        if kind == "function":
            self._at += 1
            self._call(text)
            return
        raise _SyntaxError("a function without its argument")
