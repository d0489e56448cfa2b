"""Find values of a reference that an answer gives with another sign or unit, or only compares something with."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isclose, log10, nan
from typing import Final

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.values.dates import Date, DatePrecision, Time
from gradewire_server.metrics.values.matching import ValueMatcher, as_quantity, coarser
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import Value, written_form
from gradewire_server.metrics.values.tokens import VOCABULARY, plain, tokens_of
from gradewire_server.metrics.values.units import Unit, unit_at

_WORDS: Final = VOCABULARY["value_readings"]
_WINDOW: Final = 48
"""Maximum number of characters to read before and after a value."""
_CLAUSE_END: Final = re.compile(r"[.;:!?\n](?=\s|$)|, (?!who\b|which\b|that\b)")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DIGIT: Final = re.compile(r"\d")


_NEGATIVE: Final = frozenset(_WORDS["negative"].split())
_SUBTRACTION: Final = re.compile(r"\b(?:minus|negative)\s+(?=\d)", re.IGNORECASE)
"""A sign in words: "What is 2 minus 7?" asks for no size."""
_ASKS_FOR_SIZE: Final = re.compile(expression(_WORDS["asks_for_size"].split(), end=""), re.IGNORECASE)
_POLES: Final = {
    word: frozenset(other for pair in _WORDS["poles"] if word in pair for other in pair if other != word)
    for word in {word for pair in _WORDS["poles"] for word in pair}
}
"""The opposites of each word."""
_BOTH_SIGNS: Final = re.compile(r"[^\d]*\+/-\s*")
_BOTH_SIGNS_SAID: Final = re.compile(r"\+/-|\bplus[ -](?:or|and|/)[ -]minus\b|\bboth signs\b", re.IGNORECASE)
_COUNTS: Final = re.compile(
    r"\bhow many\b|\bnumber of\b|\bcount\b|\bhow often\b|\bwie viele\b|\bcombien d|\bcu[a\u00e1]nt[oa]s\b|"
    r"\u591a\u5c11[\u4eba\u4e2a]",
    re.IGNORECASE,
)
_PREFIXES: Final = frozenset("fpnu\u03bcmcdhkgt")
_PERIODS: Final = {word: period for period, words in _WORDS["periods"].items() for word in words.split()}
_RATE: Final = re.compile(rf"\s*(?:(?:a|an|per|each|every|pro|par|por)\s+|/\s?)?({expression(_PERIODS)})")
_GROUPS: Final = frozenset(_WORDS["groups"].split())
_OCCASION: Final = re.compile(r"\s*(?:(?:a|an|per|each|every|pro|par|por)\s+|/\s?)([^\W\d_]{3,})")
_MAX_DAYS_OF_YEAR: Final = 372
_DAYS_OF_DECADE: Final = 9 * _MAX_DAYS_OF_YEAR
_HALF_DAY: Final = 720
_LEAST_DIGITS: Final = 2
_SCALE_SIGNS: Final = frozenset({"k", "m", "b", "bn", "mn", "t"})
"""Letters behind a number that may be scales: "1.2M followers"."""
_EXACT: Final = 1e-9
_LARGE: Final = 1e6
"""Minimum size of numbers that texts round down: "over 4 million"."""

_BOUND_BEFORE: Final = re.compile(
    rf"({expression((*_WORDS['bounds'].split(), *_WORDS['phrases_before']))}|\b\w+er als)\s+(?:the\s+)?$"
)
_BOUND_BEHIND: Final = re.compile(r"\s*(?:[^\W\d_]+\s+)?or\s+(?:more|less|fewer|(?!other)\w{2,}er)\b")
_WORDS_BETWEEN: Final = r"(?:(?!is\b|was\b|are\b)[^\W\d][\w']*,?\s+)"
_RELATED_BEFORE: Final = re.compile(
    rf"(?:\b(?<!rather )(?<!other )(?:than|beyond|outside)\s+{_WORDS_BETWEEN}{{0,3}}"
    rf"|{expression(_WORDS['multiples'].split())}\s+(?:as\s+\w+\s+as\s+)?"
    rf"(?:{expression(_WORDS['behind_multiples'].split())}\s+{_WORDS_BETWEEN}{{0,4}}|{_WORDS_BETWEEN}?(?:que|als|wie)\s+)?"
    r"|\bas\s+\w+(?:\s+\w+)?\s+as\s+(?:[\w']+,?\s+){0,3}"
    r"|\w+s\s+(?:above|below|before|after|over|under|behind|ahead of|off|short of)\s+(?:(?:the|\w+'s)\s+)?"
    r"|\bthan\b[^.;!?]{0,40},\s+(?:who|which|that)\s+\w+\s+)$"
)
_RELATED_BEHIND: Final = re.compile(
    r"\s*(?:[^\W\d_]+\s+){0,2}(?:more|less|fewer|(?!rather|other)\w{2,}er)\s+than\b"
    r"|\s*(?:[^\W\d_]+\s+)?(?:plus|minus)\b(?! or)"
    r"|\s*(?:times|fold)\b"
)
_ASKS_FOR_DIFFERENCE: Final = re.compile(
    r"\b(?:(?:more|less|fewer|\w{2,}er)\s+than|by how|by what|(?:more|less|fewer)\s+(?:do|does|did|is|are)"
    r"|how (?:many|much)\s+(?:\w+\s+)?(?:more|less|fewer|\w{3,}er)|difference|factor|times|often)\b",
    re.IGNORECASE,
)
# An amount before a bound makes it a difference: "a million degrees above 5,500".
_AMOUNT_BEFORE: Final = re.compile(r"(?:\d|\b(?:million|thousand|hundred|few|several|some))\s*[^\W\d_]+\s+$")
_NOUN_BEHIND: Final = re.compile(r"\s+[^\W\d_]")
_TAG_END: Final = re.compile(r"</?\w+\s*$")
"""A tag whose ">" was read as a relation."""
_ASKS_FOR_BOUND: Final = re.compile(expression(_WORDS["asks_for_bound"].split()), re.IGNORECASE)


def value_doubts(matcher: ValueMatcher, question: str, answer: str, references: Sequence[str]) -> dict[str, float]:
    """Return two features, each 1 if it applies, 0 if not, NaN if the answer or the references have no values.

    Returns:
        `value_altered`: the answer contains a reference's number, but with another sign, unit, period, scale, era or
        half of the day, or another weekday, and no reference's values otherwise. NaN if it gives a reference in words,
        or if it alters nothing and a reference has no values. `value_compared`: the answer only compares with a
        reference's value: "higher than 62 m", "half of the expected 8,000". NaN if a reference has no values.
    """
    pairs = [(reference, values) for reference in references if (values := matcher.wanted(reference))]
    if not pairs or not matcher.values:
        return {"value_altered": nan, "value_compared": nan}
    readings = [(_Reading(matcher, question, answer, reference), values) for reference, values in pairs]
    compared = [[(value, reading.compared(value)) for value in values] for reading, values in readings]
    said = answer.casefold()
    # A reference in words ("negative" beside "-1") counts if it is given.
    in_words = any(reference.casefold() in said for reference in references if not matcher.wanted(reference))
    altered = [[(value, reading.altered(value)) for value in values] for reading, values in readings]
    signed = any(isinstance(value.content, Quantity) and value.content.signed for value in matcher.values)
    exact = [
        marks
        for marks in altered
        if not _is_clear(marks) or not any(_is_vaguer(marks, others, signed=signed) for others in altered)
    ]
    all_have_values = len(pairs) == len(references)
    return {
        "value_altered": nan if in_words else _flag(exact) or (0.0 if all_have_values else nan),
        "value_compared": _flag(compared) if all_have_values else nan,
    }


_Marks = Sequence[tuple[Value, bool | None]]
"""A reference's values with their marks."""


