"""Write part 2: three sentences that describe a short answer."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradewire_cli.bench.ave_shifts import DAY, MONTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire_cli.bench.ave_shifts import WordForms


QuestionKind = Literal["person", "date", "place", "count", "amount", "measure", "reason", "yes_no", "named", "other"]

AUXILIARIES = frozenset(
    (
        *("is", "are", "was", "were", "be", "been", "am", "do", "does", "did", "has", "have", "had"),
        *("can", "could", "will", "would", "shall", "should", "may", "might", "must"),
    )
)
_WH = re.compile(
    r"\b(how\s+(?:many|much|long|far|tall|high|old|big|large|deep|fast|often|heavy)|whose|whom|who|when|where|why|what|"
    r"which)\b",
    re.IGNORECASE,
)
_KINDS: dict[str, QuestionKind] = {
    "who": "person",
    "whom": "person",
    "whose": "person",
    "when": "date",
    "where": "place",
    "why": "reason",
    "how many": "count",
    "how much": "amount",
}
_DATED = frozenset({"year", "years", "date", "day", "month", "decade", "century", "season"})
_MOST_NOUN_WORDS = 5
# Questions are short, so read only the beginning of a longer text.
_LOOKED_AT_CHARACTERS = 1000
PLAIN: Mapping[QuestionKind, tuple[str, ...]] = {
    "person": ("It was {p}.", "That would be {p}.", "{p} is the one.", "The person is {p}."),
    "date": ("That was {when}.", "It happened {when}.", "The date is {p}.", "It took place {when}."),
    "place": ("The place is {p}.", "That is in {p}.", "You find it in {p}.", "The location is {p}."),
    "count": ("The number is {p}.", "There are {p} of them.", "In all, {p}.", "The count comes to {p}."),
    "amount": ("It comes to {p}.", "The amount is {p}.", "It is {p} altogether.", "The figure is {p}."),
    "measure": ("It is {p}.", "The figure given is {p}.", "It measures {p}.", "That would be {p}."),
    "reason": ("The reason is {p}.", "Because of {p}.", "It is due to {p}.", "{p} is why."),
    "yes_no": ("The answer is {p}.", "I would say {p}.", "My answer here is {p}.", "In short: {p}."),
    "named": ("The {n} {is} {p}.", "{p} {is} the {n}.", "As for the {n}: {p}.", "The {n} would be {p}."),
    "other": ("It is {p}.", "That is {p}.", "The answer is {p}.", "This would be {p}."),
}
WORDY: Mapping[QuestionKind, tuple[str, ...]] = {
    "person": (
        "As far as anybody can tell from what is known, the person being asked about here is {p}.",
        "I looked at what is said about this, and {p} is the name that fits best.",
        "Many names come to mind, but the right person in this case is {p}.",
        "Judging by the details given, you are thinking of {p}.",
    ),
    "date": (
        "If I remember the order of events correctly, this took place {when}.",
        "Going by the usual accounts, the time you are looking for is {p}.",
        "The event in question is commonly dated to {p}.",
        "Looking back at how things went, it came about {when}.",
    ),
    "place": (
        "As far as I can see from the description, the location being asked about is {p}.",
        "On a map you would have to look for {p}.",
        "Judging by the details given, all of this is set in {p}.",
        "The place that matches everything mentioned here is {p}.",
    ),
    "count": (
        "Counting all those that belong to it, one arrives at {p}.",
        "If nothing has been left out, the total number is {p}.",
        "According to what is generally stated, the number asked for here is {p}.",
        "As far as I know, there are {p} altogether.",
    ),
    "amount": (
        "Taking everything together, the amount in question comes to {p}.",
        "According to what is generally stated, it is about {p}.",
        "The sum that is usually quoted for this is {p}.",
        "As far as I know, the figure lies at {p}.",
    ),
    "measure": (
        "According to what is generally stated, the value asked for is {p}.",
        "If one measures it in the usual way, the result is {p}.",
        "As far as I know, {p} is the figure that is given for this.",
        "The value that is usually quoted here is {p}.",
    ),
    "reason": (
        "What lies behind this, as far as it is understood, is {p}.",
        "The explanation that is usually given for it is {p}.",
        "As far as I can tell, it all goes back to {p}.",
        "When you look into it, the cause turns out to be {p}.",
    ),
    "yes_no": (
        "Having thought about the question for a moment, I would answer {p}.",
        "As far as can be said from what is given, the answer here is {p}.",
        "Going by the details that are mentioned, one has to say {p}.",
        "If I had to decide, my answer to this would be {p}.",
    ),
    "named": (
        "As far as I can tell from what is asked, the {n} you are looking for {is} {p}.",
        "Of everything that could be meant, {p} {is} the {n} that fits this description.",
        "Judging by the details given, the {n} in question {is} {p}.",
        "I would say that the {n} we are talking about {is} {p}.",
    ),
    "other": (
        "As far as I can tell from the details given, the right answer here is {p}.",
        "Of everything that could be meant, {p} fits this description best.",
        "What is being asked about in this case is {p}.",
        "I would say that what you are looking for is {p}.",
    ),
}
QUOTED: tuple[str, ...] = (
    'The answer to "{q}" is {p}.',
    'To the question "{q}", my reply is {p}.',
    'When asked "{q}", I would name {p}.',
    'Asked "{q}", one should say {p}.',
)
_DAY_OF_MONTH = re.compile(rf"\b(?:(?:{MONTH})\.?\s+{DAY}|{DAY}\s+(?:of\s+)?(?:{MONTH}))\b", re.IGNORECASE)
_PERIOD = re.compile(rf"(?:the\s+)?(?:(?:{MONTH})\.?,?\s+)?(?:1[0-9]|20)[0-9]{{2}}s?|(?:{MONTH})", re.IGNORECASE)
_LED_IN = re.compile(r"(?:in|on|at|by|during|since|from|around|after|before|between)\b", re.IGNORECASE)
_COPULAS = frozenset({"is", "was", "are", "were"})
# Auxiliaries before the subject: "who did she marry".
_OF_OTHERS = frozenset({"did", "do", "does"})
_LONGEST_QUOTED_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed question.

    Attributes:
        text: The question without its final mark, with single blanks.
        kind: Kind of answer; "named" if the question states the kind, as in "what genre".
        noun: The stated kind, for example "genre"; otherwise "".
        rest: Words after the question word and `noun`.
        opens: True if the question word is the first word.
    """

    text: str
    kind: QuestionKind
    noun: str
    rest: tuple[str, ...]
    opens: bool


