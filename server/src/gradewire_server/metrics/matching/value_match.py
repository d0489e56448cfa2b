"""Value match: the share of a reference's dates, quantities and other values that the prediction contains.

The rules are this project's own; docs/reference/metrics.md describes them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from typing_extensions import override

from gradewire_proto.parts import ValueMatchParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import AnswerParameters, FailureError, TextMetric, cut_warning, final_answer_of
from gradewire_server.metrics.matching.containment import EasyMatch, LexicalMatch
from gradewire_server.metrics.matching.exact_match import ExactMatch
from gradewire_server.metrics.mathematics.matching import compare_objects, may_be_object
from gradewire_server.metrics.values.identifiers import asked_number, identifier_conflict
from gradewire_server.metrics.values.lists import ordered_list
from gradewire_server.metrics.values.matching import MAX_QUESTION, NOTHING, ValueMatch, ValueMatcher, says
from gradewire_server.metrics.values.notations import rewritten
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import Kind, Outcome, Value, values_of, written_form
from gradewire_server.metrics.values.results import result_conflict
from gradewire_server.metrics.values.special import compare_special, may_be_special
from gradewire_server.metrics.values.tokens import MAX_CHARACTERS, plain
from gradewire_server.metrics.values.value_readings import value_doubts

_MAX_REFERENCES: Final = 64
_MAX_CACHED_LOOKS: Final = 4_096
_MAX_CACHED_CHARACTERS: Final = 512
"""Maximum number of characters in a question and a reference that are looked at once for many answers: 6 MB."""
_MAX_WANTED: Final = 128
"""Once the compared references contain this many values, further references are skipped."""
_TEXT_METRICS: Final = (ExactMatch(), EasyMatch(), LexicalMatch())
_MARKED: Final = frozenset({"boxed", "tagged", "json", "phrase", "correction"})
_MARK: Final = re.compile(
    r"boxed|answer|[<{:]|\b(?:is|are|was|no|not|wait|sorry|actually|antwort|lautet|ergebnis|r\u00e9ponse|respuesta|resultado)\b|"
    r"\u7b54\u6848",
    re.IGNORECASE,
)
"""A mark, or a word of a phrase, without which no prediction has a marked answer."""
_CLEAR: Final = 0.8
"""Minimum confidence in a final answer, from which on values elsewhere in the prediction do not count."""
_EXCLAMATION: Final = re.compile(r"(\d)!(?=\s|$)")
_OPERATION: Final = re.compile(r"[\d+*/\u00d7\u00f7\u2212^]|\s-\s|\b(?:plus|minus|times)\b|, (?:so|and|then)\b")
_COMPUTED: Final = re.compile(r"[+*/^]|\d\s?-\s?\d")
_LEAD: Final = re.compile(r"\A(?:the|this) [\w ]{1,40}? (?:is|are) ", re.IGNORECASE)
_REMARK: Final = re.compile(
    r"[.;:,] (?:check|its?|for|this|so|which|where|then|at|e\.g|in particular|determinant|the)\b", re.IGNORECASE
)
_CORRECTION: Final = re.compile(r"\b(?:wait|no|not|sorry|actually|wrong|correction|instead|rather)\b", re.IGNORECASE)
_INDIAN: Final = re.compile(r"(?<![\d,])\d{1,2}(?:,\d{2}){1,4},\d{3}(?![\d,])")
"""A number of thousands in lakhs and crores: "3,45,000"."""
_GOES_ON_BEFORE: Final = re.compile(r"[\w.,+<>=$\u20ac\u00a3\u00b1\u2212-]")
_GOES_ON_BEHIND: Final = re.compile(r"[\w%\u00b0]|[.,]\d")
_NO_VALUES: Final = Failure(
    Status.INVALID_INPUT,
    "references: contain no value to compare (a date, a quantity, an ordinal, a formula). Use a metric that compares "
    "words",
)
_SOME_WITHOUT: Final = Failure(
    Status.INVALID_INPUT,
    "references: a reference contains no value and cannot be compared, and the prediction matches no other reference. "
    "Use a metric that compares words",
)


class ValueMatchMetric(TextMetric[AnswerParameters]):
    """The share of the best reference's values in the prediction, or 0 if the prediction contradicts a value.

    Among equally good references, the first counts. The status is INVALID_INPUT if no reference contains values, or if
    a reference contains no values and the prediction lacks a value of the best reference.
    """

    info = MetricInfo(
        name="value_match",
        version=2,
        description="Share of a reference's dates, quantities and other values that the prediction contains, in any "
        "notation; 0 if the prediction contradicts one of them.",
        citation="gradewire's own; see docs/reference/metrics.md",
    )
    parameters_type = AnswerParameters

    @override
    def grade(self, item: Item, parameters: AnswerParameters) -> MetricResult:
        del parameters
        matches, references_cut = _matches(item)
        named = [index for index, match in enumerate(matches) if match.wanted]
        if not named:
            raise FailureError(_NO_VALUES)
        best = _best(matches, named)
        found = matches[best].found == matches[best].wanted and not matches[best].settled
        if found and (final := _marked_answer(item)) is not None:
            again, _ = _matches(final)
            if again[_best(again, named)].contradicted:
                matches = again
                best = _best(again, named)
        elif _EXCLAMATION.search(item.prediction):  # "24!" may be an emphatic 24
            again, _ = _matches(replace(item, prediction=_EXCLAMATION.sub(r"\1.", item.prediction)))
            if _sort_key(again[_best(again, named)]) > _sort_key(matches[best]):
                matches = again
                best = _best(again, named)
        match = matches[best]
        correct = match.found == match.wanted
        if not correct and len(named) < len(matches):
            raise FailureError(_SOME_WITHOUT)
        return MetricResult(
            score=_score(match),
            correct=correct,
            warnings=cut_warning(references_cut, len(item.prediction) > MAX_CHARACTERS),
            matched_reference=best,
            parts=ValueMatchParts(
                wanted=match.wanted,
                found=match.found,
                contradicted=match.contradicted,
                missing=match.missing,
                coarser=match.coarser,
                extra=match.extra,
                kinds={kind.value: outcome.value for kind, outcome in match.kinds.items()},
            ),
        )


def vetoes_text_match(item: Item) -> bool:
    """Return True if references match the prediction's text, but the prediction contradicts a value of each of them.

    A reference that the prediction has character by character is no such match. The matches of exact_match, easy_match
    and lexical_match ignore signs, points, brackets and case: "-5" and "5". A value in another sense, such as a bound,
    is no contradiction here.
    """
    if any(has_verbatim(item.prediction, reference) for reference in item.references):
        return False
    question, rewrite = item.question, partial(rewritten, item.question)
    if not any(may_be_contradicted(question, reference) for reference in map(rewrite, item.references)):
        return False
    by_text = [any(each) for each in zip(*(metric.matches(item) for metric in _TEXT_METRICS), strict=True)]
    if not any(by_text):
        return False
    said = rewrite(item.prediction)
    pairs = zip(item.references, by_text, strict=True)
    references = [rewrite(reference) for reference, is_match in pairs if is_match]
    matches = match_references(ValueMatcher(question, said), question, said, references[:_MAX_REFERENCES])
    return bool(matches) and all(match.contradicted for match in matches)


def may_be_contradicted(question: str, reference: str) -> bool:
    """Return False if a reference has nothing that an answer could contradict, as most names: a fast first look."""
    # A reference is looked at several times for an answer, and again for other answers.
    short = len(question) + len(reference) <= _MAX_CACHED_CHARACTERS
    return _cached_look(question, reference) if short else _look(question, reference)


def _look(question: str, reference: str) -> bool:
    return (
        may_be_object(reference)
        or may_be_special(question, reference)
        or bool(values_of(reference))
        or ordered_list(plain(reference), question[:MAX_QUESTION]) is not None
        or asked_number(reference, question) is not None
    )


_cached_look: Final = lru_cache(maxsize=_MAX_CACHED_LOOKS)(_look)


def has_verbatim(prediction: str, reference: str) -> bool:
    """Return True if a prediction has a reference character by character, apart from what stands around numbers."""
    wanted = reference.strip()  # no regular expression, because compiling one for each reference takes 0.3 ms
    if wanted not in prediction:
        return False
    if prediction.startswith(wanted) and _GOES_ON_BEHIND.match(prediction, len(wanted)) is None:
        return True
    return any(_ends_well(prediction, before + wanted) for before in _separators(prediction))


@lru_cache(maxsize=4)
def _separators(prediction: str) -> tuple[str, ...]:
    """Return the characters of a prediction behind which nothing goes on; many references are looked for."""
    return tuple(sorted(sign for sign in set(prediction) if _GOES_ON_BEFORE.match(sign) is None))


def _ends_well(prediction: str, wanted: str) -> bool:
    """Return True if a prediction has a text behind which nothing goes on."""
    at = prediction.find(wanted)
    while at >= 0:
        if _GOES_ON_BEHIND.match(prediction, at + len(wanted)) is None:
            return True
        following = prediction.find(wanted, at + 1)
        if 0 <= following < at + len(wanted):
            # Searches for each of many overlapping places would take quadratic time.
            places = _places(prediction, wanted, following)
            return any(_GOES_ON_BEHIND.match(prediction, place + len(wanted)) is None for place in places)
        at = following
    return False


def _places(text: str, wanted: str, start: int) -> Iterator[int]:
    """Yield all places of a text in another from `start` on, in linear time (Knuth, Morris and Pratt)."""
    borders = [0]
    for letter in wanted[1:]:
        length = borders[-1]
        while length and wanted[length] != letter:
            length = borders[length - 1]
        borders.append(length + (wanted[length] == letter))
    length = 0
    for at in range(start, len(text)):
        while length and wanted[length] != text[at]:
            length = borders[length - 1]
        length += wanted[length] == text[at]
        if length == len(wanted):
            yield at + 1 - length
            length = borders[-1]


def _best(matches: Sequence[ValueMatch], named: Sequence[int]) -> int:
    """Return the index of the first of the best references."""
    return max(named, key=lambda index: _sort_key(matches[index]))


def _marked_answer(item: Item) -> Item | None:
    """Return the item with the answer that the prediction marks as its final one, or None without a clear mark."""
    if _MARK.search(item.prediction) is None:  # the search is slow to import
        return None
    final = final_answer_of(item.prediction)
    if final.position not in _MARKED or final.confidence < _CLEAR or not final.text.strip():
        return None
    return replace(item, prediction=final.text)


def _matches(item: Item) -> tuple[list[ValueMatch], bool]:
    """Match the prediction with each reference. Also return True if references were skipped."""
    question, said = item.question, rewritten(item.question, item.prediction)
    references = [rewritten(question, reference) for reference in item.references[:_MAX_REFERENCES]]
    matcher = ValueMatcher(question, said)
    matches = match_references(matcher, question, said, references)
    compared = references[: len(matches)]
    if not any(match.settled for match in matches) and _means_another(matcher, question, said, compared):
        matches = [match.contradicting() for match in matches]
    return matches, len(matches) < len(item.references)


def _leads(reference: str, answer: str) -> bool:
    """Return True if an answer begins with a reference character by character, and goes on with a note."""
    begun = _LEAD.sub("", answer.strip(), count=1)
    wanted = reference.strip()
    rest = begun[len(wanted) :]
    return begun.startswith(wanted) and _REMARK.match(rest) is not None and _CORRECTION.search(rest) is None


def match_references(matcher: ValueMatcher, question: str, answer: str, references: Sequence[str]) -> list[ValueMatch]:
    """Match an answer with references, until they have _MAX_WANTED values together.

    A reference that is one special value or one mathematical object as a whole is compared as such. All texts are
    `rewritten`, and `matcher` is for the question and the answer.
    """
    matches: list[ValueMatch] = []
    wanted = 0
    for reference in references:
        if wanted >= _MAX_WANTED:
            break
        if not may_be_contradicted(question, reference):
            matches.append(NOTHING)
            continue
        whole = compare_special(question, reference, answer) or _object(matcher, question, reference, answer)
        matches.append(matcher.match(reference) if whole is None else ValueMatch((whole,), settled=True))
        wanted += matches[-1].wanted
    return matches


def _object(matcher: ValueMatcher, question: str, reference: str, answer: str) -> tuple[Kind, Outcome] | None:
    if _INDIAN.search(reference):  # not a list
        return None
    found = compare_objects(question, reference, answer)
    if found is None or found[1] is Outcome.FOUND:
        return found
    if _leads(reference, answer):
        return found[0], Outcome.FOUND
    wanted = matcher.wanted(reference)
    # An amount with a unit may be there in another unit, and a number that is not there as a formula in words.
    amount = any(map(_has_unit, wanted)) or (found == (Kind.EXPRESSION, Outcome.MISSING) and bool(wanted))
    return None if amount else found


def _means_another(matcher: ValueMatcher, question: str, said: str, references: Sequence[str]) -> bool:
    """Return True if the answer has a reference's value in another sense, or ends in another one.

    For example, it has the value with another sign, unit or scale, only as a bound, or as an operand of a calculation.
    """
    readings = value_doubts(matcher, question, said, references)
    if not _ends_with_reference(matcher, references) and not _begins_with_reference(matcher, said, references):
        readings["result_conflict"] = result_conflict(matcher, question, said, references)
    if not any(_has_unit(value) for reference in references for value in matcher.wanted(reference)):
        readings["identifier_conflict"] = identifier_conflict(question, said, references)
    return any(reading == 1.0 for reading in readings.values())


def _ends_with_reference(matcher: ValueMatcher, references: Sequence[str]) -> bool:
    """Return True if the answer's last value is the only value of a reference, and so no operand of a calculation."""
    last = next((value for value in reversed(matcher.values) if not value.denied), None)
    wanted = [values for reference in references if len(values := matcher.wanted(reference)) == 1]
    return last is not None and any(says(last, values[0], matcher.question) for values in wanted)


def _begins_with_reference(matcher: ValueMatcher, said: str, references: Sequence[str]) -> bool:
    """Return True if the answer's first value is a reference's only one, and no operand of what an "=" follows.

    For example, "16 oz = 1 lb" and "x = 4, so f(x) = 16" state 16 and 4.
    """
    first = next(iter(matcher.values), None)
    wanted = [values for reference in references if len(values := matcher.wanted(reference)) == 1]
    if first is None or not any(says(first, values[0], matcher.question) for values in wanted):
        return False
    if _COMPUTED.search(first.text):
        return False
    behind, equals, _ = written_form(said)[first.end :].partition("=")
    return bool(equals) and _OPERATION.search(behind) is None


def _has_unit(value: Value) -> bool:
    return isinstance(value.content, Quantity) and value.content.unit is not None


def _score(match: ValueMatch) -> float:
    return 0.0 if match.contradicted else match.found / match.wanted


def _sort_key(match: ValueMatch) -> tuple[float, float, int]:
    return _score(match), match.found / match.wanted, -match.contradicted
