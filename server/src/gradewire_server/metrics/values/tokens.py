"""Convert a text to a plain form, and split it into words, numbers and signs."""

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

MAX_CHARACTERS: Final = 16_384
"""Maximum number of characters in which to look for values. In a longer text, three quarters of these are at
the start, and one quarter is at the end."""
MAX_TOKENS: Final = 8_192
DIGITS: Final = frozenset("0123456789")
VOCABULARY: Final[Mapping[str, Any]] = tomllib.loads((files(__package__) / "vocabulary.toml").read_text("utf-8"))

_WORDS: Final = VOCABULARY["tokens"]
_TAIL: Final = MAX_CHARACTERS // 4
_LAST_PIECE: Final = re.compile(r"(?<!\S)\S{1,64}\Z")
_FIRST_PIECE: Final = re.compile(r"\A\S{1,64}(?!\S)")
_MOST_EXPANSION: Final = 4
_DOTTED_DATE: Final = re.compile(r"(?<![\w.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})(?![\w]|\.\d)")
_APOSTROPHES: Final = re.compile(r"(?<![\w.,'])\d{1,3}(?:'\d{3}){1,5}(?![\w'\"])")
_EUROS: Final = r"(?:\u20ac|\b(?:EUR|euros?|centimes?|cents?)\b)"
_DECIMAL_COMMA: Final = re.compile(
    rf"(?:(?P<before>(?:\u20ac|\bEUR)\s?)|(?<![\d.,]))(?P<whole>\d{{1,3}}(?:\.\d{{3}}){{1,4}}|\d{{1,3}}),(?P<part>\d{{1,2}})"
    rf"(?(before)(?![\d,]|\.\d)|(?=\s?{_EUROS}))",
    re.IGNORECASE,
)
_PI: Final = re.compile(r"(?<=\d)pi\b")

_SUPERSCRIPTS: Final = str.maketrans(_WORDS["raised"]["from"], _WORDS["raised"]["to"])
_SUBSCRIPTS: Final = str.maketrans(_WORDS["lowered"]["from"], _WORDS["lowered"]["to"])
_SUPERSCRIPT: Final = re.compile(f"[{_WORDS['raised']['from']}]+")
_SUBSCRIPT: Final = re.compile(f"[{_WORDS['lowered']['from']}]+")
_CHARGE: Final = re.compile(r"\d?[+-]")
_SIGNS: Final = str.maketrans({sign: plain for plain, signs in _WORDS["signs"].items() for sign in signs})
_VULGAR: Final = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")

_MAX_NESTED_FRACTIONS: Final = 4
_FRACTION: Final = re.compile(r"\\[dt]?frac\s{0,9}\{([^{}]{1,200})\}\s{0,9}\{([^{}]{1,200})\}")
_ROOT: Final = re.compile(r"\\sqrt\s{0,9}\{([^{}]{1,200})\}")
_TEXT: Final = re.compile(
    r"\\(?:text|textbf|textit|mbox|mathrm|mathbf|mathit|mathsf|boxed|operatorname|ce)\s{0,9}\{([^{}]{0,200})\}"
)
_COMMANDS: Final = {
    **{name: plain for plain, names in _WORDS["latex"].items() for name in names.split()},
    **VOCABULARY["greek"],
}
_COMMAND: Final = re.compile(r"\\([A-Za-z]{1,20})|\\[,;:! ()\[\]{}]")
_DOLLAR: Final = "\ue000"
"""A placeholder for LaTeX's "\\$", an amount of money, while the "$" around formulas is removed."""
_ESCAPED: Final = re.compile(r"\\([%&#_$])")
_SHORT_FRACTION: Final = re.compile(
    r"(\\[dt]?frac)\s{0,3}(?:(\d)|\{([^{}]{1,200})\})\s{0,3}(?:(\d)|\{([^{}]{1,200})\})"
)
_MIXED: Final = re.compile(r"(?<=\d)\s{0,3}\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}")
_DEGREE: Final = re.compile(r"\^\s{0,3}(?:\{\s{0,3}\\circ\s{0,3}\}|\\circ(?![A-Za-z])|\{\s{0,3}\u00b0\s{0,3}\})")
_THIN_SPACE: Final = re.compile(r"(?<=\d)(?:\\[,;:! ]|\{,\}|~)(?=\d{3}(?!\d))")
_UNDERSCORE: Final = re.compile(r"(?<=\d)_(?=\d{3}(?:_|(?!\w)))")
_UNIT_EXPONENT: Final = re.compile(r"(?<=[^\W\d_]\})\^\{(\d)\}(?![\d.])")
_EXPONENT: Final = re.compile(r"\^\{\s{0,3}([-+]?\d{1,4})\s{0,3}\}")
_SIGN_SPACE: Final = re.compile(r"(?<=[-+])\\[,;:! ](?=\d)")
_LATEX_COMMA: Final = re.compile(r"(?<=\d)\{([,.])\}(?=\d)")
_MATHEMATICS: Final = re.compile(r"\$([^\s$](?:[^$]{0,200}?[^\s$])?)\$(?![\w.]\d)(?!\d)")
_LOWERED_DIGITS: Final = re.compile(r"(?<=[A-Za-z)\]])_(?:(\d{1,3})|\((\d{1,3})\))")
_ELEMENTS: Final = re.compile(
    r"(?<![\w\\])(?:\(?(?:[A-Z][a-z]?(?:_\d{1,3}|_\(\d{1,3}\)|\d{1,3})?)\)?(?:_\d{1,3})?){2,12}(?![a-z])"
)

