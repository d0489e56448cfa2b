"""Find the result of an answer's calculation, and compare it with the references."""

import re
from collections.abc import Sequence
from math import isclose, nan
from typing import Final

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.values.dates import Date
from gradewire_server.metrics.values.matching import ValueMatcher, as_quantity, says
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import Value, written_form
from gradewire_server.metrics.values.tokens import VOCABULARY

_WORDS: Final = VOCABULARY["results"]
_MAX_CHARACTERS: Final = 4_096
"""Maximum number of characters to read at the end of an answer."""
_MAX_RESULT: Final = 160
"""Maximum number of characters of a clause that states a result."""
_MAX_REFERENCE_WORDS: Final = 4
_FEWEST_VALUES: Final = 2
_ROUNDING: Final = 0.01
"""Relative difference up to which two numbers may be one rounded number."""


_BOXED: Final = "\\boxed"
_ASKS_DATE: Final = re.compile(r"\b(?:when|years?|dates?)\b", re.IGNORECASE)
_ASIDE: Final = re.compile(r"\([^()]{0,80}(?:=|\b(?:see|cf|page|p)\b)[^()]{0,80}\)")
_CHECK: Final = re.compile(rf"(?<=[\s,;:.(]){expression(_WORDS['checks'])}|,\sas\b")
# Between two operands a calculation, before its result an equals sign or an arrow.
_CALCULATES: Final = re.compile(
    r"\d[^=\n]{0,40}[=\u2248]|[=\u2248]\s*[-+$\u20ac\u00a3]?\d|\d\s*[+*/]\s*\d|\d\s+[-x:]\s+\d|->|=>"
    r"|\d\s+(?:plus|minus|times|take away|divided by)\s+\d"
)
_CONCLUDES: Final = re.compile(rf"{expression(_WORDS['conclusions'])}\b|->|=>|\u2234")
_MARK: Final = re.compile(
    rf"[=\u2248]|->|\u2234|{expression(_WORDS['conclusions'])}(?!\w)"
    rf"|{expression(_WORDS['states'])}(?=\s+(?:[a-z']+\s+){{0,2}}[-+~$\u20ac\u00a3(]{{0,2}}[.\d])"
    rf"|(?:{'|'.join(_WORDS['states_in_chinese'].split())})\s?(?=\d)"
    r"|\b(?:answer|result|total|sum)\s*(?:is|:)?\s(?=[-+$\u20ac\u00a3]?\d)|:\s(?=\s?[-+$\u20ac\u00a3]?\d)"
    # A number at the end, behind a comma.
    r"|,\s(?=[-+$\u20ac\u00a3]?[\d.,]*\d(?:\s?[^\W\d]\S*){0,2}\W*$)"
)
_BEHIND_RESULT: Final = re.compile(expression(_WORDS["behind_results"]))
_CLAUSE_END: Final = re.compile(r"[.,;!?](?=\s|$)|\n")
_SENTENCE_END: Final = re.compile(r"[.:](?=\s)|\n")
_BRACKETS: Final = re.compile(r"\([^()]*\)")
# An amount that the result states in another unit: "= 120 min" before "= 7200 s".
_SAME_AMOUNT: Final = re.compile(r"=\s?(-?[\d.,]*\d\s?[^\W\d][^\s=]{0,9})\s?\Z")
_SIGN: Final = re.compile(r"[=\u2248]|->")
_OPERATOR: Final = re.compile(r"\s*(?:[+*/^]|[-x:]\s|\b(?:plus|minus|times|divided)\b)")
_DIGIT: Final = re.compile(r"\d")


def result_conflict(matcher: ValueMatcher, question: str, answer: str, references: Sequence[str]) -> float:
    """Return 1 if an answer's calculation ends in another number than a reference's, 0 if in the same one.

    Return NaN if the answer does not calculate, or if a reference that has numbers or is in the answer is not a single
    number.
    """
    wanted: list[Value] = []
    for reference in references:
        number = _number_in(matcher, question, reference)
        if number is not None:
            wanted.append(number)
        elif matcher.wanted(reference) or reference in answer:
            return nan
    if not wanted:
        return nan
    # A final answer that is marked needs no reading of the steps.
    if len(matcher.values) < _FEWEST_VALUES or _BOXED in answer:
        return nan
    result = result_of(answer)
    if not result or _leads(matcher, answer, wanted):
        return nan
    found = _comparison(ValueMatcher(question, result), wanted)
    if found == 1.0 and (last := result_of(answer, checks=True)) != result:
        # "Because" may explain a step rather than the result.
        return nan if _comparison(ValueMatcher(question, last), wanted) == 0.0 else found
    return found


