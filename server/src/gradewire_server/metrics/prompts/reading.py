"""Read a label from a text that a judge wrote.

The rules are those of published protocols: a stated label, the last character, or a field of a dictionary. Whatever
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
from gradewire_server.domain.label_forms import LabelForms
from gradewire_server.domain.stated_labels import ANSWERED, stated_label


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
_LONGEST_CLAUSE: Final = 600
_MOST_DICTIONARIES: Final = 32
_SHOWN_END: Final = 80
_DRESS: Final = " \t\n*_`\"'"
"""Characters that judges put around a label."""
_GAP: Final = r"[\s*_`\"'(\[$]{0,6}"
_BOX: Final = r"(?:\\(?:boxed|fbox|text|textbf|mathrm|mathbf)\s?\{){0,3}"
_CLOSERS: Final = _DRESS + ")]}$"
_OPENERS: Final = re.compile(r"(?:[\s*_`\"'(\[$]|\\(?:boxed|fbox|text|textbf|mathrm|mathbf)\s?\{){0,12}\Z")
_NEGATION: Final = re.compile(
    r"\b(?:not|never|neither|nor|no|cannot|hardly|barely|without|\w+n['\u2019]t)\b", re.IGNORECASE
)
_LIMIT: Final = re.compile(
    r"[?/]|\b(?:not|never|neither|nor|no|cannot|hardly|barely|without|\w+n['\u2019]t|but|however|although|though|"
    r"except|unless|only|if|provided|providing|assuming|ignoring|disregarding|partly|partially|otherwise|depending|"
    r"aside|apart|when|whenever|whether|while|whereas|might|could|would|may|perhaps|maybe|possibly|probably|"
    r"technically|or|either|vs|versus|almost|nearly|as long as|so long as|as far as|in part|sort of|kind of|unsure|"
    r"uncertain|unclear|doubt|worse|worst|less|lesser|least|fewer|equal|equally|equivalent|same|similar|similarly|"
    r"alike|comparable|tie|ties|tied|draw|both|inferior|poorer|poor|weaker|weak|lower|second|last|behind|loses?|lost|"
    r"fails?|failed|outperformed|beaten|surpassed|lacks?|lacking|misses|bad|wrong|false|rejected|refused|wait|actually)\b",
    re.IGNORECASE,
)
"""Words and signs that may limit or deny a label before them in the same sentence."""
_BETTER: Final = re.compile(
    r"\s(?:is|was)\s(?:(?:clearly|slightly|much|far|significantly|definitely|the)\s){0,3}(?:better|best|stronger|"
    r"superior|preferable)(?:\s(?:one|answer|response))?\sthan\s(?:(?:the|answer|assistant|response|model|option|"
    r"candidate)\s){0,2}(?P<other>[*_`\"'\w]{1,64})(?=[.!]|\s*\Z)",
    re.IGNORECASE,
)
_TURN: Final = re.compile(r"\b(?:but|however|so|thus|hence|therefore|wait|actually)\b", re.IGNORECASE)
_OTHER_NUMBER: Final = re.compile(r"\A\s?[+\-\u2010-\u2015\u2212~%]\s?\d|\A\s?[+~%\u00bc-\u00be\u2150-\u215f]|\d")
_SENTENCE_END: Final = re.compile(r"\s?[.!]{1,3}(?=\s|\Z)|\s*\n|\s*\Z")
_ANNOUNCES: Final = re.compile(
    r"(?:(?<!\d)(?<!\d\s)[:=]|\b(?:is|am|rating|score|grade|verdict|judge?ment|label|letter|answer|option|choose|choice|"
    r"pick|select|(?:give|rate|score|grade|assign)s?(?:\s(?:it|this|that))?(?:\san?)?))\s?\Z",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\s?,?\s(?:because|since|as(?!\s(?:long|if|far|for|soon|though|to|good|bad|well)\b)|given that|for the "
    r"(?:following )?reasons?)\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(r"\?|\b(?:only if|unless|except|provided|assuming)\b", re.IGNORECASE)
_CONCLUDES_BOTH: Final = re.compile(
    r"\W*(?:overall|finally|in conclusion|so|thus|therefore|hence|but|however)\b.{0,80}\b(?:both|neither|none|"
    r"tie[ds]?|equal(?:ly)?)\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[.,;!?]\s|\n|\b(?:so|thus|hence|therefore)\s", re.IGNORECASE)
# Judges write an apostrophe within single quotes too: 'it's fine'.
_STRING: Final = rf"\"(?:[^\"\\]|\\.){{0,{_LONGEST_STRING}}}\"|'(?:[^'\\]|\\.|(?<=\w)'(?=\w)){{0,{_LONGEST_STRING}}}'"
_BRACES: Final = re.compile(r"[{}]")
_ENTRY: Final = re.compile(
    rf"(?P<key>{_STRING})(?:\s{{0,8}}:\s{{0,8}}(?:(?P<text>{_STRING})(?=\s{{0,8}}[,}}])|"
    r"(?P<bare>-?\d{1,9}(?:\.\d{1,9})?|[A-Za-z]{1,9})(?=\s{0,8}[,}])|(?P<within>(?=\{))|(?P<odd>[^\s,{}][^,{}]{0,80})))?",
    re.DOTALL,
)
"""An entry of a dictionary. `odd` is a value in no known form ("4/10"), and `within` begins another dictionary."""


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
        found = _after_opening(spoken, rule) if rule.opening else _stated(spoken, rule)
    return _unreadable(found, spoken) if isinstance(found, str) else found


def spoken_text(text: str) -> str:
    """Return a judge's text after its thoughts, without white space at the ends; "" if only thoughts are there."""
    return (after_thinking(text) or "")[-_MOST_READ:].strip()


