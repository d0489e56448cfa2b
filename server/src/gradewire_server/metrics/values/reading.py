"""Find the values in a text, and their role in the sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Final

from gradewire_server.metrics.values.date_reading import (
    DECADES,
    MONTH_NAMES,
    MONTHS_ELSEWHERE,
    SEASONS,
    WEEKDAYS,
    date_at,
)
from gradewire_server.metrics.values.dates import Date, Time, time_at
from gradewire_server.metrics.values.formulas import Formula, Relation, formulas_of
from gradewire_server.metrics.values.numerals import (
    DURATIONS,
    NUMBERS_ALONE,
    NUMBERS_ELSEWHERE,
    ORDINALS,
    SCALES,
    SMALL,
    TENS,
)
from gradewire_server.metrics.values.ordinals import Ordinal, label_at, ordinal_at
from gradewire_server.metrics.values.quantities import Quantity, quantity_at
from gradewire_server.metrics.values.symbols import Locant, Symbol, locants_of, symbols_of
from gradewire_server.metrics.values.tokens import DIGITS, VOCABULARY, Token, plain, roman_value, tokens_of

_WORDS: Final = VOCABULARY["reading"]


class Kind(StrEnum):
    """The kind of a value."""

    DATE = "date"
    TIME = "time"
    QUANTITY = "quantity"
    ORDINAL = "ordinal"
    """A position in an order ("third"), or a number in a name ("Apollo 11", "Henry VIII")."""
    OPERATOR = "operator"
    """A relation: "x < 3"."""
    SYMBOL = "symbol"
    """A sign with an index or a charge: "x_3", "CO2", "Na+"."""
    LOCANT = "locant"
    """A chemical name with the marks of an isomer: "2-butanol", "carbon-14"."""
    EXPRESSION = "expression"
    LIST = "list"
    VERDICT = "verdict"
    """Yes or no."""
    RATIO = "ratio"
    """A ratio or a score: "3:2"."""
    INTERVAL = "interval"
    """A set of real numbers: "(2, 5]", "x > 3", "no solution"."""
    MATRIX = "matrix"


class Outcome(StrEnum):
    """The outcome of looking for a reference's values in an answer."""

    FOUND = "found"
    CONTRADICTED = "contradicted"
    MISSING = "missing"