def _is_clear(marks: _Marks) -> bool:
    return all(mark is False for _, mark in marks)


def _flag(found: Sequence[_Marks]) -> float:
    """Return 1 if a value of a reference is marked, and no reference has only values that are there unmarked."""
    return float(not any(map(_is_clear, found)) and any(mark is True for marks in found for _, mark in marks))


def _is_vaguer(ours: _Marks, theirs: _Marks, *, signed: bool) -> bool:
    """Return True if a reference omits what makes another reference's value a marked one.

    "220" does not say that "220 °F" is right where "220 °C" is another reference. The omission of a sign says so only
    if the answer has signs.
    """
    marked = [value for value, mark in theirs if mark is True]
    if not marked or any(mark is None for _, mark in theirs):
        return False
    pairs = [(value, other) for value, _ in ours for other, _ in theirs if _has_number_of(value, other)]
    if {id(value) for value, _ in ours} != {id(value) for value, _ in pairs}:
        return False
    return all(_omits(value, other, signed=signed) for value, other in pairs if other in marked)


def _has_number_of(value: Value, other: Value) -> bool:
    """Return True if two values have the same number, or if one of them may be a time without the half of its day."""
    match value.content, other.content:
        case Time() as time, Time() as exact:
            return (time.minute - exact.minute) % _HALF_DAY == 0
        case Quantity() as ours, Quantity() as theirs:
            units = ours.unit is None or theirs.unit is None or ours.unit == theirs.unit
            return units and (ours.upper, theirs.upper) == (None, None) and isclose(abs(ours.value), abs(theirs.value))
    return False


