"""Propose KNVQA's flags for a question by rules: answers that change over time, and errors in the references.

The rules read English. They propose flags for annotators to check, and leave out no row.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gradewire_cli.rows.row import Row

TIME_DEPENDENT: Final = "time-dependent"
BAD_GOLD: Final = "bad-gold"

_QUOTED_CHARACTERS = 60

# KNVQA's guidelines name "this year", "last year", "next time" and "last time". A picture's question with "now" asks
# about the picture, so words for the present count only in questions that point at nothing.
_TIME_WORDS = re.compile(
    r"""\b(?:
        (?:this|last|next|past|coming|previous)\ (?:year|month|week|weekend|season|decade|century|time|election)
      | nowadays | today | tonight | tomorrow | yesterday | currently | at\ present | presently | these\ days
      | so\ far(?!\ (?:away|from|apart|down|up|out|back)) | to\ date | until\ now | up\ to\ now | as\ of\ now
      | recently | latest | newest | most\ recent | upcoming | incumbent | reigning
      | (?<!electric\ )(?<!electrical\ )(?<!ocean\ )(?<!direct\ )(?<!alternating\ )(?<!air\ )current\ (?!
            (?:of|in|is|was|flows?|through|and|that|which|to)\b)[a-z]+
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOW = re.compile(r"\b(?:right now|now|at the moment)\b", re.IGNORECASE)
_POINTS_AT = re.compile(
    r"\b(?:this|that|these|those|pictured|shown)\b|\b(?:picture|photo|photograph|image)\b|\b(?:he|she|it|they)\b",
    re.IGNORECASE,
)
_OFFICES = (
    "president|prime minister|chancellor|king|queen|monarch|pope|ceo|chair(?:man|woman|person)?|mayor|governor|"
    "secretary(?: general| of state)?|minister|champions?|head coach|coach|captain|record holder|world number one"
)
_AWARDS = (
    "goals|wins|titles|medals|championships|awards|oscars|grammys|points|followers|subscribers|views|world cups|"
    "home runs|grand slams|rings|trophies|yards|touchdowns"
)
# Values that change over decades, like the guidelines' "player with the most goals in the World Cup so far".
_CHANGING_VALUE = re.compile(
    rf"""\b(?:
        who(?:\ is|['\u2019]s|\ are)\ (?:the\ )?(?:(?!first\b|second\b|last\b|oldest\b)[\w'\u2019.-]+\ ){{0,3}}?
            (?:{_OFFICES})\b(?!\ (?:who|that|when|during|before))
      | (?:most|highest\ number\ of)\ (?:[\w-]+\ )?(?:{_AWARDS})
      | (?:world|all[- ]time)\ record | holds?\ the\ (?:[\w-]+\ ){{0,3}}?record
      | population\ of | richest | wealthiest | highest[- ]paid | oldest\ living | tallest\ living | still\ alive
      | how\ old\ (?:is|are)\ (?!the\b|this\b|that\b|these\b|those\b|he\b|she\b|it\b|they\b)[\w'\u2019.-]+
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_PAST = re.compile(r"\b(?:1\d{3}|20\d{2})s?\b|\b(?:did|was|were|had)\b", re.IGNORECASE)

_SAYS_NOTHING = frozenset(
    {
        *("", "?", "??", "???", ".", "..", "...", "…", "n/a", "n.a", "null", "nan", "tbd", "todo", "idk", "dont know"),
        *("i dont know", "don't know", "i don't know", "not sure", "unsure", "unknown", "no answer", "unanswerable"),
        *("unsuitable", "unsuitable image", "no idea", "cannot tell", "can't tell"),
    }
)
# Traces of another file's format, and of a wrong encoding.
_MARKUP = re.compile(
    r"\ufffd|</?(?:a|b|i|p|br|div|span|em|strong|ul|li|td|tr|sup|sub|ref|font)\b[^<>]{0,80}>"
    r"|&(?:amp|lt|gt|quot|nbsp|apos|#\d{1,5});|\{\{|\}\}",
    re.IGNORECASE,
)
_BINARY = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might|must)(?:n['\u2019]t)?\b"
    r"(?!.*\b(?:or|what|which|who|whose|where|when|why|how|name)\b)(?! you\b)",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = re.compile(r"(what|which|who|whom|whose|where|when|why|how)\b(?! about\b)", re.IGNORECASE)
_YES: Final = "yes"
_NO: Final = "no"
# First words of short answers that a yes/no question can have.
_BINARY_ANSWERS = frozenset(
    {
        *("yes", "no", "yeah", "yep", "nope", "nah", "y", "n", "true", "false", "maybe", "perhaps", "possibly"),
        *("probably", "likely", "unlikely", "sometimes", "often", "usually", "rarely", "never", "always"),
        *("both", "neither", "none", "some", "not", "definitely", "certainly", "correct", "incorrect", "right"),
        *("wrong", "partly"),
    }
)
_LONG_ANSWER_WORDS = 3


@dataclass(frozen=True, slots=True)
class ProposedFlag:
    """A flag that a rule proposes for a row, with the rule's reason in words."""

    id: str
    position: str
    flag: str
    reason: str


def proposals_of(row: Row) -> list[ProposedFlag]:
    """Return the flags that rules propose for a readable row, without flags that the row has already."""
    found = {} if row.item is None else proposed_flags(row.item)
    return [ProposedFlag(row.id, row.position, *each) for each in found.items() if each[0] not in row.flags]


def proposed_flags(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the flags that rules propose for an item, by flag, each with the reason.

    The references of a multiple-choice question and of a question without an answer are not checked.
    """
    question = " ".join(str(item.get("question") or "").split())
    reasons = {TIME_DEPENDENT: _time_reason(question)}
    if item.get("answerable") is not False and not item.get("choices"):
        reasons[BAD_GOLD] = _gold_reason(question, [str(each) for each in item.get("references") or ()])
    return {flag: reason for flag, reason in reasons.items() if reason}


def _time_reason(question: str) -> str:
    if found := _TIME_WORDS.search(question):
        return f"the question has {_quoted(found[0])}"
    if _POINTS_AT.search(question):
        return ""
    if found := _NOW.search(question):
        return f"the question has {_quoted(found[0])}"
    if (found := _CHANGING_VALUE.search(question)) and not _PAST.search(question):
        return f"the answer to {_quoted(found[0])} changes over time"
    return ""


def _gold_reason(question: str, references: Sequence[str]) -> str:
    if not references:
        return ""
    texts = [_plain(each) for each in references]
    if all(text in _SAYS_NOTHING for text in texts):
        return f"the references say nothing ({_quoted(references[0])})"
    for reference, text in zip(references, texts, strict=True):
        if _MARKUP.search(reference):
            return f"a reference has markup or broken characters ({_quoted(reference)})"
        if text and text == _plain(question):
            return "a reference repeats the question"
    return _binary_reason(question, texts)


def _binary_reason(question: str, texts: Sequence[str]) -> str:
    """Return a reason if references and question do not agree on whether the answer is yes or no."""
    said = Counter(texts)
    fewer, more = sorted((said[_YES], said[_NO]))
    # A few other votes among ten annotators are no error.
    if fewer and 2 * fewer >= more:
        return f"the references say both yes ({said[_YES]}) and no ({said[_NO]})"
    if (opening := _OPEN.match(question)) and said.keys() <= {_YES, _NO}:
        return f"the references only say yes or no, but the question begins with {_quoted(opening[1])}"
    if _BINARY.match(question) and not any(map(_fits_binary_question, texts)):
        return f"the question asks for yes or no, but no reference says either ({_quoted(texts[0])})"
    return ""


def _fits_binary_question(text: str) -> bool:
    words = text.replace(",", " ").split()
    return len(words) >= _LONG_ANSWER_WORDS or (bool(words) and words[0] in _BINARY_ANSWERS)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().replace("\u2019", "'").rstrip(" .!?") or text.strip()


def _quoted(text: str) -> str:
    joined = " ".join(text.split())
    more = "…" if len(joined) > _QUOTED_CHARACTERS else ""
    return f"“{escaped(joined[:_QUOTED_CHARACTERS])}{more}”"


def escaped(text: str) -> str:
    """Return a text that a terminal can show: unchanged if it is printable, otherwise with escapes."""
    return text if text.isprintable() else ascii(text)[1:-1]
