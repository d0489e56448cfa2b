"""Compare the values and ordered lists in an answer with those in a reference."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isclose
from typing import Any, Final

from gradewire_server.metrics.text.lazy import lazy
from gradewire_server.metrics.values.dates import Date, DatePrecision
from gradewire_server.metrics.values.formulas import Relation
from gradewire_server.metrics.values.identifiers import asked_number
from gradewire_server.metrics.values.lists import in_order, ordered_list
from gradewire_server.metrics.values.notations import rewritten
from gradewire_server.metrics.values.numerals import SCALES
from gradewire_server.metrics.values.ordinals import Ordinal
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import DENIES, WORD, Content, Kind, Outcome, Value, values_of
from gradewire_server.metrics.values.tokens import plain
from gradewire_server.metrics.values.units import PERCENT

MAX_QUESTION: Final = 2_048
"""Maximum number of characters to read from a question."""
_MAX_CACHED_QUESTIONS: Final = 128
_ASKED: Final = re.compile(r"\b(?:what|which|in)\s+(year|month|day|date)\b", re.IGNORECASE)
_FINENESS: Final = {
    "year": DatePrecision.YEAR,
    "month": DatePrecision.MONTH,
    "day": DatePrecision.DAY,
    "date": DatePrecision.DAY,
}
_COUNTED: Final = re.compile(r"\bhow many ([^\W\d_]+)", re.IGNORECASE)
_ASKS_FOR_DIGITS: Final = re.compile(
    r"\b(?:to|with) (?:\w+ )?(?:decimals?\b|decimal places?|significant (?:figure|digit)s|d\.?p\b|s\.?f\b)|"
    r"\bnearest (?:tenth|hundredth|thousandth|integer|whole|cent|unit)|\bexact(?:ly)? (?:how many|number|count)|"
    r"Nachkommastellen|\bd\u00e9cimales\b|\bdecimales\b|\u4f4d\u5c0f\u6570",
    re.IGNORECASE,
)
_ASKS_FOR_PERCENT: Final = re.compile(
    r"%|\bper ?cent|\bprozent|\bpour cent|\bpourcentage|\bpor ciento|\bporcentaje|\u767e\u5206", re.IGNORECASE
)
_RISE: Final = re.compile(r"\b(?:increas|ris|rose|grow|grew|gain|change)\w*", re.IGNORECASE)
_FALL: Final = re.compile(r"\b(?:decreas|declin|drop|fall|fell|los[st]|reduc|change)\w*", re.IGNORECASE)
_SCALES_ASKED: Final = re.compile(
    r"(?:\bin (?:the )?|\b(?:USD|EUR|GBP|INR|US|U\.S\.|dollars?|euros?) ?\$? ?|[$\u20ac\u00a3] ?)"
    r"(thousand|million|billion)s?\b",
    re.IGNORECASE,
)


_MANY: Final = 10_000.0
"""From this size on, a count may be rounded."""
MAX_WANTED: Final = 16
"""Maximum number of a reference's values to compare."""

