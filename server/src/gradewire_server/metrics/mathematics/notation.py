r"""Convert mathematical texts, in LaTeX or Unicode, to one plain notation.

"\dfrac{3}{4}" becomes "((3)/(4))", "\left[0,\,2\right)" becomes "[0, 2)", "x²" becomes "x^(2)", and "\sqrt[3]5" becomes
"root(3,5)". A matrix becomes "matrix[1,2;3,4]", and the braces of a set stay braces.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.values.tokens import VOCABULARY

MAX_CHARACTERS: Final = 2_000
"""Maximum number of characters in a mathematical text."""
_MAX_DEPTH: Final = 24
_WORDS: Final = VOCABULARY["mathematics"]

_RAISED: Final = str.maketrans(VOCABULARY["tokens"]["raised"]["from"], VOCABULARY["tokens"]["raised"]["to"])
_LOWERED: Final = str.maketrans(VOCABULARY["tokens"]["lowered"]["from"], VOCABULARY["tokens"]["lowered"]["to"])
_SUPERSCRIPT: Final = re.compile(f"[{VOCABULARY['tokens']['raised']['from']}]+")
_SUBSCRIPT: Final = re.compile(f"[{VOCABULARY['tokens']['lowered']['from']}]+")
_VULGAR: Final = re.compile(r"(\d?) ?([\u00bc-\u00be\u2150-\u215e])")
_SIGNS: Final = str.maketrans({sign: plain for plain, signs in _WORDS["signs"].items() for sign in signs})
_COMMANDS: Final = {name: plain for plain, names in _WORDS["commands"].items() for name in names.split()}
_FUNCTIONS: Final = frozenset(_WORDS["functions"].split())
_GREEK: Final[Mapping[str, str]] = _WORDS["greek"]
_FRACTIONS: Final = frozenset({"frac", "dfrac", "tfrac", "cfrac"})
_BINOMIALS: Final = frozenset({"binom", "dbinom", "tbinom"})
_WRAPPERS: Final = frozenset(_WORDS["wrappers"].split())
_NUMBER_SETS: Final = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ"}
_MATRICES: Final = frozenset({"matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"})
_NAME: Final = re.compile(r"[A-Za-z]+")
_GROUPED_COMMA: Final = re.compile(r"(?<=\d)\{,\}(?=\d{3}(?!\d))")
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d)\{,\}(?=\d)")
_GROUPED_BLANK: Final = re.compile(r"(?<=\d)(?:\\[,;:! ]|['\u2009\u202f_])(?=\d{3}(?!\d))")
_DOLLARS: Final = re.compile(r"(?<!\\)\$+")
_MARKDOWN: Final = re.compile(r"\*\*(?=[^\s*])([^*]{1,400})(?<=\S)\*\*(?![\w(])|`+|\\[()\[\]]|\\displaystyle(?![a-z])")
_WHOLE_BEFORE: Final = re.compile(r"(?<![\w.^_,)])(\d{1,9}) ?\Z")
_MIXED: Final = re.compile(r"(?<![\w.,^_/)])(\d{1,6})(?: and | )(\d{1,4})/(\d{1,4})(?![\w/.^])")
_CHOOSE: Final = re.compile(r"(?<![\w.])(\d{1,4})(?: choose |C)(\d{1,4})(?!\w)|_\((\d{1,4})\)C_\((\d{1,4})\)")
_DIFFERENCE: Final = re.compile(r"(?<=[ℝR})\]]) ?\\ ?(?=\\?\{)")
_DEGREES: Final = re.compile(r"\^(?:\(°\)|°)")
_PERIOD: Final = re.compile(r"overline\((\d)\)(\d*)overline\((\d)\)")
_SPOKEN: Final = tuple((re.compile(pattern, re.IGNORECASE), sign) for pattern, sign in _WORDS["spoken"].items())
_SPEAKS: Final = re.compile(
    r"\b(?:root|log|squared|cubed|times|divided|out of|plus|minus|repeat|recur|p[eé]riod)", re.IGNORECASE
)
_BLANKS: Final = re.compile(r"\s+")
_WITH_LATEX: Final = frozenset("\\{")


class NotationError(ValueError):
    """A text that has no plain notation, such as one with unbalanced braces or too deep nesting."""


@lru_cache(maxsize=256)
def notation(text: str) -> str | None:
    """Return a mathematical text in plain notation; None if the text is too long or not balanced."""
    if len(text) > MAX_CHARACTERS:
        return None
    text = _DECIMAL_COMMA.sub(".", _GROUPED_COMMA.sub(",", _GROUPED_BLANK.sub("", text)))
    text = _DOLLARS.sub(" ", _MARKDOWN.sub(lambda mark: f" {mark[1] or ''} ", text))
    if _SPEAKS.search(text):
        for pattern, sign in _SPOKEN:
            text = pattern.sub(sign, text)
    text = text.replace("...", "…").replace("+/-", "±").replace("+-", "±")
    text = _DIFFERENCE.sub("∖", _plain_signs(text))
    if not _WITH_LATEX.isdisjoint(text):
        try:
            text = _Converter(text).all()
        except NotationError:
            return None
    text = _PERIOD.sub(r"overline(\1\2\3)", text)
    text = _DEGREES.sub("°", _MIXED.sub(_mixed, text))
    text = _CHOOSE.sub(lambda found: f"binom({found[1] or found[3]},{found[2] or found[4]})", text)
    return _BLANKS.sub(" ", text).strip()


def _plain_signs(text: str) -> str:
    if text.isascii():
        return text
    text = _VULGAR.sub(_fraction_sign, text)
    text = _SUPERSCRIPT.sub(lambda run: f"^({run[0].translate(_RAISED)})", text)
    text = _SUBSCRIPT.sub(lambda run: f"_({run[0].translate(_LOWERED)})", text)
    kept = text.translate(_SIGNS)
    return "".join(
        sign if sign in "…ℝℤℕℚℂ" else unicodedata.normalize("NFKC", sign).replace("\u2044", "/") for sign in kept
    )


def _fraction_sign(found: re.Match[str]) -> str:
    above, below = unicodedata.normalize("NFKC", found[2]).split("\u2044")
    return f"{found[1]} {above}/{below}" if found[1] else f"(({above})/({below}))"


def _mixed(found: re.Match[str]) -> str:
    whole, above, below = found.groups()
    return f"mix({whole},{above},{below})" if int(above) < int(below) else found[0]


class _Converter:
    """A converter of one LaTeX text, whose recursion is limited to _MAX_DEPTH groups."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def all(self) -> str:
        """Return the whole text in plain notation."""
        found = self._sequence("")
        if self._at < len(self._text):
            raise NotationError("a closing brace without its opening brace")
        return found

    def _sequence(self, closer: str, *, rows: bool = False) -> str:
        r"""Convert up to a closing "}" (which is consumed), up to "\end", or to the end of the text."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotationError("too deep")
        pieces: list[str] = []
        while True:
            if self._at >= len(self._text):
                if closer:
                    raise NotationError("an opening brace without its closing brace")
                break
            sign = self._text[self._at]
            if sign == "}":
                if closer != "}":
                    raise NotationError("a closing brace without its opening brace")
                self._at += 1
                break
            if closer == "end" and self._text.startswith("\\end", self._at):
                self._at += len("\\end")
                self._argument()
                break
            pieces.append(self._piece(sign, pieces, rows=rows))
        self._depth -= 1
        return "".join(pieces)

    def _piece(self, sign: str, pieces: list[str], *, rows: bool) -> str:
        if sign == "\\":
            return self._command(pieces, rows=rows)
        self._at += 1
        if sign == "{":
            return self._braces(pieces)
        if sign == "&":
            return "," if rows else " "
        if sign == "~":
            return " "
        return sign

    def _braces(self, pieces: list[str]) -> str:
        before = "".join(pieces[-2:]).rstrip()[-1:]
        inside = self._sequence("}")
        behind = self._text[self._at : self._at + 1]
        if before in {"^", "_"}:
            return f"({inside})"
        if behind and behind in "^_":
            return f"({inside})" if inside.strip() else ""
        return f"{{{inside}}}"

    def _command(self, pieces: list[str], *, rows: bool) -> str:
        self._at += 1
        found = _NAME.match(self._text, self._at)
        if found is None:
            return self._escaped(rows=rows)
        self._at = found.end()
        name = found[0]
        if name in _FRACTIONS:
            return self._fraction(pieces)
        if name in _BINOMIALS:
            return f"binom({self._argument()},{self._argument()})"
        if name in {"overline", "dot", "widehat"}:
            return f"overline({self._argument()})"
        if name in _WRAPPERS:
            return self._argument()
        return self._named(name)

    def _escaped(self, *, rows: bool) -> str:
        r"""Convert a command of one sign, such as "\\{" or the end of a row."""
        sign = self._text[self._at : self._at + 1]
        self._at += 1
        if sign == "\\":
            return ";" if rows else " ; "
        return sign if sign in "{}|%&#_" else "¤" if sign == "$" else " "

    def _named(self, name: str) -> str:
        if name == "begin":
            found = self._environment()
        elif name == "sqrt":
            found = self._root()
        elif name == "mathbb":
            letter = self._argument().strip()
            found = _NUMBER_SETS.get(letter, letter)
        elif name in _FUNCTIONS:
            found = f" {name}" if self._text[self._at : self._at + 1] in {"_", "^"} else f" {name} "
        else:
            if name in {"left", "right"} and self._text.startswith(".", self._at):
                self._at += 1
            found = _GREEK.get(name) or _COMMANDS.get(name, " ? ")
        return found

    def _argument(self) -> str:
        """Convert a command's next argument: a group, a command, or one character."""
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        sign = self._text[self._at : self._at + 1]
        if not sign or sign == "}":
            raise NotationError("a missing argument")
        if sign == "\\":
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise NotationError("too deep")
            found = self._command([], rows=False)
            self._depth -= 1
            return found
        self._at += 1
        return self._sequence("}") if sign == "{" else sign

    def _fraction(self, pieces: list[str]) -> str:
        above, below = self._argument(), self._argument()
        whole = _WHOLE_BEFORE.search("".join(pieces[-12:]))
        if whole and above.isdecimal() and below.isdecimal() and len(above + below) < 9 and int(above) < int(below):
            digits, kept = whole[0], "".join(pieces)
            pieces[:] = [kept[: len(kept) - len(digits)]]
            return f"mix({whole[1]},{above},{below})"
        return f"(({above})/({below}))"

    def _root(self) -> str:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1
        if not self._text.startswith("[", self._at):
            if self._text.startswith("(", self._at):
                return "sqrt"
            return f"sqrt({self._argument()})"
        end = self._text.find("]", self._at)
        if end < 0:
            raise NotationError("a root without its index")
        index = self._text[self._at + 1 : end]
        self._at = end + 1
        if not index.strip().isalnum():
            raise NotationError("a root with an unusual index")
        return f"root({index},{self._argument()})"

    def _environment(self) -> str:
        name = self._argument()
        if name == "array":
            self._argument()
        inside = self._sequence("end", rows=name in _MATRICES)
        if name in _MATRICES:
            return f"matrix[{inside.strip().rstrip(';')}]"
        return f"det[{inside}]" if name in {"vmatrix", "Vmatrix"} else f" {inside} "