def _omits(value: Value, exact: Value, *, signed: bool) -> bool:
    match value.content, exact.content:
        case Time() as ours, Time() as theirs:
            return theirs.half_known and not ours.half_known
        case Quantity() as ours, Quantity() as theirs:
            unit = ours.unit is None and theirs.unit is not None
            return unit or (signed and theirs.signed and not ours.signed)
    return False


class _Reading:
    """An answer's values beside those of one reference. Marks are None where a value is missing."""

    def __init__(self, matcher: ValueMatcher, question: str, answer: str, reference: str) -> None:
        self._matcher = matcher
        self._answer = written_form(answer)
        self._reference = written_form(reference)
        self._question = question

    @property
    def _others(self) -> list[Value]:
        return [value for value in self._matcher.values if not self._matcher.question.has(value)]

    def altered(self, wanted: Value) -> bool | None:
        """Return True if the answer's number is a reference's in another sense, None if it lacks the number."""
        if _BOTH_SIGNS.fullmatch(self._reference[: wanted.start]):
            return not self._has_both_signs(wanted)
        equal = self._matcher.equal(wanted)
        if equal:
            return all(self._says_otherwise(value, wanted) for value in equal)
        return True if any(self._same_number_otherwise(value, wanted) for value in self._others) else None

    def _has_both_signs(self, wanted: Value) -> bool:
        if _BOTH_SIGNS_SAID.search(self._answer):
            return True
        number = as_quantity(wanted.content)
        found = [each.value for value in self._matcher.values if (each := as_quantity(value.content)) is not None]
        return number is None or {number.value, -number.value} <= set(found)

    def compared(self, wanted: Value) -> bool | None:
        """Return True if the answer only compares with a reference's number, None if it lacks the number."""
        equal = self._matcher.equal(wanted)
        if not equal:
            return None
        if _bounds(self._reference, wanted) or _relates(self._reference, wanted):
            return False
        if _ASKS_FOR_DIFFERENCE.search(self._question):
            return False
        content = wanted.content
        if isinstance(content, Quantity) and content.signed and _sign_behind(self._answer, equal[0]) == "+":
            return False
        approximate = isinstance(content, Quantity) and (content.hedged or content.upper is not None)
        may_bound = approximate or _ASKS_FOR_BOUND.search(self._question) is not None
        return all(
            _relates(self._answer, value) or (not may_bound and _bounds_otherwise(self._question, self._answer, value))
            for value in equal
        )

    def _says_otherwise(self, value: Value, wanted: Value) -> bool:
        """Return True if an equal value has another unit that the reader of values does not know."""
        return (
            self._other_share(value, wanted)
            or _other_prefix(value, wanted)
            or self._other_period(value, wanted)
            or self._other_power(value, wanted)
            or (value.noun in _GROUPS and value.noun not in f"{self._question} {self._reference}".lower())
            or self._other_pole(value, wanted)
        )

    def _other_share(self, value: Value, wanted: Value) -> bool:
        ours, theirs = value.content, wanted.content
        if not isinstance(ours, Quantity) or not isinstance(theirs, Quantity) or theirs.unit is not None:
            return False
        percent = ours.unit is not None and not ours.dimension
        return percent and isclose(ours.value, theirs.value) and _COUNTS.search(self._question) is not None

    def _other_period(self, value: Value, wanted: Value) -> bool:
        if not isinstance(value.content, Quantity) or not isinstance(wanted.content, Quantity):
            return False
        period = _period_behind(self._answer, value)
        if period is None:
            return self._other_occasion(value, wanted)
        known = _periods_in(f"{self._question} {self._reference}")
        return bool(known) and period not in known

    def _other_occasion(self, value: Value, wanted: Value) -> bool:
        """Return True if an amount is one for each of something, and the reference's one for a period."""
        if _period_behind(self._reference, wanted) is None:
            return False
        found = _OCCASION.match(self._answer[value.end : value.end + _WINDOW].lower())
        return found is not None and found[1] not in f"{self._question} {self._reference}".lower()

    def _other_power(self, value: Value, wanted: Value) -> bool:
        """Return True if other units stand behind equal multiples of pi or other formulas: "4 pi cm", "4 pi cm^2"."""
        if value.text[-1:].isdecimal() or wanted.text[-1:].isdecimal():
            return False
        ours, theirs = _unit_behind(self._answer, value), _unit_behind(self._reference, wanted)
        return ours is not None and theirs is not None and ours.dimension != theirs.dimension

    def _other_pole(self, value: Value, wanted: Value) -> bool:
        theirs = _poles_around(self._reference, wanted)
        if not theirs:
            return False
        ours = _poles_around(self._answer, value)
        return not ours & theirs and any(_POLES[pole] & ours for pole in theirs)

    def _same_number_otherwise(self, value: Value, wanted: Value) -> bool:
        if isinstance(value.content, (Date, Time)) and self._other_date(value, wanted):
            return True
        ours, theirs = as_quantity(value.content), as_quantity(wanted.content)
        if ours is None or theirs is None or ours.upper is not None or theirs.upper is not None:
            return False
        rate = _period_behind(self._reference, wanted) or _period_behind(self._answer, value)
        return (
            self._other_sign(value, wanted, ours, theirs)
            or (rate is None and _other_unit(ours, theirs))
            or (_SCALE_SIGNS.isdisjoint({value.noun, wanted.noun}) and self._other_scale(ours, theirs))
        )

    def _other_date(self, value: Value, wanted: Value) -> bool:
        match value.content, wanted.content:
            case Date() as ours, Date() as theirs:
                if ours.weekday is not None and theirs.weekday is not None:
                    return ours.weekday != theirs.weekday
                period = (
                    _long(ours) and coarser(value, wanted) and self._matcher.question.fineness is not DatePrecision.ANY
                )
                return period or _other_era(ours, theirs)
            case Time() as time, Time() as other:
                return (time.minute - other.minute) % (2 * _HALF_DAY) == _HALF_DAY
            case Date() as ours, Quantity() as number:
                return ours.year is not None and ours.year < 0 and -ours.year == number.value
        return False

    def _other_sign(self, value: Value, wanted: Value, ours: Quantity, theirs: Quantity) -> bool:
        unsigned = (
            replace(each, value=abs(each.value), signed=False, direction=0, bound="") for each in (ours, theirs)
        )
        if not next(unsigned).equals(next(unsigned)) or ours.value == 0:
            return False
        if ours.signed and theirs.signed:
            return True
        if _sign_behind(self._answer, value) == "-":
            return False
        # Words of a fall in a question that has the number with its sign ask for nothing.
        asked = _SUBTRACTION.sub(" ", self._question)
        if not self._matcher.question.has(wanted) and _ASKS_FOR_SIZE.search(asked):
            return False
        return _NEGATIVE.isdisjoint(_words_around(self._answer, value))

    def _other_scale(self, ours: Quantity, theirs: Quantity) -> bool:
        if ours.family != theirs.family or not ours.value or not theirs.value:
            return False
        ratio = ours.in_base(ours.value) / theirs.in_base(theirs.value)
        power = log10(ratio) if ratio > 0 else 0.5
        digits = f"{theirs.value:.12e}".partition("e")[0].rstrip("0").replace(".", "")
        single = len(digits) < _LEAST_DIGITS and len(self._matcher.values) > 1
        return abs(power) > 0.5 and abs(power - round(power)) < _EXACT and not single