# Commas, blanks or points separate thousands. A point with only one group after it is a decimal point.
_NUMBER: Final = (
    r"\d{1,3}(?:,\d{3}){1,9}(?![\d,]\d)(?:\.\d+)?|\d{1,2}(?:,\d{2}){1,4},\d{3}(?!\d)|\d{1,3}(?:\.\d{3}){2,9}(?![\d.])"
    r"|(?<![\d.])\d{1,3}(?: \d{3}){1,9}(?![\d.])|\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?![\w.]))?|(?<![\w.])\.\d+"
)
_TOKEN: Final = re.compile(
    rf"(?P<number>{_NUMBER})|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?|\u00b0)|(?P<sign><=|>=|!=|->|\+/-|\*\*|[^\w\s])"
)
_MAX_DIGITS: Final = 40
_ROMAN_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN: Final = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def plain(text: str) -> str:
    """Convert signs, digits and LaTeX to plain form. If the text is long, return only both ends.

    "m²" becomes "m^2", "λ₁" becomes "λ1", "≤" becomes "<=", an en dash becomes "-", "3½" becomes "3 1/2", "25.12.1999"
    becomes "1999-12-25", "12'345" becomes "12,345", and "1.234,50 €" becomes "1234.50 €". Letters keep their case.
    """
    begin = text if len(text) <= MAX_CHARACTERS else _both_ends(text)
    if not begin.isascii():
        begin = _ascii_signs(begin)
    if "_" in begin:
        begin = _UNDERSCORE.sub(",", begin)
    if "^{" in begin:
        begin = _UNIT_EXPONENT.sub(r"^\1", begin)
        begin = _EXPONENT.sub(r"^(\1)", begin)
    if "{" in begin:
        begin = _LATEX_COMMA.sub(r"\1", _THIN_SPACE.sub(",", begin))
    if "$" in begin:
        begin = _MATHEMATICS.sub(r"\1", begin)
    if "." in begin:
        begin = _DOTTED_DATE.sub(r"\3-\2-\1", begin)
    if "'" in begin:
        begin = _APOSTROPHES.sub(lambda number: number[0].replace("'", ","), begin)
    if "," in begin:
        begin = _DECIMAL_COMMA.sub(_with_decimal_point, begin)
    if "pi" in begin:
        begin = _PI.sub(" pi ", begin)
    return _without_latex(begin) if "\\" in begin else begin


def _with_decimal_point(amount: re.Match[str]) -> str:
    return f"{amount['before'] or ''}{amount['whole'].replace('.', '')}.{amount['part']}"


