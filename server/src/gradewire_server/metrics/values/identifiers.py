"""Compare codes, versions, symbols and numbers that name a thing, character by character."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, Levenshtein

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.values.tokens import DIGITS, VOCABULARY, plain
from gradewire_server.metrics.values.units import CURRENCIES, NAMES, SYMBOLS

_WORDS: Final = VOCABULARY["identifiers"]
_MAX_REFERENCE: Final = 64
_MAX_QUESTION: Final = 8_192
"""Characters at the end of a question that are read: a context stands before what is asked."""
_MAX_ANSWER: Final = 4_096
_MAX_PIECES: Final = 10
_MAX_LETTERS: Final = 4
"""Maximum number of letters of a piece without digits, such as "SW" or "LH"."""
_MAX_CAPITALS: Final = 6
"""Maximum number of letters of a piece in capitals that can stand in a code whatever the question, such as "COVID"."""
_MIN_DIGITS: Final = 3
"""Minimum number of digits of an identifier that has no letters."""
_DIGITS_OF_PHONE: Final = 9
"""Minimum number of digits of a telephone number that may begin with the code of a country."""
_LONGEST_PREFIX: Final = 4
"""Maximum number of digits by which "00" and the code of a country lengthen a telephone number with a first zero."""
_CHARACTERS_PER_EDIT: Final = 5
_MIN_SIMILARITY: Final = 60.0
"""Minimum similarity, 0 to 100, of other code in an answer to a reference's code."""
_PLURAL: Final = r"s?(?!\w)"


def _any_of(words: str, *, end: str = r"(?!\w)") -> str:
    return expression((word.replace("_", " ") for word in words.split()), end=end)


