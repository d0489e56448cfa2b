"""Read the sentences of a text as words with their roles, and know which words are opposites."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, Self

from gradewire_server.metrics.correctness.words import (
    FUNCTION_WORDS,
    MAX_WORDS,
    NEGATIONS,
    VOCABULARY,
    FeatureText,
    clause_words,
)
from gradewire_server.metrics.text.lazy import lazy
from gradewire_server.metrics.text.normalise import antonym_table, lemmatizer, opposites_of

_MOST_SENTENCES: Final = 24
_MOST_WORDS: Final = 48
_MOST_CHARACTERS: Final = 1_024
"""Maximum number of characters to use from a sentence; its first `_MOST_WORDS` words are hardly ever longer."""
_MOST_SKIPPED: Final = 3
"""Maximum number of small words between a preposition and the word whose role it marks."""
_MAX_CACHED_WORDS: Final = 4096
_MAX_CACHED_QUESTIONS: Final = 64
_MAX_SHARED: Final = 256
"""Maximum number of characters in a reference whose sentence stays in the cache."""
_MAX_SHARED_SENTENCES: Final = 1_024
_WORDS: Final = VOCABULARY["words"]
_END_IN_QUESTION: Final = re.compile(
    r"(?<!\b\w)(?<!\b[A-Z]\w)(?<!\bMrs)(?<!\bProf)\.(?=\s|$)|\.(?=\s+(?:Wh(?:o|at|en|ere|ich|y)|How)\b)|[!?\n\u3002\uff01\uff1f]"
)
_GIVEN: Final = re.compile(
    r"\([^()]*\)|:\s*[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u201e\u00ab\u00bb]*[\"\u201c\u201d\u00bb]"
)
"""Brackets, and text in quotation marks behind a colon."""
_ASKS_AT_BEGIN: Final = re.compile(
    r"(?:who|whom|whose|what|which|where|when|why|how|wer|wen|wem|was|welche[rsnm]?|qui|quel(?:le)?s?|qui\u00e9n)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?;](?!\w)|\n|\u3002|\uff01|\uff1f")
_LEADING_VERDICT: Final = re.compile(
    r"\s*(?:yes|yeah|yep|no|nope|true|false|correct|right|sure|indeed)\s*[,.;:!\u2013\u2014-]+\s*", re.IGNORECASE
)
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019]s\b|(?<=s)['\u2019](?=\s)")
_SEPARATOR: Final = re.compile(r"[,;:](?!\w)|[()\u2014]|\s[\u2013-]\s|[.!?]\s")
_FREE: Final = re.compile(r"\b(\w+)-free\b", re.IGNORECASE)
_NO_LONGER: Final = re.compile(r"\bno longer\b", re.IGNORECASE)
_END: Final = "zzend"
"""A word between sentences while they are read together."""
_FIRST_LONG: Final = "\u2070"
"""The first character that may become more than four, which are cut at the end of a sentence."""
_OWNER: Final = "zzowner"
BREAK: Final = "zzbreak"
"""A token in the place of a comma, a bracket or the like."""
SEPARATES: Final = frozenset({"and", "or", "und", "oder", "et", "ou", "y", BREAK})
"""Tokens between the members of a list."""
NEGATORS: Final = (NEGATIONS - {"nor"}).union(_WORDS["implicit_negations"].split())
"""Words that negate; "without", "fail" and "hardly" are among them."""
MARKERS: Final = frozenset(_WORDS["markers"].split())
"""Prepositions that mark a word's role."""
PARTICLES: Final = frozenset(_WORDS["particles"].split())
"""Small words with an opposite, which count only in the same place: "breathe in", "breathe out"."""
_NONE: Final[frozenset[str]] = frozenset()
_AUXILIARIES_OF_PASSIVE: Final = {
    by: frozenset(auxiliaries.split())
    for words, auxiliaries in (line.split("|") for line in _WORDS["passives"])
    for by in words.split()
}
"""The auxiliaries beside which a word of another language means "by"."""
VERDICTS: Final = frozenset({"yes", "no", "true", "false"})
# "doe" is the dictionary's lemma for "does", and "ca" begins "can't".
_NO_CONTENT: Final = frozenset({_OWNER, BREAK, "ca", "doe"}).union(
    _WORDS["indefinite"].split(), _WORDS["german_articles"].split()
)
_PRONOUNS: Final = frozenset({"it", "he", "she", "they", "this", "that"})
_MOVES: Final = frozenset({"go", "come", "move", "get", "be", "turn", "shift", "head", "point"})
_TURNS: Final = {"up": "upward", "down": "downward"}