def described(rule: ReadingRule) -> str:
    """Return a phrase for users: where the label is read."""
    if rule.reading is Reading.DICTIONARY:
        return f'the field "{rule.field}" of the dictionary'
    if rule.reading is Reading.LAST_CHARACTER:
        return "the last character"
    return f'the label after the last "{rule.opening}"' if rule.opening else "the stated label"


def example(rules: Sequence[ReadingRule], reason: str) -> str:
    """Return a text from which the rules read their first labels."""
    if rules[0].reading is Reading.DICTIONARY:
        return json.dumps({"reason": reason} | {rule.field: rule.labels[0] for rule in rules})
    return "\n".join([reason, *(f"{rule.opening} {rule.labels[0]}".strip() for rule in rules)])


def _unreadable(wrote: str, text: str) -> Failure:
    end = f". Its text ends with {quoted(text[-_SHOWN_END:])}" if text else ""
    return Failure(Status.UNPARSABLE, f"the judge wrote {wrote}{end}")


def _last_character(text: str, labels: tuple[str, ...]) -> int | str:
    bare = text.rstrip(_CLOSERS + ".!")
    found = _matching(bare[-1:], labels)
    if found is None:
        return f"no label ({shortened(', '.join(labels))}) as its last character"
    earlier, _, line = bare[:-1].rpartition("\n")
    before = _OPENERS.sub("", line[-_LONGEST_CLAUSE:])
    if not before:
        # A line of its own. A list of labels on lines of their own chooses none.
        alone = _matching(earlier.rpartition("\n")[2].strip(_CLOSERS + "([.!"), labels)
        return found if alone in {None, found} else "several labels on lines of their own"
    clause = before[max((end.end() for end in _CLAUSE_END.finditer(before)), default=0) :]
    others = {_index_of(match, labels) for match in _pattern(labels).finditer(clause)} - {found}
    if others or _NEGATION.search(clause) or _ANNOUNCES.search(clause) is None:
        return f"no label ({shortened(', '.join(labels))}) that is announced or alone as its last character"
    return found


def _stated(text: str, rule: ReadingRule) -> int | str:
    """Return the label that a text states as its verdict. A label in double brackets is stated by its content too."""
    labels = tuple(label[2:-2] if label[:2] == "[[" and label[-2:] == "]]" else label for label in rule.labels)
    found = stated_label(text, labels, "", whole=True, meanings=rule.meanings)
    if isinstance(found, Failure):
        return found.message.removeprefix(ANSWERED)
    # Take the last one in the text of labels with one meaning.
    meanings = rule.meanings or labels
    written = (_index_of(match, labels) for match in _pattern(labels).finditer(text))
    return next(iter(deque((each for each in written if meanings[each] == meanings[found]), maxlen=1)), found)


