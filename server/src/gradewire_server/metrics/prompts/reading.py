"""Read a label from a text that a judge wrote.

The rules are those of published protocols: the last label, the last character, or a field of a dictionary. Whatever
does not fit its rule for sure is UNPARSABLE with the reason, because a guess would become a score.
"""

import itertools
import json
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from gradewire_proto.final_answer.clauses import sentences
from gradewire_proto.final_answer.thinking import after_thinking
from gradewire_server.domain.items import Failure, Status, quoted, shortened


class Reading(StrEnum):
    """The rule by which a step's label is found.

    PROBABILITY asks how probable each label is as the judge's next words. The other rules read a text.
    """

    PROBABILITY = "probability"
    LAST_LABEL = "last-label"
    LAST_CHARACTER = "last-character"
    DICTIONARY = "dictionary"


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """A rule with its details.

    Attributes:
        opening: The words before the label, for LAST_LABEL; "" if the label may stand anywhere.
        field: The field of the dictionary with the label, for DICTIONARY.
        meanings: What each label stands for. Labels with one meaning do not contradict each other. Empty if all differ.
    """

    reading: Reading
    labels: tuple[str, ...]
    opening: str = ""
    field: str = ""
    meanings: tuple[object, ...] = ()


_MOST_READ: Final = 16_384
"""Characters at the end of a text that are read. A judge concludes at the end."""
_LONGEST_STRING: Final = 2000
_MOST_DICTIONARIES: Final = 32
_SHOWN_END: Final = 80
_DRESS: Final = " \t\n*_`\"'"
"""Characters that judges put around a label."""
_GAP: Final = r"[\s*_`\"'(\[$]{0,6}"
_BOX: Final = r"(?:\\(?:boxed|fbox|text|textbf|mathrm|mathbf)\s?\{){0,3}"
_NEGATION: Final = re.compile(r"\b(?:not|never|neither|nor|cannot|no longer|hardly|\w+n['\u2019]t)\b", re.IGNORECASE)
_STRING: Final = rf"\"(?:[^\"\\]|\\.){{0,{_LONGEST_STRING}}}\"|'(?:[^'\\]|\\.){{0,{_LONGEST_STRING}}}'"
_BRACES: Final = re.compile(r"[{}]")
_ENTRY: Final = re.compile(
    rf"(?P<key>{_STRING})(?:\s{{0,8}}:\s{{0,8}}(?:(?P<text>{_STRING})|(?P<bare>-?\d{{1,9}}(?:\.\d{{1,9}})?|[A-Za-z]{{1,9}})))?",
    re.DOTALL,
)


def read_label(text: str, rule: ReadingRule, *, whole: bool) -> int | Failure:
    """Return the index of the label that a text states by a rule, or UNPARSABLE with the reason.

    `whole` is False if the text was cut off. Then the last label may be missing, so only a dictionary can be read.
    """
    spoken = spoken_text(text)
    if not spoken:
        return _unreadable("nothing after its thoughts" if text.strip() else "nothing", "")
    if rule.reading is Reading.DICTIONARY:
        found = _in_dictionary(spoken, rule)
    elif not whole:
        found = "a text that was cut off before its end; raise max_tokens"
    elif rule.reading is Reading.LAST_CHARACTER:
        found = _last_character(spoken, rule.labels)
    else:
        found = _after_opening(spoken, rule) if rule.opening else _last_label(spoken, rule)
    return _unreadable(found, spoken) if isinstance(found, str) else found


def spoken_text(text: str) -> str:
    """Return a judge's text after its thoughts, without white space at the ends; "" if only thoughts are there."""
    return (after_thinking(text[-_MOST_READ:]) or "").strip()


def described(rule: ReadingRule) -> str:
    """Return a phrase for users: where the label is read."""
    if rule.reading is Reading.DICTIONARY:
        return f'the field "{rule.field}" of the dictionary'
    if rule.reading is Reading.LAST_CHARACTER:
        return "the last character"
    return f'the label after the last "{rule.opening}"' if rule.opening else "the last label"


def example(rules: Sequence[ReadingRule], reason: str) -> str:
    """Return a text from which the rules read their first labels."""
    if rules[0].reading is Reading.DICTIONARY:
        return json.dumps({"reason": reason} | {rule.field: rule.labels[0] for rule in rules})
    return "\n".join([reason, *(f"{rule.opening} {rule.labels[0]}".strip() for rule in rules)])


def _unreadable(wrote: str, text: str) -> Failure:
    end = f". Its text ends with {quoted(text[-_SHOWN_END:])}" if text else ""
    return Failure(Status.UNPARSABLE, f"the judge wrote {wrote}{end}")


def _last_character(text: str, labels: tuple[str, ...]) -> int | str:
    bare = text.rstrip(_DRESS + ".!")
    last, before = bare[-1:], bare[-2:-1]
    found = _matching(last, labels)
    joined = before.isalnum() or (last.isdigit() and before in {".", ",", "/", "-"})
    if found is None or joined:
        return f"no label ({shortened(', '.join(labels))}) as its last character"
    return found