def _opposite_groups() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in (*VOCABULARY["opposites"]["groups"], *VOCABULARY["opposites"]["sides"]):
        one, other = (frozenset(side.split()) for side in line.split("|"))
        for words, against in ((one, other), (other, one)):
            for word in words:
                found.setdefault(word, set()).update(against)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES: Final = _opposite_groups()
SIDES: Final = {
    word: (group, side)
    for group, line in enumerate(VOCABULARY["opposites"]["sides"])
    for side, words in enumerate(line.split("|"))
    for word in words.split()
}
"""The group and the side, 0 or 1, of verbs whose subject and object have opposite parts: "win", "lose"."""
_VERB_OF_SIDE: Final = {side: word for word, side in reversed(SIDES.items())}
"""The first verb of each side, which is read in place of the others."""
ALLIES: Final = {
    word: frozenset(side.split())
    for line in reversed(VOCABULARY["opposites"]["groups"])
    for side in line.split("|")
    for word in side.split()
}
"""The words on a word's side of a group."""


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def opposites(word: str) -> frozenset[str]:
    """Return a word's antonyms, also as lemmas: "finish" for "unfinished"."""
    found, lemma = opposites_of(word) | OPPOSITES.get(word, frozenset()), lemmatizer()
    return found.union(lemma(each, each) for each in found)


@lru_cache(maxsize=_MAX_CACHED_WORDS)
def _base(word: str) -> str:
    """Return the positive form of a comparative that has an antonym: "light" for "lighter"."""
    if not word.endswith("er") or word in OPPOSITES:
        return word
    stem = word.removesuffix("er")
    bases = (stem, f"{stem}e", f"{stem[:-1]}y" if stem.endswith("i") else stem, stem[:-1])
    found = next((base for base in bases if base in antonym_table() or base in OPPOSITES), word)
    return word if found in SIDES else found


