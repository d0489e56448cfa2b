"""Answers that name several candidates, the right one among them, and leave the choice to the reader."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from gradewire_server.metrics.calibrated.features.words import STOP_WORDS, Said, folded_words

_MAX_CHARACTERS: Final = 1024
"""Characters of an answer that is nothing but candidates; what is longer says more."""
_MOST_CANDIDATES: Final = 32
_LONGEST_CANDIDATE: Final = 8
"""Words of a candidate; what is longer is a sentence."""
_LEAST_LIST: Final = 5
"""Candidates of a list without "or" or a hedge, of which one alone is right."""
_MOST_OTHERS: Final = 8.0

_ASIDE: Final = re.compile(r"\([^()]*\)")
_OR: Final = re.compile(r"(?:,\s*)?\b(?:or|oder)\b|(?<=[^\W\d_])\s*/\s*(?=[^\W\d_])|;(?=\s)|\?(?=\s|$)")
_COMMA: Final = re.compile(r",|\b(?:and|und|then)\b|(?:^|\s)\d\)|\.(?=\s|$)")
# "A, or B" says A in other words as often as not.
_SPELT_OUT: Final = re.compile(r",\s*or\b")
_IF_NOT: Final = r"if (?:that |it |this )?(?:is |was )?(?:not|isn't|wasn't)"
_HEDGE: Final = re.compile(
    r"\b(?:(?:could|might|may) (?:also )?be|maybe|perhaps|possibly|vielleicht|possible answers?|candidates?|or else"
    r"|either|(?:any|one) of (?:these|them|the following)|can(?:not|'t) (?:say|tell|decide)|(?:not|un)sure|in frage"
    rf"|into question|{_IF_NOT})\b"
)
# What is said about candidates, and is none.
_TALK: Final = re.compile(
    r"\b(?:i (?:would say|think|guess|believe|am not sure|cannot (?:say|tell|decide)|can't (?:say|tell|decide))"
    rf"|i'd say|i'm not sure|{_IF_NOT}(?: it)?(?: either)?|which(?: one)?$"
    r"|(?:any|one) of (?:these|them|the following)|possible answers?(?: are| include)?|candidates?(?: are| include)?"
    r"|(?:the |my )?answer(?: is|s are)?|(?:could|might|may|would|must|should) (?:also )?be|or else|either|maybe"
    r"|perhaps|possibly|probably|vielleicht|in frage kommen|everything that comes into question(?: is)?"
    r"|comes? into question)\b"
)
_SUBJECT: Final = re.compile(r"^\W*(?:it|that|this|he|she|they|there|these)(?:'s|'re| is| are| was| were)?\b")
# A part with one of these is a clause.
_CLAUSES: Final = frozenset({
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "it", "he", "she", "they",
    "we", "you", "i", "which", "who", "that", "because", "but", "not", "will", "can", "when", "where", "while", "if",
})  # fmt: skip
_NO_CANDIDATES: Final = STOP_WORDS | {
    "more", "less", "so", "few", "fewer", "late", "later", "early", "earlier", "similar", "any", "other", "another",
    "above", "below", "over", "under", "else", "both", "all", "same",
}  # fmt: skip


def alternatives(question: Said, references: Sequence[Said], answer: Said) -> float:
    """How many other candidates an answer names beside a reference, without choosing; 0 to 8.

    Counted are answers that are nothing but candidates: "Lyon or Paris", "Lyon/Paris/Nice", "Lyon? Paris?", "it could
    be Lyon, or else Paris", "maybe Lyon, maybe Paris", and lists of five and more with one right one. Not counted is
    what a sentence calls by two names ("It is called a goad or prod", "Persian (or Farsi)", "a turlough, or turlach"),
    what a reference or the question says itself, lists of which several are right, and "ten or more".
    """
    raw = answer.raw[: _MAX_CHARACTERS + 1].replace("\u2019", "'").casefold()
    if len(raw) > _MAX_CHARACTERS or any(_OR.search(reference.raw.casefold()) for reference in references):
        return 0.0
    text = _ASIDE.sub(" ", raw)
    hedged = _HEDGE.search(text) is not None
    ors = len(_OR.findall(text.rstrip(" ?;.")))
    if not (hedged or ors or len(_COMMA.findall(text)) >= _LEAST_LIST - 1):
        return 0.0
    parts = _candidates(_SUBJECT.sub("", text))
    if parts is None or not (hedged or _is_list(text, len(parts), ors)):
        return 0.0
    if not hedged and len(question.distinct.difference(STOP_WORDS).intersection(frozenset().union(*parts))) > 1:
        return 0.0  # it says what it answers, and says it of something that has two names
    asked = frozenset() if _OR.search(question.raw.rstrip(" ?").casefold()) else question.distinct
    known = frozenset().union(*(reference.distinct for reference in references))
    wanted = [frozenset(each.content).difference(asked) or frozenset(each.content) for each in references]
    holding = [part for part in parts if any(each.issubset(part) for each in wanted)]
    others = [part for part in parts if part not in holding and _is_another(part, known, asked)]
    if not holding or (not ors and not hedged and len(holding) > 1):
        return 0.0
    return min(_MOST_OTHERS, float(len(others)))


def _candidates(text: str) -> list[frozenset[str]] | None:
    """Words of what stands between "or", commas and the like; None where one of these is no candidate but a clause."""
    found: list[frozenset[str]] = []
    for part in _COMMA.split(_OR.sub(",", text)):
        words = folded_words(said) if (said := _SUBJECT.sub("", _TALK.sub(" ", part)).strip(" :.-")) else ()
        if len(words) > _LONGEST_CANDIDATE or len(found) == _MOST_CANDIDATES or not _CLAUSES.isdisjoint(words):
            return None
        if words:
            found.append(frozenset(words))
    return found


def _is_list(text: str, parts: int, ors: int) -> bool:
    if not ors:
        return parts >= _LEAST_LIST
    return parts > 2 or not (_SPELT_OUT.search(text) or _SUBJECT.match(text))


def _is_another(part: frozenset[str], known: Collection[str], asked: Collection[str]) -> bool:
    return any(word not in known and word not in asked and word not in _NO_CANDIDATES for word in part)
