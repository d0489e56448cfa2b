"""Whether a sentence may stand for a reference: what is asked of a synthetic answer.

Source: SMILE, section 4 and its appendix on synthetic answers: one short sentence that uses the words of the answer and
is not the question as it stands. How that is measured is settled here (docs/reference/synthetic-answers.md).
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from gradewire_server.metrics.text.smile_normalise import bare_words, normalise
from gradewire_server.metrics.text.word_split import split_words

MAX_REFERENCE_WORDS: Final = 16
"""A longer reference is as long as an answer of a model: it stands for itself."""
MAX_REFERENCE_CHARACTERS: Final = 200
"""The same in characters, for words without end and scripts without blanks."""
MAX_SENTENCE_WORDS: Final = 48
"""Words of a sentence beside those of its reference."""

_ARTICLES: Final = frozenset({"a", "an", "the"})
_QUESTION_MARKS: Final = "?\uff1f\u061f\u037e"
_ASKING: Final = frozenset({"who", "whom", "whose", "what", "when", "where", "which", "why", "how"})
_BEGINNING: Final = re.compile(r"is|are|was|were|do|does|did|can|could|will|would|has|have|had|should|may|might")
_CLOSING: Final = " \t\"'\u201d\u2019)]"
_LEAST_COPY_WORDS: Final = 3


class Flaw(StrEnum):
    """What is wrong with a sentence, in words that the second prompt shows to the judge."""

    EMPTY = "it was empty"
    UNFINISHED = "it was too long"
    MISSING_WORDS = "it did not contain the words of the answer"
    ONLY_ANSWER = "it only repeated the answer, which is not a sentence"
    QUESTION = "it repeated the question"
    MARKUP = "it held text that looks like the markup of a chat"
    INSTRUCTIONS = "it repeated the instructions"
    EXAMPLE = "it repeated an example"
    UNRELATED = "it held no word of the question"


def stands_for_itself(reference: str) -> bool:
    """Whether a reference needs no sentence because it is as long as one."""
    return len(reference) > MAX_REFERENCE_CHARACTERS or len(bare_words(reference)) > MAX_REFERENCE_WORDS


def find_flaw(sentence: str, *, question: str, reference: str, finished: bool) -> Flaw | None:
    """What is wrong with a sentence, the gravest first; None where it may stand for the reference.

    Args:
        sentence: One sentence at most (`first_sentence`).
        question: What was asked; not blank.
        reference: The answer; not blank, not one that `stands_for_itself`.
        finished: Whether the sentence came to its end.
    """
    words = split_words(sentence) if sentence.strip() else []
    if not words:
        return Flaw.EMPTY
    if not finished or len(words) > MAX_SENTENCE_WORDS + len(split_words(reference)):
        return Flaw.UNFINISHED
    if _is_question(sentence, words, question, reference):
        return Flaw.QUESTION
    if not holds_answer(sentence, reference):
        return Flaw.MISSING_WORDS
    if not _beyond(words, split_words(reference)) or not _beyond(normalise(sentence).words, normalise(reference).words):
        return Flaw.ONLY_ANSWER
    return None


def holds_answer(sentence: str, reference: str) -> bool:
    """Whether the words of the reference are in the sentence.

    Either every word of N(reference) is a word of N(sentence), in any order and articles aside, or the reference
    stands there letter for letter, with whole words: so it is for scripts without blanks, and for compounds with a
    hyphen. A reference without a word character has to stand there as it is.
    """
    bare = bare_words(reference)
    if not bare:
        return reference.strip().lower() in sentence.lower()
    wanted = set(normalise(reference).words)
    if (wanted - _ARTICLES or wanted) <= set(normalise(sentence).words):
        return True
    return _has_run(split_words(sentence), split_words(reference))


def _is_question(sentence: str, words: list[str], question: str, reference: str) -> bool:
    """Whether the sentence asks, or is the question with the answer put beside it."""
    ending = sentence.rstrip(_CLOSING)
    if ending.endswith(tuple(_QUESTION_MARKS)) and not reference.rstrip(_CLOSING).endswith(tuple(_QUESTION_MARKS)):
        return True
    asked = split_words(question.lstrip()[: len(sentence) + 1])  # a longer question cannot be in the sentence
    if words == asked:
        return True
    # A question that is a phrase, or a sentence to be ended ("Capital of France?", "Mustangs are a type of?"), has to
    # be in a good sentence.
    if _ASKING.isdisjoint(asked) and _BEGINNING.fullmatch(asked[0]) is None:
        return False
    answer = split_words(reference)
    return words in (asked + answer, answer + asked) or (len(asked) >= _LEAST_COPY_WORDS and _has_run(words, asked))


def _beyond(words: Iterable[str], answer: Iterable[str]) -> set[str]:
    """Words that are not the answer's, articles aside."""
    return set(words) - set(answer) - _ARTICLES


def _has_run(words: list[str], run: list[str]) -> bool:
    """Whether `run` stands in `words`, one after the other."""
    if len(run) > len(words):
        return False
    # Words hold no blank, so a run of them is a piece of the text between two.
    return re.search(rf"(?:^| ){re.escape(' '.join(run))}(?: |$)", " ".join(words)) is not None