def bears_content(word: str) -> bool:
    """Return True unless a word only connects, negates or stands for other words."""
    return word not in FUNCTION_WORDS and word not in NEGATORS and word not in _NO_CONTENT


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence, with marks for the genitive and for commas."""

    tokens: tuple[str, ...]

    @classmethod
    def shared(cls, text: str) -> "Sentence":
        """Return the same as `of`, for a reference, which is read once for many answers if it is short."""
        return _sentence_of(text) if len(text) <= _MAX_SHARED else cls.of(text)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a sentence, without "yes" or "no" at its beginning."""
        return cls.of_words(clause_words(_marked(text)))

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Self:
        """Return the sentence of `clause_words`."""
        words = tuple(map(_base, words[:_MOST_WORDS]))
        if not _AUXILIARIES_OF_PASSIVE.keys().isdisjoint(words) and any(
            not _AUXILIARIES_OF_PASSIVE.get(word, _NONE).isdisjoint(words) for word in words
        ):
            words = tuple("by" if word in _AUXILIARIES_OF_PASSIVE else word for word in words)
        if not SIDES.keys().isdisjoint(words):
            words = tuple(_VERB_OF_SIDE[SIDES[word]] if word in SIDES else word for word in words)
        if "up" in words or "down" in words:
            few = len(words) <= 2
            words = tuple(
                _TURNS[word] if word in _TURNS and (few or words[max(0, place - 1)] in _MOVES) else word
                for place, word in enumerate(words)
            )
        return cls(words)

    @lazy
    def content(self) -> tuple[str, ...]:
        """The distinct words that bear content, in their order; negating words are not among them."""
        return tuple(dict.fromkeys(word for word in self.tokens if bears_content(word)))

    @lazy
    def words(self) -> frozenset[str]:
        """The set of words."""
        return frozenset(self.tokens)

    @lazy
    def places(self) -> Mapping[str, int]:
        """The first place of each word."""
        return {word: place for place, word in reversed(tuple(enumerate(self.tokens)))}

    def between(self, one: str, other: str) -> tuple[str, ...]:
        """Return the words between two words."""
        return self.tokens[self.places[one] + 1 : self.places[other]]

    def stands_in(self, other: "Sentence") -> bool:
        """Return True if the sentence begins with a pronoun that may mean the other one's first word."""
        return self.tokens[0] in _PRONOUNS and other.content[0] not in self.words

    @lazy
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of adjacent words."""
        return frozenset(pairwise(self.tokens))

    def marker(self, word: str, other: "Sentence") -> str:
        """Return the preposition that marks a word's role, "of" for a genitive, or "".

        A modifier that the word has in the other sentence too does not separate it from its preposition.
        """
        place = self.places[word]
        behind = self.tokens[place + 1 : place + 3]
        if _OWNER in behind[:1] or (_OWNER in behind and bears_content(behind[0])):
            return "of"
        if word.isdigit():
            return ""
        if (
            place
            and word not in OPPOSITES
            and (self.tokens[place - 1], word) in other.pairs
            and bears_content(self.tokens[place - 1])
        ):
            place -= 1
        listed = False
        for before in reversed(self.tokens[max(0, place - _MOST_SKIPPED) : place]):
            if before in MARKERS:
                return "before" if before == "then" else before
            if before in {BREAK, _OWNER} or (before not in FUNCTION_WORDS and not listed):
                return ""
            listed = before in SEPARATES
        return ""


_sentence_of: Final = lru_cache(maxsize=_MAX_SHARED_SENTENCES)(Sentence.of)


def _marked(text: str) -> str:
    """Return a sentence with marks in place of genitives and pauses, without "yes" or "no" at its beginning."""
    text = text[:_MOST_CHARACTERS]
    led = _LEADING_VERDICT.match(text)
    text = text[led.end() :] if led and led.end() < len(text) else text
    if "-free" in text:
        text = _FREE.sub(r"without \1", text)
    if "longer" in text:
        text = _NO_LONGER.sub("not", text)
    if "'" in text or "\u2019" in text:
        text = _POSSESSIVE.sub(f" {_OWNER} ", text)
    return _SEPARATOR.sub(f" {BREAK} ", text)


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, at most `_MOST_SENTENCES`."""
    parts = [_marked(part) for part in islice(_SENTENCE_END.split(text), _MOST_SENTENCES) if part.strip()]
    for words in _words_of(parts):
        if words:
            yield Sentence.of_words(words)


def _words_of(sentences: Sequence[str]) -> list[Sequence[str]]:
    """Return the words of each marked sentence, read in one call if possible, which takes less time."""
    joined = f" {_END} ".join(sentences)
    if len(sentences) > 1 and max(joined) < _FIRST_LONG:
        words = (*clause_words(joined), _END)
        places = [place for place, word in enumerate(words) if word == _END]
        if len(words) < MAX_WORDS and len(places) == len(sentences):
            found = [words[begin + 1 : end] for begin, end in pairwise((-1, *places))]
            # Signs alone are words where there are no others.
            return [each or clause_words(sentence) for each, sentence in zip(found, sentences, strict=True)]
    return [clause_words(sentence) for sentence in sentences]


def first_sentence(text: str) -> Sentence | None:
    """Return a text's first sentence that has more than a "yes" or "no"; None without one."""
    return next((sentence for sentence in sentences_of(text) if not VERDICTS.issuperset(sentence.tokens)), None)


def asking(question: FeatureText) -> FeatureText:
    """Return the sentence of a question that asks, without brackets and without quoted text behind a colon.

    It is the last sentence with a question mark, or else the last one that begins with a question word; without both,
    return the whole question.
    """
    found = _asking(question.raw)
    return FeatureText.shared(found) if found else question


@lru_cache(maxsize=_MAX_CACHED_QUESTIONS)
def _asking(text: str) -> str:
    """Return the sentence that asks if it is not the whole text, otherwise ""."""
    begin = end = 0
    marked = worded = ""
    given = _GIVEN.sub(" ", text)
    for match in (*_END_IN_QUESTION.finditer(given), None):
        end = len(given) if match is None else match.end()
        sentence, begin = given[begin:end].strip(), end
        if sentence.endswith(("?", "\uff1f")) and any(map(str.isalnum, sentence)):
            marked = sentence
        elif _ASKS_AT_BEGIN.match(sentence):
            worded = sentence
    found = marked or worded or given.strip()
    return "" if found == text.strip() else found
