"""Takes the judge's own verdict words out of an answer: an answer is not right because it says so.

A small judge reads "Bob. This is correct." and says "correct". So the labels of its prompt, and what people say in
their place ("that is right"), are not shown where an answer uses them. They stay where a reference that is shown has
the word, for there they are an answer ("True or false?"). docs/research/hostile-answers.md says what a judge can still
be talked into.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.judged.neutralise import Delimiters, any_of
from gradewire_server.metrics.text.folding import folded

PLACEHOLDER: Final = "[...]"
"""What is shown in place of what was taken out; no word, so it is no label of any prompt."""

_WORD: Final = re.compile(r"\w+")
_BARE_WORD: Final = re.compile(r"[a-z0-9]+")
_LEAST_LETTERS: Final = 4
"""Labels with no word as long as this (yes, no, 3, A) are words of ordinary answers: they go behind "Rating" only."""

_PRAISE: Final = "correct|right|true|accurate|valid|perfect|flawless|exact|acceptable|accepted|spot on|the truth|a fact"
_SUBJECT: Final = (
    r"(?:this|that|it|which|what|these|those|they|both|all|everything|i|we|you|he|she|of|the|my|your|our|his|her|their"
    r"|above|given|whole|said|say|wrote|student|student's|final|answers?|response|solution|reply|statement|prediction"
    r"|claim|sentence|here)"
)
_BEING: Final = r"(?:'s|'re|'m|(?:(?:is|are|am|was|were|must be|should be|has to be|counts? as|seems?)(?!\w)))"
_ADVERB: Final = (
    r"(?:absolutely|totally|completely|fully|entirely|definitely|certainly|indeed|also|very|quite|perfectly|100 ?%|"
    r"undoubtedly|clearly|exactly|really|factually|obviously|surely|of course|all|still|a|the)"
)
_ANSWER: Final = r"(?:answers?|response|solution|reply|one|statement)"
_MATCHING: Final = (
    r"(?:match(?:es|ed)?|equals?|agrees? with|fits|corresponds? to|means? the same as"
    r"|(?:is|are) (?:exactly |also )?(?:the same as|identical to|equal to|equivalent to|in|one of))"
    r" (?:exactly |fully |one of )?(?:the|your|any|all|every|each)(?: \w{1,16}){0,2} (?:keys?|references?|answers?)"
)
_ANNOUNCING: Final = r"rating|grade|score|marks?|verdict|evaluation|assessment"
_CLAUSE_END: Final = r"(?=[ ]?(?:[.,;:!?)\]\"<]|$)|[ ](?:-|and|but|so|because|as|since|here|now)(?!\w))"


def without_praise(text: str, delimiters: Delimiters, references: Sequence[str], *, question: str = "") -> str:
    """An answer without its verdicts on itself, PLACEHOLDER in their place; doing it twice changes nothing.

    - Labels of the prompt, as whole words ("correct", "incorrectly"), if they have a word of four letters.
    - Clauses that praise ("this is correct", "my answer is absolutely right"), and the praise of an answer ("the right
      answer is Rome" becomes "the [...] answer is Rome"), and praise that is all there is.
    - Clauses that claim a match ("it is the same as the accepted answer").
    - Ratings, with the prompt's openings or without ("The student's answer is yes", "Grade - 5", "score: 10/10").

    Args:
        text: A text that was neutralised, for which it takes time in proportion to its length.
        delimiters: Of the prompt; without labels nothing is changed.
        references: Those that are shown: what of the above has only words that are in them stays.
        question: Where it asks for a score or a grade, numbers behind that word are answers, and stay.
    """
    if not delimiters.labels:
        return text
    left = _taken_out(text, delimiters, references, question)
    # What is left may be praise that is all there is now ("right correct"). It ends: each time the text loses a word.
    while left != text:
        text, left = left, _taken_out(left, delimiters, references, question)
    return left


def _taken_out(text: str, delimiters: Delimiters, references: Sequence[str], question: str) -> str:
    said = " ".join(references)
    answers = set(_WORD.findall(folded(said)))
    scales = answers.union(_WORD.findall(folded(question)))
    pieces: list[str] = []
    begin = 0
    for match in _praise(delimiters).finditer(folded(text)):
        if _is_answer(match, answers, scales):
            continue
        pieces += (text[begin : match.start()], PLACEHOLDER)
        begin = match.end()
    left = "".join((*pieces, text[begin:])) if pieces else text
    return left if left.isascii() else _without_bare_labels(left, delimiters, answers.union(_bare_words(said)))


def _without_bare_labels(text: str, delimiters: Delimiters, answers: set[str]) -> str:
    """Without labels in ASCII that touch only other characters: a judge reads "correct¹" as "correct"."""

    def shown(match: re.Match[str]) -> str:
        return match[0] if answers.issuperset(_bare_words(match[0])) else PLACEHOLDER

    return _bare_labels(delimiters).sub(shown, text)


def _bare_words(text: str) -> list[str]:
    return _BARE_WORD.findall(text.lower())


def _is_answer(match: re.Match[str], answers: set[str], scales: set[str]) -> bool:
    said = next(match[name] for name in ("clause", "match", "rating", "praise", "label", "alone") if match[name])
    number = match["rating"] is not None and any(map(str.isdigit, match["rating"]))
    asked_for = match["scale"] in answers or (number and match["scale"] in scales)
    return answers.issuperset(_WORD.findall(said)) or (match["scale"] is not None and asked_for)


@lru_cache(maxsize=256)
def _bare_labels(delimiters: Delimiters) -> re.Pattern[str]:
    labels = tuple(label for label in _long_labels(delimiters) if label.isascii())
    label = rf"(?:{any_of(labels)})(?:ly|ness)?" if labels else r"(?!)"
    return re.compile(rf"(?<![a-z0-9]){label}(?![a-z0-9])", re.ASCII | re.IGNORECASE)


def _long_labels(delimiters: Delimiters) -> tuple[str, ...]:
    return tuple(label for label in delimiters.labels if any(map(_is_long, _WORD.findall(label))))


@lru_cache(maxsize=256)
def _praise(delimiters: Delimiters) -> re.Pattern[str]:
    long_labels = _long_labels(delimiters)
    # A pattern that matches nothing stands for no labels.
    label = rf"(?:{any_of(long_labels)})(?:ly|ness)?(?![^\W_])" if long_labels else r"(?!)"
    any_label = (
        rf"(?:(?:{any_of(delimiters.labels)})(?![^\W_]|[-.,:/]\d)"
        rf"|\d{{1,3}} ?/ ?\d{{1,3}}(?![^\W_])|(?:{_PRAISE})(?![^\W_]))"
    )
    announcing = rf"{any_of(delimiters.announcing)}|{_ANNOUNCING}" if delimiters.announcing else _ANNOUNCING
    return re.compile(
        rf"(?<![^\W_])(?:"
        rf"(?:{_SUBJECT}(?: |(?='))){{1,6}}{_BEING}[\W_]{{0,6}}(?:{_ADVERB}[ ,]{{1,2}}){{0,3}}"
        rf"(?P<clause>{label}|(?:{_PRAISE})(?: {_ANSWER})?{_CLAUSE_END})"
        rf"|(?:{_SUBJECT} ){{1,6}}(?P<match>{_MATCHING})(?![^\W_])"
        rf"|(?P<scale>{announcing})(?:[ ]?[-:=(\"'*_][\W_]{{0,5}}(?:(?:is|of|as|to) )?|[ ](?:is|of|as|to)[ ](?:- )?)"
        rf"(?P<rating>{any_label})"
        rf"|(?P<praise>(?:{_PRAISE})(?= {_ANSWER}(?![^\W_])))"
        rf"|(?P<label>{label})"
        rf"|^(?P<alone>{_PRAISE})[\W_]{{0,6}}$)"
    )


def _is_long(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS or (word.isalpha() and not word.isascii() and len(word) > 1)