def _after_opening(text: str, rule: ReadingRule) -> int | str:
    last = next(iter(deque(_announced(rule.opening, rule.labels).finditer(text), maxlen=1)), None)
    if last is None:
        return f'no "{rule.opening}"'
    if last["label"] is None:
        return f'no label after its last "{rule.opening}"'
    found = _index_of(last, rule.labels)
    closed = len(text) - len(text[last.end() :].lstrip(_DRESS.replace("\n", "") + ")]}$"))
    # A blank before the next word is no dress of the label.
    closed -= text[closed - 1 : closed].isspace() and closed > last.end()
    ended = _SENTENCE_END.match(text, closed)
    end = ended.end() if ended else _end_of_sentence(text, closed)
    before = text[max(last.start() - _LONGEST_CLAUSE, 0) : last.start()]
    clause = before[max((each.end() for each in _CLAUSE_END.finditer(before)), default=0) :].rpartition(": ")[2]
    denied = _NEGATION.search(clause) is not None
    if denied or (not ended and not _is_harmless(text[closed:end], found, rule)):
        return f'a label after its last "{rule.opening}" with other words that may limit or deny it'
    if _taken_back(text[end:], found, rule):
        return f'a label after its last "{rule.opening}", and text after it that may take it back'
    return found


def _end_of_sentence(text: str, begin: int) -> int:
    found = sentences(text, begin, len(text))
    return len(text) if not found else max(found[0][1], begin)


def _is_harmless(tail: str, found: int, rule: ReadingRule) -> bool:
    """Return True if the rest of a label's sentence neither limits nor denies it, and names no other label."""
    tail = tail.replace("\u2019", "'")
    if (better := _BETTER.match(tail)) is not None:
        return _matching(better["other"], rule.labels) not in {None, found}
    forms = _forms(rule.labels, rule.meanings)
    reason = _REASON.search(tail)
    said, why = (tail, "") if reason is None else (tail[: reason.start()], tail[reason.start() :])
    if _LIMIT.search(said) or (rule.labels[found].isdecimal() and _OTHER_NUMBER.search(said)):
        return False
    same = {forms.first(found)}
    return (
        forms.named(said) <= same
        and (forms.named(why) <= same or _TURN.search(why) is None)
        and _CONDITION.search(why) is None
    )


def _taken_back(text: str, found: int, rule: ReadingRule) -> bool:
    """Return True if the sentences after a label's own state another label, or may take the label back."""
    forms = _forms(rule.labels, rule.meanings)
    first = forms.first(found)
    for sentence in forms.plain(text, whole=True).sentences:
        named = forms.named(sentence)
        stated = forms.statement(sentence) if named else None
        turns = forms.takes_back(sentence, first, named) or _CONCLUDES_BOTH.match(sentence) is not None
        if turns or (stated is not None and stated.index != first):
            return True
    return False


@lru_cache(maxsize=256)
def _forms(labels: tuple[str, ...], meanings: tuple[object, ...]) -> LabelForms:
    return LabelForms(labels, "", meanings)


@lru_cache(maxsize=256)
def _announced(opening: str, labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the opening, with the label that follows it, if one does."""
    has_sign = opening[-1] in ":=" and opening[:-1].strip() != ""
    words = r"[\s*_]{1,8}".join(map(re.escape, (opening[:-1] if has_sign else opening).split()))
    if has_sign:
        # A heading has no colon.
        words += rf"(?:[\s*_]{{0,4}}{opening[-1]}|(?=[*_ ]{{0,4}}\n))"
    begin = r"(?<![^\W_])" if opening[0].isalnum() else ""
    end = r"(?![^\W_])" if opening[-1].isalpha() else ""
    # "\boxed{A} - CORRECT", where A is no label
    listed = rf"(?:{_BOX}[A-Z]\}}{{0,3}}\s?[-:\u2013\u2014]\s?)?"
    label = rf"{_GAP}(?:[:=]|(?:is|of)\b)?{_GAP}{listed}{_BOX}(?P<label>{_pattern(labels).pattern})"
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
            if depth == 1 and (value := _loose_value(entry)) is not None:
                pairs.append((entry["key"][1:-1], value))
    return (), begin + 1


def _loose_value(entry: re.Match[str]) -> str | None:
    """Return an entry's value, as it is written if it has no known form; None for a text that is no entry."""
    if entry["text"] is not None:
        return entry["text"][1:-1]
    if entry["within"] is not None:
        return "{"
    return entry["bare"] if entry["bare"] is not None else entry["odd"]
