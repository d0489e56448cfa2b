"""Takes the judge's own verdict words out of an answer: an answer is not right because it says so.

A small judge reads "Bob. This is correct." and says "correct". So the labels of its prompt, and what people say in
their place ("that is right"), are not shown where an answer uses them. They stay where they are an answer: where a
reference that is shown has the word or its opposite, where the question offers it ("Left or right?"), and where they
are all that the answer says. docs/research/hostile-answers.md says what a judge can still be talked into.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from gradewire_server.metrics.judged.choices import words_of_choice
from gradewire_server.metrics.judged.neutralise import Delimiters, any_of
from gradewire_server.metrics.text.folding import folded
from gradewire_server.metrics.text.readings import READINGS, Reading, as_written, with_marks, without_dress

PLACEHOLDER: Final = "[...]"
"""What is shown in place of what was taken out; no word, so it is no label of any prompt."""

_WORD: Final = re.compile(r"\w+")
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
      answer is Rome" becomes "the [...] answer is Rome").
    - Clauses that claim a match ("it is the same as the accepted answer").
    - Ratings, with the prompt's openings or without ("The student's answer is yes", "Grade - 5", "score: 10/10").

    All of them in each of the text's `readings`. An answer that is one such word and nothing else stays ("Right.", "it
    is true", "the right").

    Args:
        text: A text that was neutralised, for which it takes time in proportion to its length.
        delimiters: Of the prompt; without labels nothing is changed.
        references: Those that are shown: what of the above has only words that are in them, or opposites of a short
            one, stays.
        question: What of the above has only words that it offers stays (`words_of_choice`). Where it asks for a score
            or a grade, numbers behind that word are answers, and stay.
    """
    if not delimiters.labels or _one_word(delimiters).fullmatch(folded(text)):
        return text
    said = " ".join(references)
    bare_labels = " ".join(said[begin:end] for begin, end in _bare_labels(said, delimiters))
    answers = _words(said) | _words(bare_labels) | words_of_choice(question, references)
    scales = answers.union(_words(question))
    left = _taken_out(text, delimiters, answers, scales)
    # What is left may be read anew. It ends: each time the text loses a word.
    while left != text:
        text, left = left, _taken_out(left, delimiters, answers, scales)
    return left


def _taken_out(text: str, delimiters: Delimiters, answers: set[str], scales: set[str]) -> str:
    for read in READINGS:
        if text.isascii() and read is not as_written:
            return text
        reading = read(text)
        praise = (each for each in _praise(delimiters).finditer(reading.text) if not _is_answer(each, answers, scales))
        text = _without(text, (reading.original(*match.span()) for match in praise))
    bare = _bare_labels(text, delimiters)
    return _without(
        text, (part for part in bare if not answers.issuperset(_WORD.findall(without_dress(text[slice(*part)]).text)))
    )


def _without(text: str, parts: Iterable[tuple[int, int]]) -> str:
    """The text with PLACEHOLDER in the place of some parts, which come in their order."""
    pieces: list[str] = []
    end = 0
    for part in parts:
        begin, behind = with_marks(text, *part)
        pieces += (text[end:begin], PLACEHOLDER)
        end = behind
    return "".join((*pieces, text[end:]))


def _bare_labels(text: str, delimiters: Delimiters) -> Iterator[tuple[int, int]]:
    """Where labels in ASCII stand that touch no letter of ASCII: a judge reads "correctж" as "correct"."""
    reading = without_dress(text)
    behind = 0
    for found in _bare_label(delimiters).finditer(reading.text):
        begin = found.start()
        said = next((label for label in _bare_forms(delimiters) if _stands_alone(text, reading, begin, label)), "")
        if said and begin >= behind:
            behind = begin + len(said)
            yield reading.original(begin, behind)


def _stands_alone(text: str, reading: Reading, begin: int, label: str) -> bool:
    if not reading.text.startswith(label, begin):
        return False
    for edge, place in ((label[0], begin - 1), (label[-1], begin + len(label))):
        if 0 <= place < len(reading.text):
            beside = text[reading.places[place]]
            if beside.isascii() and (beside.isalpha() or (beside.isdigit() and edge.isdigit())):
                return False
    return True


def _words(text: str) -> set[str]:
    """The words of a text in each of its readings."""
    return {word for read in READINGS for word in _WORD.findall(read(text).text)}


def _is_answer(match: re.Match[str], answers: set[str], scales: set[str]) -> bool:
    said = next(match[name] for name in ("clause", "match", "rating", "praise", "label") if match[name])
    number = match["rating"] is not None and any(map(str.isdigit, match["rating"]))
    asked_for = match["scale"] in answers or (number and match["scale"] in scales)
    return answers.issuperset(_WORD.findall(said)) or (match["scale"] is not None and asked_for)


def _long_labels(delimiters: Delimiters) -> tuple[str, ...]:
    return tuple(label for label in delimiters.labels if any(map(_is_long, _WORD.findall(label))))


def _label_pattern(delimiters: Delimiters) -> str:
    """A pattern for the long labels; one that matches nothing stands for no labels."""
    long_labels = _long_labels(delimiters)
    return rf"(?:{any_of(long_labels)})(?:ly|ness)?" if long_labels else r"(?!)"


@lru_cache(maxsize=256)
def _bare_forms(delimiters: Delimiters) -> tuple[str, ...]:
    """The long labels in ASCII as they may be written, the longest first."""
    labels = {" ".join(folded(label).split()) for label in _long_labels(delimiters) if label.isascii()}
    return tuple(sorted((label + end for label in labels for end in ("", "ly", "ness")), key=len, reverse=True))


@lru_cache(maxsize=256)
def _bare_label(delimiters: Delimiters) -> re.Pattern[str]:
    """Where one may begin, others among them."""
    forms = _bare_forms(delimiters)
    return re.compile(rf"(?=(?:{any_of(forms)}))" if forms else r"(?!)")


@lru_cache(maxsize=256)
def _one_word(delimiters: Delimiters) -> re.Pattern[str]:
    label = _label_pattern(delimiters)
    return re.compile(rf"[\W_]*(?:it(?: is|'s) )?(?:not )?(?:(?:a|an|the) )?(?:{_PRAISE}|{label})[\W_]*")


@lru_cache(maxsize=256)
def _praise(delimiters: Delimiters) -> re.Pattern[str]:
    # A digit at a label's end is a footnote's, unless the label itself ends in one.
    label = rf"{_label_pattern(delimiters)}(?![^\W\d_])(?:(?<!\d)|(?!\d))"
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
        rf")|(?<![^\W\d_])(?:(?<!\d)|(?!\d))(?P<label>{label})"
    )


def _is_long(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS or (word.isalpha() and not word.isascii() and len(word) > 1)