_AMOUNTS: Final = _any_of(_WORDS["amounts"])
_NO_MODIFIER: Final = rf"(?!{_any_of(_WORDS['no_modifiers'])})"
_MODIFIERS: Final = rf"(?:{_NO_MODIFIER}(?!{_AMOUNTS})[^\W\d_][\w'\u2019.-]{{0,30}}\s){{0,4}}?"
_NOUN: Final = (
    rf"{_any_of(_WORDS['asked'], end=_PLURAL)}(?:\s(?:numbers?|codes?|id)\b)?"
    # "class size", "class test score" and "the class's rank" are something else
    r"(?!['\u2019]s\s(?!(?:number|code|id)\b))"
    rf"(?!(?:['\u2019]s)?\s(?:{_NO_MODIFIER}\w{{1,30}}\s)?{_AMOUNTS})"
)
_INTERROGATIVE: Final = _any_of(_WORDS["interrogatives"], end="")
_COPULA: Final = rf"(?:['\u2019]s|\s{_any_of(_WORDS['copulas'], end='')})"
# "What is the line resistance?" asks for something else than a line.
_NOUN_ENDS: Final = (
    rf"(?=\s*(?:$|[^\w\s]|(?:{_any_of(_WORDS['no_modifiers'])}|{_any_of(_WORDS['copulas'])}|i|you|he|she|it|they|we|the|a"
    r"|\w{1,30}(?:ed|ing))\b))"
)
# One copy of the noun behind all beginnings, because it is long: five copies take five times as long to compile.
_ASKED: Final = re.compile(
    rf"(?:{_INTERROGATIVE}(?:\s|(?P<copula>{_COPULA}\s))"
    rf"|\b(?:{_any_of(_WORDS['requests'])})\s"
    r"|\bnumber\sof\s(?:the|this|that|my|your|his|her|our|their)\s"
    rf"|(?P<begin>^\s*)){_MODIFIERS}{_NOUN}"
    rf"(?(copula){_NOUN_ENDS})(?(begin)(?=\s*(?:$|[?:.]|(?:of|for|von|de|is)\b)))",
    re.IGNORECASE,
)
"""A question for a number that names a thing ("Which gate?"), unlike one that only mentions a gate or its height."""
_MENTIONED: Final = re.compile(_NOUN, re.IGNORECASE)
_CODE_ASKED: Final = re.compile(_any_of(_WORDS["code_asked"], end=_PLURAL), re.IGNORECASE)
_SYMBOL_ASKED: Final = re.compile(_any_of(_WORDS["symbol_asked"], end=_PLURAL), re.IGNORECASE)
_AMOUNT_ASKED: Final = re.compile(
    rf"\b(?:{_any_of(_WORDS['amount_questions'])}|number of|(?:what|which) (?:year|date|day|month|time))\b"
    r"|^\s*when\b|\bwhen (?:is|was|are|were|do|does|did|will|has|had|can)\b",
    re.IGNORECASE,
)
_AMOUNT_NAMED: Final = re.compile(rf"{_INTERROGATIVE}{_COPULA}?\s{_MODIFIERS}{_AMOUNTS}", re.IGNORECASE)
_COUNTED: Final = re.compile(r"\s" + _any_of(_WORDS["asked"], end=r"(?:es|s)(?!\w)"), re.IGNORECASE)
_APPROXIMATE: Final = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|circa|etwa|rund|environ)|~)\s?$",
    re.IGNORECASE,
)
_LONGEST_APPROXIMATION: Final = 16
# Written as a name: many digits without separators, a zero before others, or groups with hyphens that are no years.
_WRITTEN: Final = re.compile(
    r"(?<![\w.,])(?:\d{7,}|0\d{2,}|(?![12]\d{3}-[12]\d{3}(?!\d))(?=[\d-]{7})\d+-\d+)(?![\w.,]\d|\w)"
)
_LABELS: Final = frozenset(_WORDS["labels"].split())
_PIECE: Final = re.compile(r"[^\W_]+")
_JOINT: Final = re.compile(r"[\s\-./:,#()]{0,2}")
_VERSION: Final = re.compile(r"v(?=\d)", re.IGNORECASE)
_MIXED: Final = re.compile(r"(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]+")
# Three or more groups of digits, as in an address or a serial number.
_DIGITS: Final = re.compile(r"\d+")
_GROUPED: Final = re.compile(r"\d+(?:[-./:]\d+){2,}")
# Mixed pieces that are no names: "3rd", "1970s", "3pm", "10k", "5kg", "5m2".
_AMOUNT: Final = re.compile(r"\d+(?:\.\d+)?(?:st|nd|rd|th|s|am|pm|k|[a-z]{1,3}[23]?|[kmgt]?[A-Z])", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_ADDRESS: Final = re.compile(
    r"[^\s@]+@[^\s@]+\.\w{2,}|(?:https?://|www\.)\S+|(?=\S{6})[\w-]+(?:[./][\w-]+)*\.[a-z]{2,8}(?:/\S*)?"
    r"|@?\w+_\w+|@\w+",
    re.IGNORECASE,
)
"""Addresses of mail and of pages, and names of files and users."""
_ADDRESS_TOKEN: Final = re.compile(r"[^\s<>()\[\]\"'`,;\u201c\u201d\u201e]+")
_MAY_BE_CODE: Final = re.compile(r"[\d@._/\\]|[^\x00-\x7f]")
"""A sign that every address and every code with letters and digits has, in any notation."""
_SCHEME: Final = re.compile(r"^(?:mailto:|https?://)?(?:www\.)?")
_NUMBER_AND_WORD: Final = re.compile(r"\d[\d.,:]*\s?([^\W\d_]+)")
_CLOCK: Final = re.compile(r"\d\s?[ap]\.\s?m\b", re.IGNORECASE)
_UNIT_WORDS: Final = frozenset({*NAMES, *CURRENCIES, *_WORDS["behind_amounts"].split()})
_CODE: Final = re.compile(r"\w[(\[]|[\[\]{}\\=<>;*|&$_+/]|(?<!\w)--?\w")
_CODE_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_FLAG: Final = re.compile(r"(?<!\w)--?[a-z][\w-]*", re.IGNORECASE)
_NO_SYMBOLS: Final = frozenset(_WORDS["no_symbols"].split())
_SYMBOL: Final = re.compile(r"(?:[^\W\d_]{1,3}|(?:[A-Z][a-z]?\d{0,3}){1,8})")


@dataclass(frozen=True, slots=True)
class Identifier:
    """A reference that names a thing by its characters.

    Attributes:
        key: The characters that have to agree, without separators and labels, and in lower case unless case counts.
        kind: "number" for codes with digits, "code" for program code, "symbol" for symbols of units and the like.
        letters: The lower-case pieces without digits.
    """

    key: str
    kind: str
    letters: frozenset[str] = frozenset()

    @classmethod
    def of(cls, reference: str, question: str) -> "Identifier | None":
        """Return a reference's identifier, or None if the reference is a word, an amount or a sentence."""
        code = reference.strip().strip("`\"'.")
        if not code or len(code) > _MAX_REFERENCE:
            return None
        amount, identifier, program, symbol = _asks_for(question)
        if amount:
            return None
        if program and _CODE.search(code):
            return cls(code, "code")
        if not symbol and DIGITS.isdisjoint(code):
            return None
        written = plain(code)
        if symbol and _SYMBOL.fullmatch(written):
            return cls(written, "symbol")
        return _number(written, asked=identifier or _is_written_as_name(written, question))

    def found_in(self, answer: str) -> bool | None:
        """Return True if an answer has this identifier, False if it has another one of its form, None for neither."""
        begin = answer[:_MAX_ANSWER]
        if self.kind == "code":
            return _code_in(self.key, begin)
        written = plain(begin)
        match self.kind:
            case "symbol":
                return _symbol_in(self.key, written)
            case _:
                return self._number_in(written)

    def _number_in(self, written: str) -> bool | None:
        digits = self.key.lstrip("abcdefghijklmnopqrstuvwxyz")
        keys = {self.key, digits} if digits.isdigit() and len(digits) >= _MIN_DIGITS else {self.key}
        another = False
        more = _LONGEST_PREFIX if _is_dialled_at_home(self.key) else max(1, len(self.key) // _CHARACTERS_PER_EDIT)
        for run in _runs(written, self.letters, len(self.key) + more):
            if run in keys or _as_dialled_at_home(run, self.key) in keys:
                return True
            another = another or any(_resembles(_as_dialled_at_home(run, key), key) for key in keys)
        return False if another else None


def _is_dialled_at_home(key: str) -> bool:
    return key[0] == "0" and key[1] != "0" and len(key) >= _DIGITS_OF_PHONE and key.isdigit()


def _as_dialled_at_home(run: str, key: str) -> str:
    """Return a telephone number with a first zero instead of the code of a country, if the key has such a zero.

    The code may follow "+", which no run contains, or "00".
    """
    if not _is_dialled_at_home(key) or not run.isdigit():
        return run
    abroad = run.removeprefix("00")
    country = len(abroad) - len(key) + 1
    return f"0{abroad[country:]}" if country in {2, 3} else run


def identifier_conflict(question: str, answer: str, references: Sequence[str]) -> float:
    """Return 1 if an answer has another identifier of a reference's form, 0 if it has a reference's, otherwise NaN.

    A code of digits and capitals or single letters, or an address, that differs in one character is another one
    whatever the question asks for.
    """
    if _has_near_miss(answer[:_MAX_ANSWER], references):
        return 1.0
    read = [Identifier.of(reference, question) for reference in references]
    found = [each.found_in(answer) for each in read if each is not None]
    if True in found:
        return 0.0
    return 1.0 if len(found) == len(references) and False in found else nan


def _has_near_miss(answer: str, references: Sequence[str]) -> bool:
    """Return True if an answer has no reference, but one with one other character or two exchanged ones."""
    begin = answer.casefold()
    codes = [reference.strip() for reference in references if len(reference) <= _MAX_REFERENCE]
    if len(codes) < len(references) or any(code.casefold() in begin for code in codes):
        return False
    near = False
    for code in codes:
        if _MAY_BE_CODE.search(code) is None:
            continue  # a word or a name, as most references
        found = _address_in(code, begin) if _ADDRESS.fullmatch(code) else _mixed_in(plain(code), answer)
        if found is True:
            return False
        near = near or found is False
    return near


def _address_in(code: str, answer: str) -> bool | None:
    """Return True if an answer has an address, False if it has one that differs in a character, None for neither."""
    key = _SCHEME.sub("", code.casefold()).rstrip("/")
    tokens = {_SCHEME.sub("", token.rstrip("./:!?*_")).rstrip("/") for token in _ADDRESS_TOKEN.findall(answer)}
    if key in tokens:
        return True
    near = (token for token in tokens if OSA.distance(token, key, score_cutoff=1) == 1)
    return False if any(map(_ADDRESS.fullmatch, near)) else None


def _mixed_in(code: str, answer: str) -> bool | None:
    """Return True if an answer has a code with letters and digits, False if it has a similar one, None for neither."""
    pieces = [piece for piece in _PIECE.findall(code) if piece.lower() not in _LABELS]
    letters = [piece for piece in pieces if piece.isalpha()]
    key = "".join(pieces)
    if not 0 < len(pieces) <= _MAX_PIECES or len(key) < _MIN_DIGITS or key.isdigit() or key.isalpha():
        return None
    if any(not (sign.isdigit() or sign.isupper() or sign.islower()) for sign in key):  # in Chinese, a unit
        return None
    short = all(len(piece) == 1 or (piece.isupper() and len(piece) <= _MAX_CAPITALS) for piece in letters)
    named = letters or any(_MIXED.fullmatch(piece) and not _AMOUNT.fullmatch(piece) for piece in pieces)
    if not short or not named or _UNIT.search(code) is not None or _has_unit(code):
        return None
    runs = list(_windows(plain(answer), len(pieces) + 1, len(key)))
    if any(run.casefold() == key.casefold() for run in runs):
        return True
    return False if any(_is_near(run, key) for run in runs) else None


def _has_unit(code: str) -> bool:
    found = _NUMBER_AND_WORD.fullmatch(code)
    unit = found is not None and (found[1] in SYMBOLS or found[1].lower() in _UNIT_WORDS)
    return unit or _CLOCK.search(code) is not None


def _windows(written: str, most: int, length: int) -> Iterator[str]:
    """Yield the sequences of up to `most` pieces of an answer that have `length` characters in all."""
    matches = list(_PIECE.finditer(written))
    for first, match in enumerate(matches):
        run, last = "", match.start()
        for piece in matches[first : first + most]:
            if len(run) >= length or (run and _JOINT.fullmatch(written, last, piece.start()) is None):
                break
            run, last = run + piece[0], piece.end()
        if len(run) == length and not run.isalpha():
            yield run


def _is_near(run: str, key: str) -> bool:
    """Return True if two codes of the same form differ in one character, or in two neighbours that are exchanged."""
    if len(run) != len(key):  # without case: "\u00df" is "ss" then
        return False
    if any(
        (one.isdigit(), one.isupper()) != (other.isdigit(), other.isupper())
        for one, other in zip(run, key, strict=True)
    ):
        return run.casefold() != run and _is_near(run.casefold(), key.casefold())
    return OSA.distance(run, key, score_cutoff=1) == 1


@lru_cache(maxsize=128)
def _asks_for(question: str) -> tuple[bool, ...]:
    """Return whether a question asks for an amount or a date, a number that names a thing, program code, a symbol."""
    question = question[-_MAX_QUESTION:]
    named = _ASKED.search(question)
    # The "number of" in "the phone number of the clinic" counts nothing.
    rest = question if named is None else f"{question[: named.start()]} {question[named.end() :]}"
    return (
        _AMOUNT_ASKED.search(rest) is not None,
        named is not None,
        *(pattern.search(question) is not None for pattern in (_CODE_ASKED, _SYMBOL_ASKED)),
    )


@lru_cache(maxsize=128)
def _is_mentioned(question: str) -> bool:
    """Return True if a question mentions a thing that is named by numbers, and asks for no amount."""
    question = question[-_MAX_QUESTION:]
    return _MENTIONED.search(question) is not None and _AMOUNT_NAMED.search(question) is None


def _is_written_as_name(reference: str, question: str) -> bool:
    return _WRITTEN.search(reference) is not None and _is_mentioned(question)


def asked_number(reference: str, question: str) -> Identifier | None:
    """Return a reference's identifier if it has digits and the question asks for a number that names a thing."""
    if DIGITS.isdisjoint(reference) and reference.isascii() and "\\" not in reference:
        return None  # most references, so that their questions need no search
    amount, asked, _, _ = _asks_for(question)
    named = not amount and (asked or _is_written_as_name(plain(reference[:_MAX_REFERENCE]), question))
    identifier = Identifier.of(reference, question) if named else None
    return identifier if identifier is not None and identifier.kind == "number" else None


_UNIT: Final = re.compile(
    r"[%$\u20ac\u00a3\u00b0]|\d\s*(?:percent|per cent|dollars?|euros?|degrees?|bar|k?g|k?m|l|s)\b",
    re.IGNORECASE,
)


def _number(written: str, *, asked: bool) -> Identifier | None:
    pieces = [piece for piece in _PIECE.findall(written) if piece.lower() not in _LABELS]
    if not 0 < len(pieces) <= _MAX_PIECES or not any(map(str.isdigit, written)):
        return None
    if any(piece.isalpha() and len(piece) > _MAX_LETTERS for piece in pieces):
        return None
    mixed = any(_MIXED.fullmatch(piece) and not _AMOUNT.fullmatch(piece) for piece in pieces)
    grouped = _GROUPED.search(written) is not None and _DATE.fullmatch(written) is None
    key = "".join(_VERSION.sub("", piece) for piece in pieces).lower()
    named = asked and _UNIT.search(written) is None and (len(key) >= _MIN_DIGITS or not key.isdigit() or "." in written)
    if not (mixed or grouped or named) or len(key) < 2:
        return None
    return Identifier(key, "number", frozenset(piece.lower() for piece in pieces if piece.isalpha()))


def _runs(written: str, letters: frozenset[str], most: int) -> Iterator[str]:
    """Yield each sequence of pieces of an answer, joined and in lower case, if it has at most `most` characters."""
    pieces: list[str] = []
    last = 0
    for match in _PIECE.finditer(written):
        piece = match[0].lower()
        joined = _JOINT.fullmatch(written, last, match.start()) is not None
        last = match.end()
        if piece in _LABELS and piece not in letters:
            continue
        if piece.isdigit() and _is_counted(written, *match.span()):
            pieces = []
            continue
        if match[0].isalpha() and piece not in letters and not (match[0].isupper() and len(piece) <= _MAX_LETTERS):
            pieces = []
            continue
        if not joined:
            pieces = []
        pieces = [*pieces[1 - _MAX_PIECES :], _VERSION.sub("", piece)]
        run = ""
        for each in reversed(pieces):
            run = each + run
            if len(run) > most:
                break
            if not run.isalpha():
                yield run


def _is_counted(written: str, left: int, right: int) -> bool:
    """Return True if a number counts things or is approximate: "300 rooms", "about 300"."""
    before = written[max(0, left - _LONGEST_APPROXIMATION) : left]
    return _COUNTED.match(written, right) is not None or _APPROXIMATE.search(before) is not None


def _resembles(run: str, key: str) -> bool:
    """Return True if two identifiers have the same form, or differ in few characters."""
    if len(run) == len(key) and all(one.isdigit() == other.isdigit() for one, other in zip(run, key, strict=True)):
        return True
    if not key.isdigit() and _DIGITS.sub("0", run) == _DIGITS.sub("0", key):  # "B6" and "B12"
        return True
    if len(run) < len(key) <= _MIN_DIGITS and not key.isdigit():
        return False
    edits = max(1, len(key) // _CHARACTERS_PER_EDIT)
    return len(key) >= _MIN_DIGITS and Levenshtein.distance(run, key, score_cutoff=edits) <= edits


def _code_in(code: str, answer: str) -> bool | None:
    # In "\\d" and "-r" case counts, elsewhere an answer may be in capitals as a whole.
    flags = 0 if "\\" in code or _FLAG.search(code) is not None else re.IGNORECASE
    tokens = _CODE_TOKEN.findall(code)
    begin, end = (r"(?<!\w)" if tokens[0].isalnum() else ""), (r"(?!\w)" if tokens[-1].isalnum() else "")
    if re.search(begin + r"\s*".join(map(re.escape, tokens)) + end, answer, flags):
        return True
    if _FLAG.fullmatch(code):
        return False if _FLAG.search(answer) else None
    ours, theirs = "".join(answer.split()), "".join(code.split())
    similar = fuzz.partial_ratio(theirs, ours, score_cutoff=_MIN_SIMILARITY)
    return False if similar and (_CODE.search(answer) or len(answer.split()) <= _MAX_PIECES) else None


def _symbol_in(key: str, written: str) -> bool | None:
    words = re.findall(r"[^\W_]+", written)
    if key in words:
        return True
    others = [word for word in words if word.lower() == key.lower()]
    if not others:
        return False if len(words) <= _MAX_PIECES and any(_like_symbol(word, key) for word in words) else None
    # A longer answer in small letters or capitals throughout says nothing about case.
    alone = len(words) == 1
    return False if alone or not (written.islower() or written.isupper()) else None


def _like_symbol(word: str, key: str) -> bool:
    """Return True if a word is written like a formula or symbol and has much in common with another one."""
    if not _SYMBOL.fullmatch(word) or word in _NO_SYMBOLS or not (word[0].isupper() or any(map(str.isdigit, word))):
        return False
    if len(word) > 1 and word[1:].islower() and key[1:].isupper():
        return False
    return Levenshtein.distance(word, key) == 1