def _last_label(text: str, rule: ReadingRule) -> int | str:
    labels, pattern = rule.labels, _pattern(rule.labels)
    meanings = rule.meanings or labels
    for begin, end in reversed(sentences(text, 0, len(text))):
        sentence = text[begin:end]
        found = list(pattern.finditer(sentence))
        if not found:
            continue
        if len({meanings[_index_of(match, labels)] for match in found}) > 1:
            return "several labels in its last sentence with a label"
        if sentence.rstrip(_DRESS).endswith("?") or _NEGATION.search(sentence, 0, found[-1].start()):
            return "a question or a negation in its last sentence with a label"
        return _index_of(found[-1], labels)
    return f"none of the labels {shortened(', '.join(labels))}"


def _after_opening(text: str, rule: ReadingRule) -> int | str:
    last = next(iter(deque(_announced(rule.opening, rule.labels).finditer(text), maxlen=1)), None)
    if last is None:
        return f'no "{rule.opening}"'
    if last["label"] is None:
        return f'no label after its last "{rule.opening}"'
    return _index_of(last, rule.labels)


@lru_cache(maxsize=256)
def _announced(opening: str, labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the opening, with the label that follows it, if one does."""
    words = r"[\s*_]{1,8}".join(map(re.escape, opening.split()))
    begin = r"(?<![^\W_])" if opening[0].isalnum() else ""
    end = r"(?![^\W_])" if opening[-1].isalpha() else ""
    label = rf"{_GAP}(?:[:=]|(?:is|of)\b)?{_GAP}{_BOX}(?P<label>{_pattern(labels).pattern})"
    return re.compile(rf"(?i:{begin}{words}{end})(?:{label})?")


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for any label, with the longest first. A group is named after each label's place."""
    ordered = sorted(range(len(labels)), key=lambda place: len(labels[place]), reverse=True)
    highest = max((int(label) for label in labels if label.isascii() and label.isdecimal()), default=0)
    return re.compile("|".join(f"(?P<label{place}>{_form(labels[place], highest)})" for place in ordered))


def _form(label: str, highest: int) -> str:
    if label.isascii() and label.isdecimal():
        # "2/3" and "2 of 3" on a scale to 3 are 2. "2.5", "2 of 9" and "12" are something else.
        scale = rf"(?:\.0{{1,2}})?(?:\s?/\s?{highest}|\s(?:out\s)?of\s{highest})?"
        before = r"(?<![\w%])(?<!\d[.,/])(?<!\d\sof\s)(?<!out\sof\s)"
        return rf"{before}{label}{scale}(?![\w%]|[.,]\d|\s?/\s?\d|\s(?:out\s)?of\s\d)"
    before = r"(?<![\w-])" if label[0].isalnum() else ""
    after = r"(?![\w%-])" if label[-1].isalnum() else ""
    cased = "-i:" if len(label) == 1 else "i:"
    words = r"\s{1,8}".join(map(re.escape, label.split()))
    return rf"{before}(?{cased}{words}){after}"


def _index_of(found: re.Match[str], labels: tuple[str, ...]) -> int:
    return next(place for place in range(len(labels)) if found[f"label{place}"] is not None)


def _matching(text: str, labels: tuple[str, ...]) -> int | None:
    """Return the index of the label that is the whole text. Only labels of one letter must have the same case."""
    plain = " ".join(text.strip(_DRESS).split())
    for place, label in enumerate(labels):
        if plain == label or (len(label) > 1 and plain.casefold() == label.casefold()):
            return place
    return None


def _in_dictionary(text: str, rule: ReadingRule) -> int | str:
    found = _last_values(text, rule.field)
    if not found:
        return f'no dictionary with the field "{rule.field}"'
    places = {_matching(_as_text(value), rule.labels) for value in found}
    if len(places) > 1:
        return f'several values in the field "{rule.field}"'
    (place,) = places
    if place is None:
        return f'{quoted(_as_text(found[0]))} in the field "{rule.field}", which is none of the labels'
    return place


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Pairs(list[tuple[str, Any]]):
    """A dictionary as pairs, so that a repeated field is seen."""


def _last_values(text: str, field: str) -> Sequence[Any]:
    """Return the field's values in the last dictionary that has the field; several values if it is repeated.

    Return none if there are too many dictionaries to find the last one.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    last: Sequence[Any] = ()
    at = 0
    for _ in range(_MOST_DICTIONARIES):
        begin = text.find("{", at)
        if begin < 0:
            return last
        try:
            pairs, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            pairs, at = _loose_pairs(text, begin)
        last = [value for name, value in pairs if name == field] or last
    return ()


def _loose_pairs(text: str, begin: int) -> tuple[Sequence[tuple[str, Any]], int]:
    """Return the pairs of a dictionary with single quotes, and its end. A dictionary that was cut off has no pairs.

    Text within strings is no pair, and neither are the pairs of a dictionary within.
    """
    pairs: list[tuple[str, Any]] = []
    depth, at = 0, begin
    for entry in itertools.chain(_ENTRY.finditer(text, begin), (None,)):
        between = len(text) if entry is None else entry.start()
        for sign in _BRACES.finditer(text, at, between):
            depth += 1 if sign[0] == "{" else -1
            if depth == 0:
                return pairs, sign.end()
        if entry is not None:
            at = entry.end()
            value = entry["bare"] if entry["text"] is None else entry["text"][1:-1]
            if depth == 1 and value is not None:
                pairs.append((entry["key"][1:-1], value))
    return (), begin + 1
