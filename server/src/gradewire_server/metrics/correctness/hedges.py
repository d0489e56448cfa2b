"""Find answers that list several candidates and leave the choice to the reader."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from rapidfuzz.distance import Indel

from gradewire_server.metrics.correctness.denials import led_verdict
from gradewire_server.metrics.correctness.words import STOP_WORDS, VOCABULARY, FeatureText, folded_words

_MAX_LIST_CHARACTERS: Final = 1024
_MAX_BULLETED_CHARACTERS: Final = 4096
_MOST_CANDIDATES: Final = 64
_MANY_CANDIDATES: Final = 20
_MAX_CANDIDATE_WORDS: Final = 8
_MIN_CANDIDATES_WITHOUT_OR: Final = 5
_LEAST_MARKED: Final = 3
"""Minimum number of candidates between slashes, semicolons or question marks. Two may mean one thing:
"football/soccer"."""
_MOST_OTHERS: Final = 8.0
_MOST_EXAMPLES: Final = 20
"""Maximum number of lines in an answer to a question that accepts or wants several candidates."""
_MAX_NAMES_OF_ONE_THING: Final = 2

_ASIDE: Final = re.compile(r"\([^()]*\)")
_OR: Final = re.compile(r"(?:,\s*)?\b(?:or|oder)\b")
_MARK: Final = re.compile(r"(?<=[^\W\d_])\s*/\s*(?=[^\W\d_])|;(?=\s)|\?(?=\s|$)")
_COMMA: Final = re.compile(r",|\b(?:and|und|then)\b|(?:^|\s)\d\)|\.(?=\s|$)")
_BULLET: Final = re.compile(r"^[ \t]*(?:[-*+\u2022\u2013]|\d{1,2}[.)])[ \t]+(?=\S)", re.MULTILINE)
_CHOICE: Final = re.compile(r"[\u2713\u2714\u2611\u2705\u2190]|\*\*|\b(?:correct|right|true|yes|answer)\b")
_LEAST_SHARE_OF_CANDIDATES: Final = 0.75
"""Minimum share of candidates in a long list. Its other parts may be clauses, as titles of works are."""
_NUMBERED: Final = re.compile(r"(?:^|\s)2\)")
# Questions to which an answer may give several candidates.
_ASKS_FOR_ONE_OF: Final = re.compile(
    r"\b(?:may|might|could|possibl[ey]|likely|probably|examples?|name|called|terms?|known as|means?|synonyms?|unit"
    r"|also)\b|^\W*where\b"
)
_MIN_SPELLING_SIMILARITY: Final = 0.75
# "A, or B" often means one thing in two wordings.
_SPELT_OUT: Final = re.compile(r",\s*or\b")
_IF_NOT: Final = r"if (?:that |it |this )?(?:is |was )?(?:not|isn't|wasn't)"
_HEDGE: Final = re.compile(
    r"\b(?:(?:could|might|may) (?:also )?be|maybe|perhaps|possibly|vielleicht|possible answers?|candidates?|or else"
    r"|either|(?:any|one) of (?:these|them|the following)|can(?:not|'t) (?:say|tell|decide)|(?:not|un)sure|in frage"
    rf"|into question|{_IF_NOT})\b"
)
_IN_EACH_HEDGE: Final = (
    "could", "might", "may", "perhaps", "possib", "vielleicht", "candidate", "or else", "either", "one of ", "any of ",
    "cannot", "can't", "sure", "frage", "question", "if ",
)  # fmt: skip
"""Substrings for a fast first search. Each hedge contains at least one substring."""
# Phrases that are not part of a candidate.
_TALK: Final = re.compile(
    r"\b(?:i (?:would say|think|guess|believe|am not sure|cannot (?:say|tell|decide)|can't (?:say|tell|decide))"
    rf"|i'd say|i'm not sure|{_IF_NOT}(?: it)?(?: either)?|which(?: one)?$"
    r"|(?:any|one) of (?:these|them|the following)|possible answers?(?: are| include)?|candidates?(?: are| include)?"
    r"|(?:the |my )?answer(?: is|s are)?|(?:could|might|may|would|must|should) (?:also )?be|or else|either|maybe"
    r"|perhaps|possibly|probably|vielleicht|in frage kommen|everything that comes into question(?: is)?"
    r"|comes? into question)\b"
)
_SUBJECT: Final = re.compile(r"^\W*(?:it|that|this|he|she|they|there|these)(?:'s|'re| is| are| was| were)?\b")
_CLAUSE_WORDS: Final = frozenset(VOCABULARY["words"]["clauses"].split())
_WORD: Final = re.compile(r"\w+")
_NEAR: Final = 60
_OR_BEHIND: Final = re.compile(
    r"\s{0,3},?\s{1,3}(?:or|oder|ou|o)\s+(?:(?:the|a|an|der|die|das|le|la|el)\s)?([^\W_][\w.,'-]*)"
)
_OR_BEFORE: Final = re.compile(
    r"([^\W_][\w.'-]*),?\s(?:or|oder|ou|o)\s+(?:(?:the|a|an|der|die|das|le|la|el)\s)?$", re.IGNORECASE
)
_BOTH_VERDICTS: Final = [
    frozenset({"yes", "no", *more}) for more in ((), ("or",), ("and",), ("either", "or"), ("both",))
]
_NO_CANDIDATES: Final = STOP_WORDS.union(VOCABULARY["words"]["no_candidates"].split())


def alternatives(
    question: FeatureText, references: Sequence[FeatureText], answer: FeatureText, statement: FeatureText
) -> float:
    """Return the number of wrong candidates, 0 to 8, in an answer that lists a right candidate too and chooses none.

    Only answers that consist of candidates count, such as "Lyon or Paris", "Lyon? Paris? Nice?" and "yes and no". These
    do not count: two names for one thing ("a goad or prod"), alternatives that a reference or the question offers, and
    lists with several right candidates. Of a long answer, only the statement counts (see `Focus`), but all lines of a
    list.
    """
    raw = statement.raw[: _MAX_LIST_CHARACTERS + 1].replace("\u2019", "'")
    if len(raw) > _MAX_LIST_CHARACTERS or any(_offers_several(each.raw.casefold()) for each in references):
        return 0.0
    text = _ASIDE.sub(" ", raw.casefold())
    asked = question.raw.rstrip(" ?").casefold()
    if (listed := _bulleted(answer.raw)) is not None:
        wants_examples = _ASKS_FOR_ONE_OF.search(asked) is not None or _are_several(references)
        is_answer = wants_examples and len(listed) <= _MOST_EXAMPLES
        others = [] if is_answer else _other_candidates(question.distinct, references, listed, several=True)
        return min(_MOST_OTHERS, float(len(others)))
    if "yes" in text and "no" in text and frozenset(_WORD.findall(text)) in _BOTH_VERDICTS:
        return float(led_verdict(references[0].raw) is not None)
    hedged = any(phrase in text for phrase in _IN_EACH_HEDGE) and _HEDGE.search(text) is not None
    ors = len(_OR.findall(text)) if "or" in text or "oder" in text else 0
    if any(mark in text for mark in "/;?"):
        ors += len(_MARK.findall(text.rstrip(" ?;.")))
    if not (hedged or ors or _has_commas(text, _MIN_CANDIDATES_WITHOUT_OR - 1)):
        return 0.0
    offers = _OR.search(asked) is not None
    parts = _candidates(_SUBJECT.sub("", text))
    # More candidates are no answer, whatever the question asks for.
    may_be_answer = not offers and len(parts) <= _MOST_EXAMPLES
    is_list = hedged or _is_list(_ASIDE.sub(" ", raw), len(parts), ors)
    if not is_list or (
        may_be_answer and (_ASKS_FOR_ONE_OF.search(asked) or (not hedged and _repeats_question(question, parts)))
    ):
        return 0.0
    others = _other_candidates(
        frozenset() if offers else question.distinct, references, parts, several=not (ors or hedged)
    )
    return min(_MOST_OTHERS, float(len(others)))


def _offers_several(text: str) -> bool:
    return (("or" in text or "oder" in text) and _OR.search(text) is not None) or (
        any(mark in text for mark in "/;?") and _MARK.search(text) is not None
    )


def is_one_of_two(text: str, span: tuple[int, int], known: frozenset[str]) -> bool:
    """Return True for "REFERENCE or 48,000" and "Ek or REFERENCE": both are numbers, or both begin with a capital.

    `span` is the reference's place in the text, and `known` are words that are no other candidate.
    """
    left, right = span
    found = _OR_BEHIND.match(text, right) or _OR_BEFORE.search(text, max(0, left - _NEAR), left)
    if found is None or not known.isdisjoint(folded_words(found[1])):
        return False
    mention = text[left:right]
    if any(map(str.isdigit, mention)):
        return found[1][0].isdigit()
    return mention[:1].isupper() and found[1][0].isupper()


def _has_commas(text: str, least: int) -> bool:
    # Most answers contain too few separators. Counting substrings first takes a twentieth of the pattern's time.
    return sum(map(text.count, (",", "and", "und", "then", ")", "."))) >= least <= len(_COMMA.findall(text))


def _repeats_question(question: FeatureText, parts: Sequence[frozenset[str]]) -> bool:
    return len(question.distinct.difference(STOP_WORDS).intersection(frozenset().union(*parts))) > 1


def _other_candidates(
    asked: frozenset[str], references: Sequence[FeatureText], parts: Sequence[frozenset[str]], *, several: bool
) -> list[frozenset[str]]:
    """Return the wrong candidates, or an empty list if no candidate contains a reference.

    `several` is True for a list with neither "or" nor a hedge. Such a list may have only one right candidate and needs
    at least four wrong candidates.
    """
    known = frozenset().union(*(reference.distinct for reference in references))
    wanted = [frozenset(each.content).difference(asked) or frozenset(each.content) for each in references]
    holding = [part for part in parts if any(each.issubset(part) for each in wanted)]
    if not holding or (several and len(holding) > 1):
        return []
    others = [part for part in parts if part not in holding and _has_new_word(part, known, asked)]
    if several:
        figures = any(_has_digit(part) for part in holding)
        others = [part for part in others if _has_digit(part) is figures]
        return others if len(others) >= _MIN_CANDIDATES_WITHOUT_OR - 1 else []
    if len(parts) > _MAX_NAMES_OF_ONE_THING:
        return others
    return [part for part in others if not any(_may_mean_the_same(part - asked, right - asked) for right in holding)]


def _are_several(references: Sequence[FeatureText]) -> bool:
    """Return True if references are parts of a longer answer, because they are too different to be names of one."""
    apart: list[frozenset[str]] = []
    for reference in references:
        words = reference.distinct.difference(STOP_WORDS)
        if words and all(words.isdisjoint(others) for others in apart):
            apart.append(words)
    return len(apart) > _MAX_NAMES_OF_ONE_THING


def _bulleted(text: str) -> list[frozenset[str]] | None:
    """Return the words of the candidates in a list with one per line, or None if the text is no such list.

    A text that says more than the list, labels its lines ("Director: …") or marks one of them may choose a candidate.
    """
    if text.count("\n") < _MIN_CANDIDATES_WITHOUT_OR - 1:
        return None
    lines = [line.strip() for line in text[:_MAX_BULLETED_CHARACTERS].casefold().splitlines() if line.strip()]
    if lines[0].endswith(":"):
        del lines[0]
    parts = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]
    labelled = sum(":" in part for part in parts)
    if len(parts) < len(lines) or 2 * labelled >= len(parts) or any(map(_CHOICE.search, parts)):
        return None
    found = [frozenset(words) for part in parts if (words := _candidate_words(_ASIDE.sub(" ", part)))]
    enough = max(_MIN_CANDIDATES_WITHOUT_OR, _LEAST_SHARE_OF_CANDIDATES * len(parts))
    return found if len(found) >= enough else None


def _candidates(text: str) -> list[frozenset[str]]:
    """Return the words of each candidate, or an empty list if a candidate is a clause, as a few of many may be."""
    parts = _COMMA.split(_MARK.sub(",", _OR.sub(",", text)))
    found: list[frozenset[str]] = []
    # A text with a sentence of its own, or with a label, may choose a candidate.
    is_plain = len(parts) >= _MANY_CANDIDATES and ":" not in text and _CHOICE.search(text) is None
    clauses = len(parts) - _LEAST_SHARE_OF_CANDIDATES * len(parts) if is_plain else 0.0
    for part in parts:
        words = _candidate_words(part)
        if words:
            found.append(frozenset(words))
        clauses -= words is None
        if clauses < 0 or len(found) > _MOST_CANDIDATES:
            return []
    return found


def _candidate_words(part: str) -> Sequence[str] | None:
    """Return the words of a candidate, without talk around it, or None if it is a clause."""
    words = folded_words(said) if (said := _SUBJECT.sub("", _TALK.sub(" ", part)).strip(" :.-")) else ()
    return None if len(words) > _MAX_CANDIDATE_WORDS or not _CLAUSE_WORDS.isdisjoint(words) else words


def _is_list(text: str, parts: int, ors: int) -> bool:
    """Return True if a text is a list of `parts` candidates with `ors` separators such as "or"."""
    if not ors:
        names = re.findall(r"(?:^|,|\d\))[\W_]{0,4}(?:[A-Z]|\d+(?!\d*\)))", text)
        return parts >= _MIN_CANDIDATES_WITHOUT_OR and (
            _NUMBERED.search(text) is not None or len(names) >= _MIN_CANDIDATES_WITHOUT_OR
        )
    lower = text.casefold()
    if _OR.search(lower) is None:
        return parts >= _LEAST_MARKED and ors >= _LEAST_MARKED - 1
    return parts > _MAX_NAMES_OF_ONE_THING or not (_SPELT_OUT.search(lower) or _SUBJECT.match(lower))


def _has_new_word(part: frozenset[str], known: Collection[str], asked: Collection[str]) -> bool:
    return any(word not in known and word not in asked and word not in _NO_CANDIDATES for word in part)


def _may_mean_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    if _has_digit(one) and _has_digit(other):
        units = [
            frozenset(word for word in words if word.isalpha() and word not in STOP_WORDS) for words in (one, other)
        ]
        return all(units) and units[0].isdisjoint(units[1])
    words, others = one.difference(_NO_CANDIDATES), other.difference(_NO_CANDIDATES)
    initial = min(map(len, words), default=0) == 1 or min(map(len, others), default=0) == 1
    return any(
        Indel.normalized_similarity(word, another) > _MIN_SPELLING_SIMILARITY or (initial and word[0] == another[0])
        for word in words
        for another in others
    )


def _has_digit(words: Collection[str]) -> bool:
    return any(map(str.isdigit, "".join(words)))