def asked(question: str) -> Question:
    """Parse a question."""
    text = " ".join(question[:_LOOKED_AT_CHARACTERS].split()).strip(' "?.!')
    words = text.split()
    if words and words[0].lower() in AUXILIARIES:
        return Question(text, "yes_no", "", tuple(words), opens=True)
    if (found := _WH.search(text)) is None:
        return Question(text, "other", "", (), opens=False)
    word = " ".join(found[0].lower().split())
    rest = tuple(text[found.end() :].split())
    opens = found.start() == 0
    if word not in {"what", "which"}:
        return Question(text, _KINDS.get(word, "measure"), "", rest, opens)
    noun = _noun_words(rest)
    if not noun:
        return Question(text, "other", "", rest, opens)
    kind: QuestionKind = "date" if noun[-1].lower() in _DATED else "named"
    return Question(text, kind, " ".join(noun), rest[len(noun) :], opens)


def _noun_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words between "what" and the verb, for example "genre"; return () if unclear."""
    for place, word in enumerate(words[: _MOST_NOUN_WORDS + 1]):
        if word.lower() in AUXILIARIES:
            return words[:place]
        if not word.replace("-", "").replace("'", "").isalpha():
            return ()
    return words if len(words) <= _MOST_NOUN_WORDS and words else ()


class Description(NamedTuple):
    """A sentence that describes an answer; `form` is "plain", "wordy", "restated", "quoted" or "judge"."""

    text: str
    form: str


def described(question: str, answer: str, *, key: str, words: WordForms) -> tuple[Description, ...]:
    """Return three descriptions of an answer; `key` seeds the choice of templates."""
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
    """Return the question as a statement with the answer, or None if the question's grammar is too complex."""
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
    """Return True if the question asks for the verb's subject, as in "has the most lakes", but not in "is it in"."""
    if rest[0].lower() in _COPULAS:
        return len(rest) > 1 and words.is_participle(rest[1])
    return rest[0].lower() in AUXILIARIES - _OF_OTHERS


def _is(question: Question, words: WordForms) -> str:
    return "are" if question.noun and words.is_plural(question.noun.split()[-1]) else "is"


def _when(answer: str) -> str:
    """Return `answer` with a preposition of time, unless it has one or the preposition is unclear."""
    if _LED_IN.match(answer):
        return answer
    if _DAY_OF_MONTH.search(answer):
        return f"on {answer}"
    return f"in {answer}" if _PERIOD.fullmatch(answer) else f"at the time of {answer}"


def _chosen(templates: Sequence[str], key: str) -> str:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return templates[int.from_bytes(digest) % len(templates)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