def _bounds(written: str, value: Value) -> bool:
    """Return True if a value is a bound of another one: "at least 179", "before 1871"."""
    before, behind = _around(written, value)
    bound = isinstance(value.content, Quantity) and bool(value.content.bound)
    return bound or bool(value.side or _BOUND_BEFORE.search(before) or _BOUND_BEHIND.match(behind))


def _bounds_otherwise(question: str, written: str, value: Value) -> bool:
    """Return True if a value is a bound of another one, where neither question nor habit explain the bound.

    A word of the question explains it ("under which number"), as do a large number ("over 4 million") and "no" ("no
    fewer than 12"). "After the 2012 season" is about the season.
    """
    before, behind = _around(written, value)
    content = value.content
    cue = _BOUND_BEFORE.search(before)
    words = cue[1] if cue else ""
    if isinstance(content, Quantity) and content.bound and not _TAG_END.search(before):
        words = words or _DIGIT.split(value.text.lower(), maxsplit=1)[0] or content.bound
        if content.value >= _LARGE or words.startswith("no "):
            return False
    elif value.side or cue:
        if _NOUN_BEHIND.match(behind) and (before.endswith("the ") or value.text.startswith("the ")):
            return False
        words = words or before
    if words:
        return not set(_WORD.findall(question.lower())).issuperset(_WORD.findall(words) or [words])
    return _BOUND_BEHIND.match(behind) is not None