def _both_ends(text: str) -> str:
    """Return the start and the end of a text, MAX_CHARACTERS in total. Leave out words and numbers that are cut."""
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
    text = _DEGREE.sub("\u00b0", _SIGN_SPACE.sub("", _THIN_SPACE.sub(",", text)))
    text = _ESCAPED.sub(lambda sign: _DOLLAR if sign[1] == "$" else sign[1], text)
    text = _MIXED.sub(_with_mixed_number, _SHORT_FRACTION.sub(r"\1{\2\3}{\4\5}", text))
    for _ in range(_MAX_NESTED_FRACTIONS):
        found = _TEXT.sub(r"\1", _ROOT.sub(r"sqrt(\1)", _FRACTION.sub(r"((\1)/(\2))", text)))
        if found == text:
            break
        text = found
    named = _COMMAND.sub(lambda command: _COMMANDS.get(command[1] or "", " "), text)
    bare = named.replace("$", "").replace("{", "(").replace("}", ")").replace(_DOLLAR, "$")
    return _ELEMENTS.sub(lambda formula: _LOWERED_DIGITS.sub(r"\1\2", formula[0]), bare) if "_" in bare else bare


def _with_mixed_number(fraction: re.Match[str]) -> str:
    """Return a proper fraction as it is written behind a whole number, " 5/6" in "9 5/6"; leave others unchanged."""
    above, below = int(fraction[1]), int(fraction[2])
    return f" {above}/{below}" if above < below else fraction[0]


class Token(NamedTuple):
    """A word, number or sign of a plain text, with its position.

    Attributes:
        number: The value of a token that begins with a digit or a decimal point, at least 0; None for other tokens.
        place: The place value of the number's last digit, not counting trailing zeros: 100 for "8,800", 0.01 for
            "3.14".
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
        """The value of a token with only digits, at most four; None for any other token."""
        return int(self.text) if self.number is not None and len(self.text) <= 4 and self.text.isdecimal() else None


def tokens_of(text: str) -> list[Token]:
    """Return the first MAX_TOKENS tokens of a plain text."""
    return [_token(match) for match in islice(_TOKEN.finditer(text), MAX_TOKENS)]


def _token(match: re.Match[str]) -> Token:
    text, (start, end), kind = match[0], match.span(), match.lastgroup
    if kind != "number":
        return Token(text, text.lower(), start, end, None, 1.0, kind == "word")
    number, place = read_number(text)
    return Token(text, text, start, end, number if isfinite(number) else None, place)


def read_number(text: str) -> tuple[float, float]:
    """Parse a number in digits, and return its value and place (see `Token`). Ignore points if there are several."""
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


def roman_value(word: str) -> int | None:
    """Return the value, 1 to 3,999, of a correct Roman numeral in capitals; None for other words ("IIX", "Mix", "")."""
    if not word or _ROMAN.fullmatch(word) is None:
        return None
    values = [_ROMAN_DIGITS[letter] for letter in word]
    return sum(-value if value < behind else value for value, behind in zip(values, [*values[1:], 0], strict=True))


def lower_at(tokens: Sequence[Token], at: int) -> str:
    """Return the lower-case token at an index, or "" if there is no token."""
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def number_at(tokens: Sequence[Token], at: int) -> float | None:
    """Return the value of the token at an index, or None if the token is missing or not in digits."""
    return tokens[at].number if 0 <= at < len(tokens) else None


def integer_at(tokens: Sequence[Token], at: int) -> int | None:
    """Return `Token.whole` at an index, or None if there is no token."""
    return tokens[at].whole if 0 <= at < len(tokens) else None


def adjacent(tokens: Sequence[Token], at: int) -> bool:
    """Return True if a token follows the previous token without a gap."""
    return 0 < at < len(tokens) and tokens[at - 1].end == tokens[at].start


def tokens_are(tokens: Sequence[Token], at: int, *texts: str) -> bool:
    """Return True if the tokens from an index on are these lower-case texts."""
    return all(lower_at(tokens, at + index) == text for index, text in enumerate(texts))


Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], T]]]
"""Phrases (tuples of words) and their meanings, by first word."""


def phrases(meanings: Mapping[str, T]) -> Phrases[T]:
    """Group phrases, whose words are separated by blanks, by their first word. `phrase_at` uses the first match."""
    found = defaultdict(list)
    for phrase, meaning in meanings.items():
        words = tuple(phrase.split())
        found[words[0]].append((words, meaning))
    return dict(found)


def phrase_at(tokens: Sequence[Token], at: int, known: Phrases[T]) -> tuple[T, int] | None:
    """Return the meaning of the known phrase at index `at`, and the index after it; None if there is no such phrase."""
    for words, meaning in known.get(lower_at(tokens, at), ()):
        if tokens_are(tokens, at, *words):
            return meaning, at + len(words)
    return None
