"""Part 2: three sentences that say a short answer, the same for a right and for a wrong one."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.agreement.ave_stand_in.questions import AUXILIARIES, Question, asked
from benchmarks.agreement.ave_stand_in.templates import PLAIN, QUOTED, WORDY
from benchmarks.agreement.ave_stand_in.values import DAY, MONTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.agreement.ave_stand_in.words import WordForms

_DAY_OF_MONTH = re.compile(rf"\b(?:(?:{MONTH})\.?\s+{DAY}|{DAY}\s+(?:of\s+)?(?:{MONTH}))\b", re.IGNORECASE)
_PERIOD = re.compile(rf"(?:the\s+)?(?:(?:{MONTH})\.?,?\s+)?(?:1[0-9]|20)[0-9]{{2}}s?|(?:{MONTH})", re.IGNORECASE)
_LED_IN = re.compile(r"(?:in|on|at|by|during|since|from|around|after|before|between)\b", re.IGNORECASE)
_COPULAS = frozenset({"is", "was", "are", "were"})
# Their subject follows: "who did she marry".
_OF_OTHERS = frozenset({"did", "do", "does"})
_LONGEST_QUOTED_CHARACTERS = 300


class Description(NamedTuple):
    """A sentence that says an answer.

    Attributes:
        text: The sentence.
        form: How it was made: "plain", "wordy", and "restated" from the question's words or "quoted" with them.
    """

    text: str
    form: str


def described(question: str, answer: str, *, key: str, words: WordForms) -> tuple[Description, ...]:
    """Three descriptions of an answer.

    Args:
        question: May be empty.
        answer: Some words; put in as they are, without a full stop at the end.
        key: Chooses among the templates: same key, same sentences.
        words: For the number of nouns and the forms of verbs.
    """
    taken = asked(question)
    said = answer.strip().rstrip(".") or answer.strip()
    values = {"p": said, "n": taken.noun, "is": _is(taken, words), "when": _when(said)}
    plain = _chosen(PLAIN[taken.kind], f"{key} plain").format_map(values)
    wordy = _chosen(WORDY[taken.kind], f"{key} wordy").format_map(values)
    found = [Description(_sentence(plain), "plain"), Description(_sentence(wordy), "wordy")]
    if (restated := _restated(taken, said, words)) is not None:
        return (*found, Description(_sentence(restated), "restated"))
    if taken.text and len(taken.text) <= _LONGEST_QUOTED_CHARACTERS:
        quoted = _chosen(QUOTED, f"{key} quoted").format_map({"p": said, "q": taken.text})
        return (*found, Description(_sentence(quoted), "quoted"))
    others = [template for template in WORDY[taken.kind] if template.format_map(values) != wordy]
    return (*found, Description(_sentence(_chosen(others, f"{key} again").format_map(values)), "wordy"))


def _restated(question: Question, answer: str, words: WordForms) -> str | None:
    """The question as a statement with the answer in its place; None where its grammar is not plain enough."""
    rest = question.rest
    if not question.opens or not rest:
        return None
    if question.kind == "person" and rest[0].lower() not in _OF_OTHERS | {"else"}:
        return f"{answer} {' '.join(rest)}"
    if question.kind == "other" and rest[0].lower() in _COPULAS and rest[1:2] == ("the",):
        return f"{' '.join(rest[1:])} {rest[0].lower()} {answer}"
    if question.kind in {"date", "place"} and rest[0].lower() in _COPULAS and len(rest) > 2:
        *subject, last = rest[1:]
        if words.is_participle(last):
            time_or_place = _when(answer) if question.kind == "date" else f"in {answer}"
            return f"{' '.join(subject)} {rest[0].lower()} {last} {time_or_place}"
    if question.kind == "named" and _says_of_it(rest, words):
        return f"{answer} {_is(question, words)} the {question.noun} that {' '.join(rest)}"
    return None


def _says_of_it(rest: Sequence[str], words: WordForms) -> bool:
    """Whether the verb has what is asked for as its subject: "has the most lakes", "is known as", not "is it in"."""
    if rest[0].lower() in _COPULAS:
        return len(rest) > 1 and words.is_participle(rest[1])
    return rest[0].lower() in AUXILIARIES - _OF_OTHERS


def _is(question: Question, words: WordForms) -> str:
    return "are" if question.noun and words.is_plural(question.noun.split()[-1]) else "is"


def _when(answer: str) -> str:
    """The time with the preposition that it takes; unchanged where it has one or the right one is unknown."""
    if _LED_IN.match(answer):
        return answer
    if _DAY_OF_MONTH.search(answer):
        return f"on {answer}"
    return f"in {answer}" if _PERIOD.fullmatch(answer) else f"at the time of {answer}"


def _chosen(templates: Sequence[str], key: str) -> str:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return templates[int.from_bytes(digest) % len(templates)]


def _sentence(text: str) -> str:
    """The text with a capital letter first and one mark at its end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
