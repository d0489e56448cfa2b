"""Find answers that say that a question cannot be answered, in English, German, French, Spanish and Chinese."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any, Final, NamedTuple

from gradewire_server.metrics.text.folding import seen, without_dress

_MOST_CHARACTERS: Final = 1_000
"""Most characters of an abstention. Longer answers hardly ever only abstain, and a hostile text takes up to 4 ms."""
_MIN_QUESTION_WORDS: Final = 4

_LISTS: Final[dict[str, Any]] = tomllib.loads((files(__package__) / "abstentions.toml").read_text("utf-8"))
_CHINESE: Final[dict[str, Any]] = _LISTS["chinese"]


def _words(listed: str) -> str:
    return rf"(?<![^ ])(?:{'|'.join(word.replace('*', '[a-z]*') for word in listed.split())})\b"


def _phrases(listed: str) -> frozenset[str]:
    return frozenset(" ".join(phrase.split()) for phrase in listed.split("|"))


def _any_of(patterns: Iterable[str], at: str = "") -> re.Pattern[str]:
    joined = f"{at}(?:{'|'.join(patterns)})"
    for _ in range(2):  # a macro may contain another
        for name, pattern in _LISTS["macros"].items():
            joined = joined.replace(name, pattern)
    return re.compile(joined)


_DOCUMENTS: Final = re.compile(f"{_words(_LISTS['documents'])}|{_CHINESE['documents']}")
_NEGATIONS: Final = re.compile(_words(_LISTS["negations"]))
_REPORTS: Final = re.compile(_words(_LISTS["reports"]))
_AFFIRMS: Final = re.compile("|".join(_LISTS["affirms"]))
_GUESSES: Final = re.compile(
    rf"{_words(_LISTS['guesses'])}|\b(?:{'|'.join(sorted(_phrases(_LISTS['guess_phrases'])))})\b|{_CHINESE['guesses']}"
)
_PHRASES: Final = _phrases(_LISTS["phrases"])
_FILLERS: Final = _phrases(_LISTS["fillers"])
_CHINESE_FILLERS: Final = re.compile(_CHINESE["fillers"])
_CLAIMS: Final = _any_of(chain(*_LISTS["claims"].values()), at=r"(?<![^ ])")
_CHINESE_CLAIMS: Final = _any_of(_CHINESE["abstains"])
_NEUTRAL: Final = _any_of((*_LISTS["neutral"]["all"], _CHINESE["reasons"]))
_CONSEQUENCES: Final = _any_of((*_LISTS["consequences"]["all"], _CHINESE["consequences"]))
_LEADS: Final = _any_of(_LISTS["leads"]["all"])

_CONTRACTIONS: Final = {"can't": "can not", "won't": "will not", "cannot": "can not", "n't": " not"}
_CONTRACTED: Final = re.compile(r"\b(?:can't|won't|cannot)\b|n't\b")
_CLAUSE_END: Final = re.compile(
    r"[.!]+(?=\s|$)|[\u3002\u3001,;:()\[\]\n]|\s-+\s|(?<=\?)"
    r"|\b(?=(?:but|although|though|aber(?! nicht)|mais|pero|sino|sondern|so (?:i|there|it|the)|and (?:i|it|the))\b)"
)
_PERSONS: Final = re.compile(r"(?:he|she|they)\b")
_SPACED: Final = str.maketrans({"\n": ". ", "\u2013": " - ", "\u2014": " - "})
_CLOSING_TAG: Final = re.compile(r"</\w+>")
_EMPTY_JSON: Final = re.compile(r"\s*\{\s*\"\w{1,40}\"\s*:\s*(?:\"\s*\"|null|\[\s*\])\s*\}\s*")
"""An object whose only value is empty: {"answer": ""}."""
_NOT_WORDS: Final = re.compile(r"[\W_]+")
_FARTHEST: Final = 8
"""Most words from a negation to the verb that it negates."""


class _Clause(NamedTuple):
    """A clause's words, in lower case without accents.

    Attributes:
        kind: "abstains", "guesses" (an answer in spite of an abstention), "neutral", "document" or "answers".
        concludes: True if the clause begins with a word like "therefore".
    """

    kind: str
    concludes: bool


def abstains(answer: str) -> bool:
    """Return True if an answer as a whole says that the question cannot be answered, or that the answer is unknown.

    "Unknown", "N/A", "I don't know" and "The passage does not say who" abstain. An answer in spite of such words does
    not abstain: "It is not stated, but probably Paris". Neither do "nobody", "none", "nothing", "no" and "0", because
    these are answers: "Who survived?" "Nobody". A blank text has no words and does not abstain either.

    Texts with more than 1,000 characters do not abstain. The time is linear in the text's length.
    """
    if len(answer) > _MOST_CHARACTERS:
        return False
    if _EMPTY_JSON.fullmatch(answer):
        return True
    said = _plain(answer)
    return _bare(said) in _PHRASES or _only_abstains(list(_clauses(said)))


def _only_abstains(clauses: Sequence[_Clause]) -> bool:
    kinds = [clause.kind for clause in clauses]
    if "abstains" not in kinds or "guesses" in kinds:
        return False
    end = len(kinds) - kinds[::-1].index("abstains")
    # After a clause about the document, statements repeat what the document says.
    begin = kinds.index("document") if "document" in kinds[:end] else end
    concludes = any(clause.concludes for clause in clauses[:end])
    return "answers" not in kinds[end:] and (concludes or "answers" not in kinds[:begin])


def _plain(text: str) -> str:
    spaced = text.translate(_SPACED)
    lowered = without_dress(seen(_CLOSING_TAG.sub(" ", spaced))).text
    return _CONTRACTED.sub(lambda found: _CONTRACTIONS[found[0]], lowered)


def _bare(clause: str) -> str:
    words = _NOT_WORDS.sub(" ", clause).strip()
    while (shorter := _LEADS.sub("", words, count=1)) != words:
        words = shorter
    return words


def _clauses(said: str) -> Iterator[_Clause]:
    in_document = concludes = False
    for part in _CLAUSE_END.split(said):
        words = _NOT_WORDS.sub(" ", part).strip()
        if not words:
            continue
        about_document = _DOCUMENTS.search(words) is not None
        concludes = concludes or _CONSEQUENCES.search(words) is not None
        kind = _kind(words, asks=part.rstrip().endswith("?"), about_document=about_document, in_document=in_document)
        in_document = in_document or about_document
        yield _Clause(kind, concludes)
        concludes = concludes and words in _FILLERS


def _kind(words: str, *, asks: bool, about_document: bool, in_document: bool) -> str:
    bare = _bare(words)
    claim = _CLAIMS.search(words) or _CHINESE_CLAIMS.search(words)
    guesses = _GUESSES.search(words, claim.end() if claim else 0) is not None
    if bare in _PHRASES:
        return "abstains"
    if words in _FILLERS or bare in _FILLERS:
        return "neutral"
    if claim or ((about_document or in_document) and _denies(words)):
        return "guesses" if guesses else "abstains"
    if _CHINESE_FILLERS.search(words) or (asks and words.count(" ") + 1 >= _MIN_QUESTION_WORDS):
        return "neutral"
    is_neutral = _NEUTRAL.search(words) is not None
    if guesses and not (is_neutral and "not" in words):  # "I would rather not guess"
        return "guesses"
    return "document" if about_document else "neutral" if is_neutral else "answers"


def _denies(words: str) -> bool:
    """Return True if a clause says that a document does not state something."""
    if _PERSONS.match(words) or (_AFFIRMS.search(words) and not _NEGATIONS.match(words)):
        return False
    listed = words.split()
    negations, reports = (
        [place for place, word in enumerate(listed) if pattern.fullmatch(word)] for pattern in (_NEGATIONS, _REPORTS)
    )
    return any(0 < abs(one - other) <= _FARTHEST for one in negations for other in reports)
