"""Find short English answers that clearly mean "yes" or "no"."""

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

_MOST_CHARACTERS: Final = 300
_MAX_CACHED_QUESTIONS: Final = 256
_PLAIN: Final = re.compile(r"[a-z0-9\s.,;:!()'\"*_`\u2018\u2019\u201c\u201d\u2013\u2014-]*")
_WORD: Final = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
_CLAUSE_END: Final = re.compile(r"[.,;:!\n\u2013\u2014]|(?<=\s)-|-(?=\s)")
_INTRODUCTION: Final = re.compile(
    r"[\s'\"*_`\u2018\u2019\u201c\u201d\u2013\u2014-]*(?:(?:(?:the|my) )?answer(?: is)?\b[\s:*_]*)?"
)

_WORDS: Final = tomllib.loads((files(__package__) / "yes_no.toml").read_text("utf-8"))
_LEADING: Final = {
    **dict.fromkeys(_WORDS["leading_yes"].split(), True),
    **dict.fromkeys(_WORDS["leading_no"].split(), False),
}
_WHOLE: Final = {**dict.fromkeys(_WORDS["whole_yes"], True), **dict.fromkeys(_WORDS["whole_no"], False)}
_SUBJECTS: Final = frozenset(_WORDS["subjects"].split())
_AUXILIARIES: Final = frozenset(_WORDS["auxiliaries"].split())
_QUESTION_WORDS: Final = _AUXILIARIES.union(_WORDS["questioning"].split())
_SHORT: Final[Mapping[str, str]] = _WORDS["short_forms"]
_DOUBT: Final = frozenset(_WORDS["doubt"].split())
_AGAINST: Final = {True: _DOUBT.union(_WORDS["against_yes"].split()), False: _DOUBT.union(_WORDS["against_no"].split())}
"""By verdict, the words that cast doubt on the verdict or express the opposite verdict."""
_MAX_ELLIPTIC_WORDS: Final = 4


def leading_verdict(text: str) -> bool | None:
    """Return True if a text clearly means "yes", False if it clearly means "no", and None for all other texts.

    The text may begin with "answer:" or "the answer is". Apart from that, one of these rules must hold:

    - The first clause is "yes", "yeah", "no", "nope" or the like, optionally followed by "it is" or "it is not". The
      other clauses neither state the opposite verdict nor cast doubt with "but", "or", "maybe", "sorry" and the like.
    - The whole text is a word or phrase like "true", "false", "never", "not really", "of course not".
    - The whole text is a subject, an auxiliary and perhaps "not": "it is", "they don't", "there aren't any".

    "No data", "No one knows", "Sure! ...", "It might" and "It is a cat" have no verdict. Texts with a question mark, a
    slash, letters beyond ASCII or more than 300 characters have no verdict either.
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    lowered = text.casefold()
    if _PLAIN.fullmatch(lowered) is None:
        return None
    said = lowered.replace("\u2018", "'").replace("\u2019", "'")
    said = _INTRODUCTION.sub("", said, count=1)
    clauses = [words for words in map(_words, _CLAUSE_END.split(said)) if words]
    if len(clauses) < 2 or clauses[0][0] not in _LEADING:
        return _whole(clauses[0]) if len(clauses) == 1 else None
    verdict = _whole(clauses[0])
    return None if verdict is None or _in_doubt(verdict, clauses[1:]) else verdict


def asks_yes_or_no(question: str) -> bool:
    """Return True if a clause begins like a yes-no question: "Is it?", "In this picture, are there any?"."""
    return _asks_yes_or_no(question[:_MOST_CHARACTERS])


@lru_cache(maxsize=_MAX_CACHED_QUESTIONS)
def _asks_yes_or_no(question: str) -> bool:
    begin = question.casefold().replace("\u2019", "'")
    clauses = map(_words, _CLAUSE_END.split(begin))
    return any(clause and clause[0] in _QUESTION_WORDS for clause in clauses)


def _whole(words: list[str]) -> bool | None:
    """Return the verdict if the words contain nothing but a verdict, otherwise None."""
    if not words:
        return None
    if words[0] in _LEADING:
        verdict = _LEADING[words[0]]
        return verdict if len(words) == 1 or _whole(words[1:]) is verdict else None
    text = " ".join(words)
    return _WHOLE[text] if text in _WHOLE else _elliptic_verdict(words)


def _elliptic_verdict(words: list[str]) -> bool | None:
    if len(words) < 2 or words[0] not in _SUBJECTS or words[1] not in _AUXILIARIES:
        return None
    return {"": True, "not": False, "not any": False}.get(" ".join(words[2:]))


def _in_doubt(verdict: bool, rest: list[list[str]]) -> bool:  # noqa: FBT001 - the verdict is a value, not a switch
    """Return True if the clauses after a verdict retract it, or if they begin with a number or "one" ("No. 5")."""
    ends = (clause[-count:] for clause in rest for count in range(1, _MAX_ELLIPTIC_WORDS + 1))
    other = any(_whole(end) is (not verdict) for end in ends)
    numbered = rest[0][0] == "one" or rest[0][0].isdigit()
    return other or numbered or any(word in _AGAINST[verdict] for clause in rest for word in clause)


def _words(clause: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(clause):
        if word in _SHORT:
            found.extend(_SHORT[word].split())
        elif word.endswith("n't"):
            found.extend((word[:-3], "not"))
        else:
            found.append(word)
    return found