def _leads(matcher: ValueMatcher, answer: str, wanted: Sequence[Value]) -> bool:
    """Return True if an answer's first sentence states a wanted number and calculates nothing."""
    written = written_form(answer)
    end = _SENTENCE_END.search(written)
    if end is None or _CALCULATES.search(written, 0, end.start()) or _CONCLUDES.search(written.lower(), 0, end.start()):
        return False
    first = [value for value in matcher.values if value.start < end.start()]
    return any(says(value, each, matcher.question) for value in first for each in wanted)


def _number_in(matcher: ValueMatcher, question: str, reference: str) -> Value | None:
    if len(reference.split()) > _MAX_REFERENCE_WORDS:
        return None
    values = matcher.wanted(reference)
    if len(values) != 1:
        return None
    dated = isinstance(values[0].content, Date) and _ASKS_DATE.search(question) is not None
    return values[0] if as_quantity(values[0].content) is not None and not dated else None


def _comparison(found: ValueMatcher, wanted: Sequence[Value]) -> float:
    values = [value for value in found.values if not value.denied]
    if any(says(value, each, found.question) for value in values for each in wanted):
        return 0.0
    numbers = [number for value in values if (number := as_quantity(value.content)) is not None]
    if not numbers:
        return nan
    return float(all(_differs(numbers[0], as_quantity(each.content)) for each in wanted)) or nan


def _differs(result: Quantity, wanted: Quantity | None) -> bool:
    """Return True if two numbers are different amounts of the same thing."""
    if wanted is None or result.equals(wanted):
        return False
    if _is_share(result) and not _is_share(wanted):  # "27 hens; that is 60%"
        return False
    comparable = result.unit is None or wanted.unit is None or result.family == wanted.family
    return comparable and not isclose(result.in_base(result.value), wanted.in_base(wanted.value), rel_tol=_ROUNDING)


def _is_share(number: Quantity) -> bool:
    return number.unit is not None and not number.dimension


def result_of(answer: str, *, checks: bool = False) -> str:
    """Return the part of an answer that states the result of its calculation; "" if no part does.

    What follows a word like "because" explains or checks the result; with `checks`, it may state the result.
    """
    written = _ASIDE.sub(" ", written_form(answer)[-_MAX_CHARACTERS:].lower().replace("**", ""))
    if not _CALCULATES.search(written) and not _CONCLUDES.search(written):
        return ""
    check = next((found for found in _CHECK.finditer(written) if _DIGIT.search(written, 0, found.start())), None)
    if check is not None and not checks:
        written = written[: check.start()]
    last, result = -1, ""
    for mark in _MARK.finditer(written):
        piece = _CLAUSE_END.split(written[mark.end() : mark.end() + _MAX_RESULT], maxsplit=1)[0]
        stated = _DIGIT.search(piece if _SIGN.fullmatch(mark[0]) else _BRACKETS.sub("", piece))
        if stated and not _OPERATOR.match(written, mark.end() + len(_first_number(piece))):
            last, result = mark.start(), piece
    for cue in _BEHIND_RESULT.finditer(written):
        before = written[max(0, cue.start() - _MAX_RESULT // 2) : cue.start()].rstrip(" ,")
        piece = _CLAUSE_END.split(before)[-1]
        if cue.start() > last and _DIGIT.search(piece):
            last, result = cue.start(), piece
    parts = _SIGN.split(result)
    same = _SAME_AMOUNT.search(written, max(0, last - _MAX_RESULT), last) if len(parts) == 1 else None
    return f"{same[1]} = {result}".strip() if same else parts[-1].strip()


def _first_number(piece: str) -> str:
    found = re.match(r"[^\d]*[\d.,]*\d", piece)
    return found[0] if found else ""