_NO_NOUNS: Final = frozenset({"is", "was", "has", "does", "as", "this", "others", "its", "his", "us", "times"})
_PEOPLE: Final = frozenset({"women", "men", "people", "children", "persons"})
_PARTED: Final = re.compile(r"(?<![\d.,]\d{3})(?<=\d), (?=\d{3}(?!\d))")
_WORST: Final = (Outcome.FOUND, Outcome.MISSING, Outcome.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class Question:
    """A question's values, and its hints about the requested values; words are in lower case.

    Attributes:
        fineness: The precision of the requested date.
        scale: The scale of the requested number: 1e6 for "in millions".
        words: The question's words of at least four letters.
        counted: The nouns to count: "legs" in "how many legs does it have".
        direction: 1 if the question asks for a rise, -1 for a fall, 0 for neither or both.
        precise: True if the question asks for a number of digits, so that no coarser number is right.
        percent: True if the question asks for a percentage, so that a number may lack its sign.
    """

    values: tuple[Value, ...]
    fineness: DatePrecision
    scale: float
    years: frozenset[int]
    words: frozenset[str] = frozenset()
    denies: bool = False
    counted: frozenset[str] = frozenset()
    direction: int = 0
    precise: bool = False
    percent: bool = False

    @classmethod
    def of(cls, question: str) -> "Question":
        """Return a question's values and hints. `question` may be empty."""
        begin = question[:MAX_QUESTION]
        fineness = _ASKED.search(begin)
        scale = _SCALES_ASKED.search(begin)
        values = values_of(begin)
        years = (value.content.year for value in values if isinstance(value.content, Date))
        return cls(
            values,
            _FINENESS[fineness[1].lower()] if fineness else DatePrecision.ANY,
            SCALES[scale[1].lower()] if scale else 1.0,
            frozenset(year for year in years if year is not None),
            frozenset(word.lower() for word in WORD.findall(begin)),
            DENIES.search(begin) is not None,
            frozenset(noun.lower() for noun in _COUNTED.findall(begin)),
            bool(_RISE.search(begin)) - bool(_FALL.search(begin)),
            _ASKS_FOR_DIGITS.search(begin) is not None,
            _ASKS_FOR_PERCENT.search(begin) is not None,
        )

    def has(self, value: Value) -> bool:
        """Return True if the question contains a value."""
        return any(says(known, value, self) for known in self.values)


def says(value: Value, reference: Value, question: Question) -> bool:
    """Return True if an answer's value equals a reference's value."""
    ours: Any = value.content
    theirs: Any = reference.content
    if isinstance(ours, Date) and isinstance(theirs, Date):
        return ours.equals(theirs, question.fineness, question.years)
    if type(ours) is type(theirs) and not isinstance(ours, Quantity):
        return bool(ours.equals(theirs))
    if isinstance(ours, Ordinal | Relation) and isinstance(theirs, Ordinal | Relation):  # "n = 17" is the 17th
        ours, theirs = (
            as_quantity(content) or content if isinstance(content, Relation) else content for content in (ours, theirs)
        )
        value = replace(value, whole=True)
    match ours, theirs:
        case (Ordinal() as place, Quantity() as amount) | (Quantity() as amount, Ordinal() as place):
            place_alone = value.whole or (place.named and not place.noun)  # "No. 7"
            return place_alone and amount.unit is None and place.number == f"{amount.value:g}"
    return _says_number(as_quantity(ours), as_quantity(theirs), question)


def _says_number(amount: Quantity | None, wanted: Quantity | None, question: Question) -> bool:
    if amount is None or wanted is None or _is_too_coarse(amount, wanted, question):
        return False
    if (not question.percent and _is_other_share(amount, wanted)) or _is_to_round(amount, wanted, question):
        return False
    return _same_number(amount, wanted, question.scale)


def _is_to_round(amount: Quantity, wanted: Quantity, question: Question) -> bool:
    """Return True if a number is the question's, which is to be rounded, and not the rounded one."""
    if not question.precise or amount.place >= wanted.place:
        return False
    return any(isinstance(known.content, Quantity) and known.content.value == amount.value for known in question.values)


def _is_too_coarse(amount: Quantity, wanted: Quantity, question: Question) -> bool:
    """Return True if an answer rounds a count, or a number of which the question requests all digits."""
    if amount.place <= wanted.place or isclose(amount.in_base(amount.value), wanted.in_base(wanted.value)):
        return False
    small = wanted.unit is None and wanted.place == 1.0 and abs(wanted.value) < _MANY and not wanted.hedged
    counted = bool(question.counted) and small
    return wanted.place > 0 and (question.precise or counted)


def _is_other_share(amount: Quantity, wanted: Quantity) -> bool:
    """Return True if one number is a percentage and the other a different share of one: "0.85%" and "0.85"."""
    if PERCENT not in {amount.unit, wanted.unit} or (amount.unit is None) == (wanted.unit is None):
        return False
    bare = amount if amount.unit is None else wanted
    return (
        bare.place > 0
        and 0 < bare.value < 1
        and not isclose(amount.in_base(amount.value), wanted.in_base(wanted.value))
    )


def opposed(value: Value, reference: Value, question: Question) -> bool:
    """Return True if an answer's value means the opposite of the reference's value, although the two are equal.

    For example, one date follows "before" and the other date follows "after". Or the answer states a fall although the
    question asks for a rise (or the reverse), and the reference has no direction.
    """
    if value.side * reference.side < 0:
        return True
    match value.content, reference.content:
        case Quantity() as ours, Quantity() as theirs if not theirs.direction and not theirs.signed:
            return ours.direction * question.direction < 0
        case _:
            return False


def in_place_of(value: Value, reference: Value) -> bool:
    """Return True if two values (an answer's and a reference's) are of the same kind but contradict each other."""
    ours: Any = value.content
    theirs: Any = reference.content
    return type(ours) is type(theirs) and bool(ours.contradicts(theirs))


def coarser(value: Value, reference: Value) -> bool:
    """Return True if a value is a less precise date than the reference's date."""
    ours, theirs = value.content, reference.content
    return isinstance(ours, Date) and isinstance(theirs, Date) and ours.coarser_than(theirs)


def _same_number(amount: Quantity, wanted: Quantity, scale: float) -> bool:
    """Return True if the two numbers are equal, or if they are equal after multiplying one of them by `scale`."""
    if amount.equals(wanted):
        return True
    return scale > 1 and (amount.equals(_scaled(wanted, scale)) or _scaled(amount, scale).equals(wanted))


def as_quantity(content: Content) -> Quantity | None:
    """Return a quantity, the solution of a relation, or a year that may be an ordinary number; otherwise None."""
    if isinstance(content, Quantity):
        return content
    if isinstance(content, Relation) and (solution := content.solution) is not None:
        return Quantity(solution, 0.0, signed=solution < 0)
    if isinstance(content, Date) and content.number is not None:
        return Quantity(float(content.number), 1.0)
    return None


def _scaled(quantity: Quantity, scale: float) -> Quantity:
    upper = None if quantity.upper is None else quantity.upper * scale
    return replace(quantity, value=quantity.value * scale, place=quantity.place * scale, upper=upper)


_question_of: Final = lru_cache(maxsize=_MAX_CACHED_QUESTIONS)(Question.of)


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A comparison of an answer with a reference's values.

    Attributes:
        outcomes: The kind and outcome of each value of the reference that the question does not contain. If the
            question contains all values, all values are compared.
        coarser: The number of missing dates for which the answer has a less precise date, such as only the year.
        extra: The number of values that are in the answer, but in neither the question nor the reference. Only kinds
            that the reference contains are counted.
        settled: True if the reference is one value as a whole, whose sense needs no further reading.
    """

    outcomes: tuple[tuple[Kind, Outcome], ...] = ()
    coarser: int = 0
    extra: int = 0
    settled: bool = False

    @property
    def wanted(self) -> int:
        """The number of compared values."""
        return len(self.outcomes)

    @property
    def found(self) -> int:
        """The number of values that the answer contains."""
        return self._count(Outcome.FOUND)

    @property
    def contradicted(self) -> int:
        """The number of values that the answer denies, or replaces with a different value of the same kind and unit."""
        return self._count(Outcome.CONTRADICTED)

    @property
    def missing(self) -> int:
        """The number of values that the answer neither contains nor contradicts."""
        return self._count(Outcome.MISSING)

    @property
    def kinds(self) -> dict[Kind, Outcome]:
        """The kinds of the compared values, each with its worst outcome."""
        worst: dict[Kind, Outcome] = {}
        for kind, outcome in self.outcomes:
            worst[kind] = max(worst.get(kind, Outcome.FOUND), outcome, key=_WORST.index)
        return worst

    @property
    def outcome(self) -> Outcome | None:
        """The worst outcome (CONTRADICTED, then MISSING, then FOUND), or None if no values are compared."""
        if not self.outcomes:
            return None
        if self.contradicted:
            return Outcome.CONTRADICTED
        return Outcome.FOUND if self.found == self.wanted else Outcome.MISSING

    def contradicting(self) -> "ValueMatch":
        """Return the match with all values contradicted that the answer contains."""
        return replace(
            self,
            outcomes=tuple(
                (kind, outcome if outcome is Outcome.MISSING else Outcome.CONTRADICTED)
                for kind, outcome in self.outcomes
            ),
        )

    def _count(self, wanted: Outcome) -> int:
        return sum(outcome is wanted for _, outcome in self.outcomes)


NOTHING: Final = ValueMatch()


class ValueMatcher:
    """A matcher for one answer and any number of references.

    Args:
        is_rewritten: False if the matcher shall pass the answer to `rewritten`, which it does only if it needs to.
    """

    def __init__(self, question: str, answer: str, *, is_rewritten: bool = True) -> None:
        self._question = question
        self._given_answer = answer
        self._is_rewritten = is_rewritten
        self._wanted: dict[str, tuple[Value, ...]] = {}

    @lazy
    def _answer(self) -> str:
        return self._given_answer if self._is_rewritten else rewritten(self._question, self._given_answer)

    @lazy
    def question(self) -> Question:
        """The question's values and hints."""
        return _question_of(self._question[:MAX_QUESTION])

    @lazy
    def values(self) -> tuple[Value, ...]:
        """The answer's values in order."""
        return values_of(self._answer)

    @lazy
    def _joined(self) -> tuple[Value, ...]:
        """The answer's values if numbers like "1, 776" count as one number; empty if the answer has no such number."""
        written = plain(self._answer)
        joined = _PARTED.sub(",", written)
        return () if joined == written else values_of(joined)

    @lazy
    def _values_not_in_question(self) -> tuple[Value, ...]:
        return tuple(value for value in self.values if not self.question.has(value))

    def wanted(self, reference: str) -> tuple[Value, ...]:
        """Return those of a reference's first MAX_WANTED values that an answer has to contain."""
        if reference not in self._wanted:
            of_reference = wanted = values_of(reference)[:MAX_WANTED]
            if of_reference:
                wanted = tuple(value for value in of_reference if not self.question.has(value)) or of_reference
                # "1912, not 1913" wants 1912
                wanted = tuple(value for value in wanted if not value.denied) or wanted
            self._wanted[reference] = wanted
        return self._wanted[reference]

    def equal(self, wanted: Value) -> tuple[Value, ...]:
        """Return the answer's values that equal a reference's value."""
        return tuple(value for value in self.values if says(value, wanted, self.question))

    def match(self, reference: str) -> ValueMatch:
        """Compare the answer with a reference's first MAX_WANTED values."""
        ordered = ordered_list(plain(reference), self._question[:MAX_QUESTION])
        if ordered is not None:
            kept = in_order(ordered, plain(self._answer))
            outcome = Outcome.MISSING if kept is None else Outcome.FOUND if kept else Outcome.CONTRADICTED
            return ValueMatch(((Kind.LIST, outcome),))
        identifier = asked_number(reference, self._question)
        if identifier is not None and (same := identifier.found_in(self._answer)) is not None:
            return ValueMatch(((Kind.SYMBOL, Outcome.FOUND if same else Outcome.CONTRADICTED),))
        of_reference = values_of(reference)[:MAX_WANTED]
        wanted = self.wanted(reference)
        if not wanted:
            return NOTHING
        outcomes = [self._outcome(value) for value in wanted]
        kinds = {value.kind for value in wanted}
        return ValueMatch(
            tuple((value.kind, outcome) for value, outcome in zip(wanted, outcomes, strict=True)),
            coarser=sum(
                outcome is Outcome.MISSING and any(coarser(each, value) for each in self.values)
                for value, outcome in zip(wanted, outcomes, strict=True)
            ),
            extra=sum(
                value.kind in kinds and not any(says(value, each, self.question) for each in of_reference)
                for value in self._values_not_in_question
            ),
        )

    def _outcome(self, wanted: Value) -> Outcome:
        equal = self.equal(wanted)
        if self.question.precise and self._is_rounded_otherwise(wanted):
            return Outcome.CONTRADICTED
        if any(self._replaces(value, wanted) for value in equal):
            return Outcome.FOUND
        if any(says(value, wanted, self.question) for value in self._joined):
            return Outcome.FOUND
        if equal or any(in_place_of(value, wanted) for value in self._values_not_in_question if not value.denied):
            return Outcome.CONTRADICTED
        return Outcome.MISSING

    def _is_rounded_otherwise(self, wanted: Value) -> bool:
        """Return True if the answer has a number with the wanted number of digits, but not the wanted number."""
        number = as_quantity(wanted.content)
        if number is None or not 0 < number.place < 1:
            return False
        said = [each for value in self.values if (each := as_quantity(value.content)) is not None]
        alike = [each.value for each in said if isclose(each.place, number.place) and each.unit == number.unit]
        return bool(alike) and not any(isclose(value, number.value) for value in alike)

    def _replaces(self, value: Value, wanted: Value) -> bool:
        """Return True if `value`, which equals `wanted`, answers the question.

        `value` must not be denied, mean the opposite of `wanted`, or be about something else.
        """
        if value.denied and not wanted.denied and not self.question.denies:
            return False
        if opposed(value, wanted, self.question):
            return False
        if value.on_top is not None and wanted.on_top is None and value is not self.values[0]:
            return not self.question.words.isdisjoint(value.on_top)
        return not self._counts_other_things(value, wanted) and not self._is_exchanged(value, wanted)

    @staticmethod
    def _is_count_for_share(value: Value, wanted: Value) -> bool:
        """Return True if a value counts things, but the reference is a percentage: "52 women" for "52%"."""
        ours, theirs = value.content, wanted.content
        if not isinstance(ours, Quantity) or not isinstance(theirs, Quantity) or theirs.unit != PERCENT:
            return False
        return ours.unit is None and (value.noun in _PEOPLE or (len(value.noun) > 3 and value.noun.endswith("s")))

    def _is_exchanged(self, value: Value, wanted: Value) -> bool:
        """Return True if the answer counts a reference's things with another number: "3 cats and 4 dogs"."""
        noun = wanted.noun.rstrip("s")
        if not noun or value.noun.rstrip("s") in {"", noun}:
            return False
        same = [other for other in self.values if other.noun.rstrip("s") == noun]
        return bool(same) and not any(says(other, wanted, self.question) for other in same)

    def _counts_other_things(self, value: Value, wanted: Value) -> bool:
        """Return True if a value counts the wrong things, and another value counts what the question asks for.

        An example is "eight" in "six legs and eight eyes", if the question asks for legs.
        """
        if self._is_count_for_share(value, wanted):
            return True
        counted = self.question.counted
        if not counted or not value.noun.endswith("s") or value.noun in {wanted.noun, *counted, *_NO_NOUNS}:
            return False
        return any(other.noun in counted and other not in self.question.values for other in self.values)


def match_values(question: str, reference: str, answer: str) -> ValueMatch:
    """Compare an answer's values with a reference's; the question may be empty.

    The question determines which values the answer may omit, the precision of a date, the scale of a number ("in
    millions"), and whether the order of a list matters.
    """
    return ValueMatcher(question, answer, is_rewritten=False).match(rewritten(question, reference))