def _relates(written: str, value: Value) -> bool:
    """Return True if something is a multiple of a value, or differs from it: "half of 8,000", "older than 31"."""
    before, behind = _around(written, value)
    differs = isinstance(value.content, Quantity) and bool(value.content.bound) and _AMOUNT_BEFORE.search(before)
    return bool(differs or _RELATED_BEFORE.search(before) or _RELATED_BEHIND.match(behind))


def _around(written: str, value: Value) -> tuple[str, str]:
    """Return the text before and after a value within its clause, in lower case."""
    before = _CLAUSE_END.split(written[max(0, value.start - _WINDOW) : value.start])[-1]
    behind = _CLAUSE_END.split(written[value.end : value.end + _WINDOW])[0]
    return before.lower(), behind.lower()


def _words_around(written: str, value: Value) -> set[str]:
    before, behind = _around(written, value)
    return {*_WORD.findall(before)[-3:], *_WORD.findall(value.text.lower()), *_WORD.findall(behind)[:3]}


def _poles_around(written: str, value: Value) -> set[str]:
    return _words_around(written, value) & _POLES.keys()


def _periods_in(text: str) -> set[str]:
    return {_PERIODS[word] for word in _WORD.findall(text.lower()) if word in _PERIODS}


def _period_behind(written: str, value: Value) -> str | None:
    found = _RATE.match(written[value.end : value.end + _WINDOW].lower())
    return _PERIODS[found[1]] if found else None


def _other_prefix(value: Value, wanted: Value) -> bool:
    """Return True if both numbers have a unit that is not known, one with another prefix: "3 mSv" and "3 Sv"."""
    ours, theirs = _unit_word(value), _unit_word(wanted)
    if (
        not ours
        or not theirs
        or ours == theirs
        or (not value.noun and not wanted.noun)
        or max(len(ours), len(theirs)) > 4
    ):
        return False
    longer, shorter = (ours, theirs) if len(ours) > len(theirs) else (theirs, ours)
    if len(longer) == len(shorter):
        return longer[1:] == shorter[1:] and {longer[0], shorter[0]} <= _PREFIXES and len(longer) > 1
    return longer[1:] == shorter and longer[0] in _PREFIXES


def _unit_behind(written: str, value: Value) -> Unit | None:
    if isinstance(value.content, Quantity) and value.content.unit is not None:
        return None
    found = unit_at(tokens_of(plain(written[value.end : value.end + _WINDOW])), 0)
    return found.unit if found else None


def _sign_behind(written: str, value: Value) -> str:
    """Return the sign of a charge like "2+", or another character."""
    return value.text[-1] if value.text[-1] in "+-" else written[value.end : value.end + 1]


def _unit_word(value: Value) -> str:
    return value.noun or (value.content.unit_name if isinstance(value.content, Quantity) else "")


def _other_era(ours: Date, theirs: Date) -> bool:
    return bool(ours.year) and ours.year == -(theirs.year or 0)


def _long(date: Date) -> bool:
    return date.days is not None and date.days[1] - date.days[0] >= _DAYS_OF_DECADE


def _other_unit(ours: Quantity, theirs: Quantity) -> bool:
    if ours.unit is None or theirs.unit is None or ours.unit == theirs.unit:
        return False
    return isclose(abs(ours.value), abs(theirs.value), rel_tol=_EXACT)