_MAX_CHARACTERS_AFTER_DENIAL: Final = 64
_CLAUSE_CHARACTERS: Final = 96
DENIES: Final = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot)|n't|\b(?:rather than|instead of|as opposed to))\b"
    r"(?!\s+(?:only|just|merely|simply|exactly|quite|less|more|fewer|later|earlier|sooner|until|till|before)\b)",
    re.IGNORECASE,
)
"""Words that deny the value after them; "not only 5" and "no less than 5" deny nothing."""
_DENIAL_END: Final = re.compile(
    r"[.;:!?,()\n]|\b(?:but|until|till|before|after|since|than|later|because|although|though|while|is|was|are|were)\b",
    re.IGNORECASE,
)
"""Words and signs after which a value is no longer denied, such as "until" in "did not end until 5"."""
_SIDE_CHARACTERS: Final = 24
_SIDES: Final = re.compile(r"\b(?:(before|prior to|earlier than)|after|later than)(?: the)?\s+$", re.IGNORECASE)
_OR: Final = re.compile(r"\b(?:or|nor)\b", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_ADDITION: Final = re.compile(r"\b(?:another|an? (?:additional|extra|further))\s+\S?$", re.IGNORECASE)
_CLAUSE_END: Final = re.compile(r"[.,;:!?()\n]\s|\band\b", re.IGNORECASE)
WORD: Final = re.compile(r"[^\W\d_]{4,}")
"""Words that may distinguish two things."""


def denied(text: str, start: int) -> bool:
    """Return True if the text denies the value at a position: "not in 1999", "rather than seven"."""
    before = text[max(0, start - _MAX_CHARACTERS_AFTER_DENIAL) : start]
    cues = list(DENIES.finditer(before))
    if not cues:
        return False
    between = before[cues[-1].end() :]
    return _DENIAL_END.search(between) is None and (_DIGIT.search(between) is None or _OR.search(between) is not None)


def side(text: str, start: int) -> int:
    """Return -1 if the date at a position follows "before", 1 if it follows "after", otherwise 0."""
    found = _SIDES.search(text[max(0, start - _SIDE_CHARACTERS) : start])
    return 0 if found is None else -1 if found[1] else 1


def on_top(text: str, start: int, end: int) -> frozenset[str] | None:
    """Return a clause's lower-case words if the clause adds a value to another ("another £5"), otherwise None."""
    before = text[max(0, start - _CLAUSE_CHARACTERS) : start]
    if _ADDITION.search(before) is None:
        return None
    clause = _CLAUSE_END.split(before)[-1] + " " + _CLAUSE_END.split(text[end : end + _CLAUSE_CHARACTERS])[0]
    return frozenset(word.lower() for word in WORD.findall(clause))


Content = Date | Time | Quantity | Ordinal | Symbol | Locant | Formula | Relation


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a text.

    Attributes:
        text: The value's text in plain form.
        whole: True if the answer or reference contains nothing but this value.
        noun: The lower-case word after a number without a unit: "eyes" in "eight eyes"; may be empty.
        side: For a date, -1 after "before", 1 after "after", otherwise 0.
        denied: True if the text denies the value: "not in 1999".
        on_top: The clause's lower-case words if the clause adds this value to another value; otherwise None.
        start: The position of `text` in `written_form` of the whole text.
    """

    kind: Kind
    text: str
    content: Content
    whole: bool = False
    noun: str = ""
    side: int = 0
    denied: bool = False
    on_top: frozenset[str] | None = None
    start: int = field(default=0, compare=False)

    @property
    def end(self) -> int:
        """The position after `text`."""
        return self.start + len(self.text)


MAX_VALUES: Final = 64
"""Maximum number of values in a text. If there are more, half of this number is kept at each end."""

_MAX_SHORT: Final = 64
_MAX_CACHED: Final = 2_048
"""Maximum number of short texts with cached values, which take at most 30 MB; most have no value or one."""

_FIRST_WORDS: Final = frozenset({
    *MONTH_NAMES, *MONTHS_ELSEWHERE, *WEEKDAYS, *DECADES, *SEASONS, *SMALL, *TENS, *ORDINALS, *NUMBERS_ALONE,
    *NUMBERS_ELSEWHERE, *VOCABULARY["dates"]["named_times"], *_WORDS["beginners"].split(), "a", "an",
})  # fmt: skip
_FIRST_WORDS_WITHOUT_DIGITS: Final = (_FIRST_WORDS - {"a", "an"}).union(
    SCALES, _WORDS["beginners_without_digits"].split()
)
_SIGNS: Final = frozenset("^*/=<>+(-\u03b1\u03b2\u03b3\u03c9")
_GERMAN_SCALE: Final = re.compile(r"hundert|tausend")
_LASTING: Final = re.compile(rf"\ban? (?:{'|'.join(sorted(DURATIONS))})\b")
_WORD: Final = re.compile(r"[^\W\d_]+")
_ROMAN_WORD: Final = re.compile(r"\b[IVXLCDM]+\b")
_ROMAN: Final = frozenset("IVXLCDM")
_KINDS: Final[Mapping[type[Content], Kind]] = {
    Quantity: Kind.QUANTITY,
    Formula: Kind.EXPRESSION,
    Relation: Kind.OPERATOR,
    Symbol: Kind.SYMBOL,
    Locant: Kind.LOCANT,
}


_RELATED: Final = ("than ", "at least ", "at most ", " below ", " above ", " under ", " over ", "equal to ")
_SPOKEN: Final = re.compile(
    rf"(?<![\w'])([a-zA-Z\u03b1-\u03c9]) (?:is|must be|has to be|should be) ({'|'.join(_WORDS['relations'])}) "
    r"(?=-?\.?\d|[a-z](?![a-z]))"
)


def with_signs(text: str) -> str:
    """Replace relations in words with signs: "x is at least 3" becomes "x >= 3"."""
    if not any(word in text for word in _RELATED):
        return text
    return _SPOKEN.sub(lambda found: f"{found[1]} {_WORDS['relations'][found[2]]} ", text)


@lru_cache(maxsize=128)
def written_form(text: str) -> str:
    """Return a text's plain form with signs for relations, in which values are found."""
    return with_signs(plain(text))


def values_of(text: str) -> tuple[Value, ...]:
    """Return a text's values in order, at most MAX_VALUES."""
    return _values_of_short(text) if len(text) <= _MAX_SHORT else _values_of_long(text)


def _read_values(text: str) -> tuple[Value, ...]:
    written = written_form(text)
    characters = frozenset(written)
    if DIGITS.isdisjoint(characters) and not _may_have_value_in_words(written) and _SIGNS.isdisjoint(characters):
        return ()
    claims = _claims(written, characters)
    tokens = tokens_of(_without(written, claims) if claims else written)
    found: list[tuple[int, Value]] = [(start, value) for start, _, value in claims]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        behind = at + 1
        if (
            token.number is not None
            or token.lower in _FIRST_WORDS
            or (token.word and (_is_roman(token.text) or _GERMAN_SCALE.search(token.lower)))
        ):
            value, behind = _value_at(written, tokens, at)
            if value is not None:
                found.append((token.start, value))
        at = behind
    in_order = sorted(found, key=itemgetter(0))
    if len(in_order) > MAX_VALUES:
        in_order = in_order[: MAX_VALUES // 2] + in_order[-MAX_VALUES // 2 :]
    values = _with_roles(written, in_order)
    if len(values) == 1 and values[0].text.strip(" .!\n") == written.strip(" .!\n"):
        values = [replace(values[0], whole=True)]
    return tuple(values)


# References repeat from answer to answer.
_values_of_short: Final = lru_cache(maxsize=_MAX_CACHED)(_read_values)
_values_of_long: Final = lru_cache(maxsize=64)(_read_values)


def _with_roles(written: str, found: Sequence[tuple[int, Value]]) -> list[Value]:
    lower = written.lower() if found else ""
    denies = any(cue in lower for cue in _WORDS["denials"]) and DENIES.search(written) is not None
    adds = any(cue in lower for cue in _WORDS["additions"])
    if not denies and not adds:
        return [value for _, value in found]
    return [
        replace(
            value,
            denied=denies and denied(written, start),
            on_top=on_top(written, start, start + len(value.text)) if adds else None,
        )
        for start, value in found
    ]


def _may_have_value_in_words(written: str) -> bool:
    lower = written.lower()
    if not _FIRST_WORDS_WITHOUT_DIGITS.isdisjoint(_WORD.findall(lower)) or _LASTING.search(lower) is not None:
        return True
    return _GERMAN_SCALE.search(lower) is not None or any(roman_value(word) for word in _ROMAN_WORD.findall(written))


def _is_roman(word: str) -> bool:
    return _ROMAN.issuperset(word) and roman_value(word) is not None


def _claims(written: str, characters: AbstractSet[str]) -> list[tuple[int, int, Value]]:
    """Return chemical names, signs with an index, and formulas. If two values overlap, the first one counts."""
    found: list[tuple[int, int, Value]] = []
    taken: list[tuple[int, int]] = []
    for start, end, content in islice(_by_signs(written, characters), MAX_VALUES):
        if not any(start < other_end and other_start < end for other_start, other_end in taken):
            taken.append((start, end))
            found.append((start, end, Value(_KINDS[type(content)], written[start:end], content, start=start)))
    return sorted(found, key=itemgetter(0))


def _by_signs(written: str, characters: AbstractSet[str]) -> Iterator[tuple[int, int, Content]]:
    yield from locants_of(written, characters)
    yield from symbols_of(written, characters)
    yield from formulas_of(written, characters)


def _without(written: str, claims: Sequence[tuple[int, int, Value]]) -> str:
    """Replace the values in `claims` with ";" and blanks, so that positions do not change."""
    pieces: list[str] = []
    at = 0
    for start, end, _ in claims:
        pieces.extend((written[at:start], ";", " " * (end - start - 1)))
        at = end
    return "".join((*pieces, written[at:]))


def _value_at(written: str, tokens: Sequence[Token], at: int) -> tuple[Value | None, int]:
    if (date := date_at(tokens, at)) is not None:
        lies = side(written, tokens[max(0, date[1])].start)
        return replace(_value(Kind.DATE, written, tokens[date[1] : date[2]], date[0]), side=lies), date[2]
    if (time := time_at(tokens, at)) is not None:
        return _value(Kind.TIME, written, tokens[at : time[1]], time[0]), time[1]
    if (label := label_at(tokens, at)) is not None:
        return _value(Kind.ORDINAL, written, tokens[max(0, at - 1) : label[1]], label[0]), label[1]
    if (quantity := quantity_at(tokens, at)) is not None:
        amount, start, end = quantity
        noun = tokens[end].lower if amount.unit is None and end < len(tokens) and tokens[end].word else ""
        return replace(_value(Kind.QUANTITY, written, tokens[max(0, start) : end], amount), noun=noun), end
    if (ordinal := ordinal_at(tokens, at)) is not None:
        return _value(Kind.ORDINAL, written, tokens[at : ordinal[1]], ordinal[0]), ordinal[1]
    return None, at + 1


def _value(kind: Kind, written: str, tokens: Sequence[Token], content: Content) -> Value:
    start = tokens[0].start
    return Value(kind, written[start : tokens[-1].end], content, start=start)
