"""Choose the sentences of a long answer that say how a reference stands in it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from gradewire_server.metrics.correctness.denials import led_verdict
from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, FeatureText, folded_words

_MOST_WORDS_AS_A_WHOLE: Final = 20
_MOST_WORDS: Final = 40
_MOST_REFERENCES: Final = 8
_MOST_SENTENCES: Final = 256
_MIN_SHARE_OF_WORDS: Final = 2 / 3
_SENTENCE_END: Final = re.compile(r"[.!?\u2026]+[\"'\u201d\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f]|\n+")
_ABBREVIATION: Final = re.compile(r"\b(?:[^\W\d_]|dr|mr|mrs|st|no|vs|jr|sr|prof|etc|approx|ca|bzw)$", re.IGNORECASE)
_LONGEST_ABBREVIATION: Final = 8
_END: Final = "zzend"
"""A word between sentences while they are folded together. If a text has it, its sentences are folded one by one."""


@dataclass(frozen=True, slots=True)
class Focus:
    """The sentences of an answer that mention its references.

    Attributes:
        statement: The sentences that have the words of a reference.
        surroundings: `statement` with the neighbouring sentences.
    """

    statement: FeatureText
    surroundings: FeatureText

    @classmethod
    def of(cls, question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> Self:
        """Choose the sentences of an answer; both attributes are the whole of an answer with at most 20 words.

        If no sentence has the words of a reference, the first that begins with "yes" or "no" counts if a reference
        does, and otherwise the one with most of the question's words, and those behind it. Each attribute has at most
        40 words, or one longer sentence.
        """
        sentences = _sentences(answer.raw) if len(answer.words) > _MOST_WORDS_AS_A_WHOLE else []
        if len(sentences) <= 1:
            return cls(answer, answer)
        words = _words_of(sentences)
        sentences = sentences[: len(words)]
        stating = _stating(question, references, sentences, words)
        asked = question.distinct - FUNCTION_WORDS
        before = [place - 1 for place in stating if place and asked & words[place - 1]]
        behind = [place + 1 for place in stating if place + 1 < len(words)]
        chosen = (_within([len(each) for each in words], places) for places in (stating, (*stating, *behind, *before)))
        return cls(*(FeatureText.of("".join(sentences[place] for place in places).strip()) for places in chosen))


def _within(counts: Sequence[int], places: Iterable[int]) -> list[int]:
    """Return the first places, in the order of the text, whose sentences have at most 40 words together."""
    chosen: set[int] = set()
    left = _MOST_WORDS
    for place in places:
        if place not in chosen and (not chosen or counts[place] <= left):
            chosen.add(place)
            left -= counts[place]
    return sorted(chosen)


def _stating(
    question: FeatureText,
    references: Sequence[FeatureText],
    sentences: Sequence[str],
    words: Sequence[frozenset[str]],
) -> list[int]:
    references = references[:_MOST_REFERENCES]
    wanted = [
        frozenset(reference.content) - question.distinct or frozenset(reference.content) for reference in references
    ]
    found = [place for place, said in enumerate(words) if any(_states(each, said) for each in wanted)]
    if any(led_verdict(reference.raw) is not None for reference in references):
        led = next((place for place, sentence in enumerate(sentences) if led_verdict(sentence) is not None), None)
        found = found if led is None else list(range(led, len(sentences)))
    if found:
        return found
    asked = question.distinct - FUNCTION_WORDS
    closest = max(range(len(words)), key=lambda place: (len(asked & words[place]), place))
    return list(range(closest, len(words)))


def _words_of(sentences: Sequence[str]) -> list[frozenset[str]]:
    """Return the folded words of each sentence, up to 2,048 words in all, in one call, which takes less time."""
    if any(_END in sentence for sentence in sentences):
        return [frozenset(folded_words(sentence)) for sentence in sentences]
    found: list[frozenset[str]] = []
    begin = 0
    words = (*folded_words(f" {_END} ".join(sentences)), _END)
    while begin < len(words):
        end = words.index(_END, begin)
        found.append(frozenset(words[begin:end]))
        begin = end + 1
    return found


def _states(wanted: frozenset[str], said: frozenset[str]) -> bool:
    return len(wanted & said) >= _MIN_SHARE_OF_WORDS * len(wanted)


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    begin = 0
    for match in _SENTENCE_END.finditer(text):
        end = match.start()
        if match[0] == "." and (
            _ABBREVIATION.search(text, max(begin, end - _LONGEST_ABBREVIATION), end)
            or text[begin:end].strip().isdigit()
        ):
            continue
        if any(map(str.isalnum, text[begin:end])):
            found.append(text[begin : match.end()])
        begin = match.end()
        if len(found) == _MOST_SENTENCES:
            break
    if any(map(str.isalnum, text[begin:])):
        found.append(text[begin:])
    return found
