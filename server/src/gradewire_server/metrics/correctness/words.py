"""Compare an item's words: recall, inflected forms, similar spellings, and missing words."""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from math import nan
from operator import itemgetter
from typing import Any, Final

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, JaroWinkler

from gradewire_server.metrics.text.lazy import lazy
from gradewire_server.metrics.text.normalise import known_words, lemmatizer
from gradewire_server.metrics.text.words import split_words
from gradewire_server.metrics.values.numerals import ORDINALS, SMALL, TENS

MAX_CHARACTERS: Final = 16_384
"""Maximum number of characters to use from a prediction or question."""
MAX_WORDS: Final = 2_048
MAX_REFERENCE_CHARACTERS: Final = 512

VOCABULARY: Final[Mapping[str, Any]] = tomllib.loads((files(__package__) / "vocabulary.toml").read_text("utf-8"))
STOP_WORDS: Final = frozenset(VOCABULARY["words"]["articles_and_the_like"].split())
FUNCTION_WORDS: Final = STOP_WORDS.union(VOCABULARY["words"]["functions"].split())
"""Stop words, and words that connect other words."""

_LAST_ORDINAL: Final = 20
# "one" is omitted because it is usually a pronoun, and "second" because it is a unit.
_DIGITS: Final = {
    word: str(value)
    for word, value in (*SMALL.items(), *TENS.items(), *ORDINALS.items())
    if word not in {"one", "second", "fourty"} and not (word in ORDINALS and not 0 < value <= _LAST_ORDINAL)
}
_DIGIT: Final = re.compile(r"\d")
_ORDINAL_DIGITS: Final = re.compile(r"(?<!\d)(\d{1,4})(?:st|nd|rd|th)\b")

_MAX_CACHED_TEXTS: Final = 64
"""Maximum number of longer texts with cached words, which take at most 12 MB."""
_MAX_CACHED_PHRASES: Final = 2_048
_MAX_PHRASE: Final = 128
"""Maximum number of characters in a phrase, whose words stay in a cache of their own: 4 MB."""
_MAX_SHARED_TEXTS: Final = 2_048
_MAX_SHARED: Final = 256
"""Maximum number of characters in a reference or question that is read once for many answers: 60 MB at most."""
_MAX_KEPT_PARTS: Final = 8
"""Maximum number of parts that a text keeps. A part takes as much memory as 50 characters."""
NOBODY: Final = frozenset({"no", "none", "nobody", "nothing", "zero"})
"""Words that mean the number 0 of something."""
_MOST_EXPANSION: Final = 4
_STOP_WEIGHT: Final = 0.05
_SHORT_WEIGHT: Final = 0.6
_SHORT: Final = 3
_ECHO_SHARE: Final = 0.2
_MARKS: Final = re.compile("[\u0300-\u036f]")
# Letters with a stroke or hook, and ligatures, which NFKD does not decompose.
_LETTERS: Final = str.maketrans({
    "\u00e6": "ae", "\u0153": "oe", "\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d", "\u00fe": "th",
    "\u0131": "i", "\u0127": "h", "\u014b": "ng",
})  # fmt: skip
_INITIALS: Final = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?")
_FIRST_INITIALS: Final = re.compile(r"\.[^\W\d_]\.")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")
_HALF: Final = "1\u20442"
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_APOSTROPHE: Final = re.compile("['`](?:s\\b)?")
_OTHER_APOSTROPHES: Final = "\u2018\u2019"
# Additions to a reference's answer: "ABBA (he directed their films)", "turlough, or turlach".
_ASIDE: Final = re.compile(r"\([^()]*\)|,? or .*", re.DOTALL)
_PART: Final = re.compile(r",| and |&|;")

_WRITTEN_INITIALS: Final = re.compile(r"(?<![\w.])(?:[A-Z]\.? ?){1,5}[A-Z](?:\b|\.)(?![\w.])")
# A name of several words, which may contain small words.
_NAME: Final = re.compile(r"(?<!\w)[A-Z][\w']*(?:[ -](?:(?:of|the|and|for|in|de|la) )*[A-Z][\w']*)+")
_DOT_OR_BLANK: Final = re.compile(r"[. ]")
_BLANK_OR_HYPHEN: Final = re.compile(r"[ -]")
_LEAST_GLUED: Final = 5
_FEWEST_INITIALS: Final = 3
_MOST_INITIALS: Final = 6
_MAX_WORDS_OF_LOWER_CASE_NAME: Final = 8
_MAX_SEARCHED_WORDS: Final = 64

_MAX_REFERENCE_WORDS: Final = 32
_MAX_ANSWER_WORDS: Final = 256
_MAX_LETTERS: Final = 64
_FIRST_LETTERS: Final = itemgetter(slice(_MAX_LETTERS))
_MAX_ANSWER_LETTERS: Final = 4096
_MAX_REFERENCE_LETTERS: Final = 128
_MIN_EQUAL_LETTERS: Final = 4
_MIN_IMPORTANT_WEIGHT: Final = 0.5

_MIN_PART_RECALL: Final = 0.99
# An English noun phrase ends before these words. Only "and" and the like may come between modifiers and head.
_BEHIND_HEAD: Final = FUNCTION_WORDS - {"a", "an", "the", "and", "or", "his", "her", "their", "its", "one"}
_COMMA: Final = re.compile(r"[,;:(]")

_NOT: Final = re.compile(r"\b(\w+)n't\b|\bcan(?:not|'t)\b|\bwon't\b")
NEGATIONS: Final = frozenset({"not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "cannot"})
"""Words that negate the words after them; `clause_words` turns "n't" into "not"."""
MAY_NEGATE: Final = re.compile(
    r"\b(?:no|not|never|neither|nor|none|nobody|nothing|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)


def folded(text: str) -> str:
    """Case-fold a text, remove accents, and replace digits of all scripts with ASCII digits.

    Also remove apostrophes (in "cat's", the final "s" too), commas in numbers ("1,000") and full stops
    between initials ("U.S.A."), and replace "\u00bd" with "half". Cut the result to four times the text's length.
    """
    if text.isascii():
        plain = text.lower()
    else:
        plain = _without_marks(text)
        for sign in _OTHER_APOSTROPHES:
            plain = plain.replace(sign, "'")
    if "." in plain and _FIRST_INITIALS.search(plain) is not None:
        plain = _INITIALS.sub(lambda initials: f"{initials[0].replace('.', '')} ", plain)
    if "'" in plain or "`" in plain:
        plain = _APOSTROPHE.sub("", plain)
    return _THOUSANDS.sub("", plain) if "," in plain else plain


def _without_marks(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)[: _MOST_EXPANSION * len(text)]
    if not plain.isascii():
        plain = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), _MARKS.sub("", plain))
        plain = plain.replace(_HALF, " half ")
    plain = plain.casefold()
    return plain if plain.isascii() else plain.translate(_LETTERS)


def plain(text: str) -> str:
    """Return the case-folded text with plain apostrophes, for phrase searches."""
    return text[:MAX_CHARACTERS].replace("\u2019", "'").casefold()


def number_or_lemma(word: str) -> str:
    """Return the digits for a number word, or the lemma of a folded word."""
    return _DIGITS.get(word) or lemmatizer()(word, word)


def folded_words(text: str) -> tuple[str, ...]:
    """Return the lemmas of the folded text's first words, with digits instead of number words."""
    return _words_of_phrase(text) if len(text) <= _MAX_PHRASE else _words_of_text(text)


def _folded_words(text: str) -> tuple[str, ...]:
    lemma, plain = lemmatizer(), folded(text)
    if _DIGIT.search(plain) is not None:
        plain = _ORDINAL_DIGITS.sub(r"\1", plain)
    words = split_words(plain)[:MAX_WORDS] or text.split()[:MAX_WORDS]
    return tuple(map(_DIGITS.get, words, map(lemma, words, words)))


_words_of_phrase = lru_cache(maxsize=_MAX_CACHED_PHRASES)(_folded_words)
_words_of_text = lru_cache(maxsize=_MAX_CACHED_TEXTS)(_folded_words)


@lru_cache(maxsize=_MAX_CACHED_TEXTS)
def clause_words(text: str) -> tuple[str, ...]:
    """Return a clause's folded words; "isn't" becomes "is" and "not"."""
    plain = text.replace("\u2019", "'").casefold()
    if "n't" in plain or "cannot" in plain:
        plain = _NOT.sub(lambda match: f"{match[1] or match[0][:2]} not", plain)
    return folded_words(plain) if plain.strip() else ()


@dataclass(frozen=True)
class FeatureText:
    """A text's beginning, and its folded words."""

    raw: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str, most: int = MAX_CHARACTERS) -> "FeatureText":
        """Return the first `most` characters after leading white space, with their words."""
        begin = text.lstrip()[:most]
        return cls(begin, folded_words(begin))

    @classmethod
    def shared(cls, text: str, most: int = MAX_CHARACTERS) -> "FeatureText":
        """Return the same as `of`, for a reference or a question: a short one is read once for many answers."""
        begin = text.lstrip()[:most]
        return _shared(begin) if len(begin) <= _MAX_SHARED else cls(begin, folded_words(begin))

    @lazy
    def distinct(self) -> frozenset[str]:
        """The set of words."""
        return frozenset(self.words)

    @lazy
    def spaced(self) -> str:
        """The words, with single blanks between and around them."""
        return f" {' '.join(self.words)} "

    @lazy
    def content(self) -> tuple[str, ...]:
        """The words that are not stop words, or all words if all are stop words."""
        return tuple(word for word in self.words if word not in STOP_WORDS) or self.words

    @property
    def core(self) -> "FeatureText":
        """A reference without text in parentheses, and without everything from the word "or" on, if words remain."""
        return self._core or self

    @property
    def parts(self) -> "Sequence[FeatureText]":
        """A reference's parts between commas, semicolons, "&" and "and"; at least one."""
        parts = self._split() if self._few_parts is None else self._few_parts
        return parts or [self]

    # A text that kept itself would stay in memory until the garbage collector finds it.
    @lazy
    def _core(self) -> "FeatureText | None":
        text = _ASIDE.sub("", self.raw) if "(" in self.raw or " or " in self.raw else self.raw
        return None if text == self.raw or not text.strip() else FeatureText(text, folded_words(text))

    @lazy
    def _few_parts(self) -> "Sequence[FeatureText] | None":
        return None if len(parts := self._split()) > _MAX_KEPT_PARTS else parts

    def _split(self) -> "Sequence[FeatureText]":
        """Return the parts if there are several."""
        parts = [part for part in _PART.split(self.raw) if part.strip()]
        return [FeatureText(part, folded_words(part)) for part in parts] if len(parts) > 1 else []

    @lazy
    def weights(self) -> Sequence[tuple[str, float, float]]:
        """The distinct words with their weights as evidence, 0.01 to 1: in general, and if the question has them."""
        found = {}
        for word in dict.fromkeys(self.words):  # keep the order, so that sums are equal on all machines
            full = 1.0 if len(word) > _SHORT or word.isdigit() else _SHORT_WEIGHT
            found[word] = (_STOP_WEIGHT, _STOP_WEIGHT) if word in STOP_WORDS else (full, full * _ECHO_SHARE)
        return [(word, *each) for word, each in found.items()]

    @lazy
    def written_initials(self) -> frozenset[str]:
        """The lower-case letters of abbreviations in capitals: "usa" for "U.S.A."."""
        found = (_DOT_OR_BLANK.sub("", match[0]).lower() for match in _WRITTEN_INITIALS.finditer(self.raw))
        return frozenset(each for each in found if len(each) >= _FEWEST_INITIALS)

    @lazy
    def initials_of_names(self) -> frozenset[str]:
        """The lower-case initials of an answer's names, with and without those of small words."""
        return frozenset(_initials_of_names(self))

    @lazy
    def glued(self) -> frozenset[str]:
        """The neighbouring words that may be one word, written together."""
        return frozenset(one + other for one, other in pairwise(self.words) if _can_be_glued(one, other))


@lru_cache(maxsize=_MAX_SHARED_TEXTS)
def _shared(text: str) -> FeatureText:
    return FeatureText(text, folded_words(text))


def weight(word: str, asked: Collection[str]) -> float:
    """Return the weight of a reference's word as evidence, 0.01 to 1; `asked` are the question's words."""
    if word in STOP_WORDS:
        return _STOP_WEIGHT
    full = 1.0 if len(word) > _SHORT or word.isdigit() else _SHORT_WEIGHT
    return full * _ECHO_SHARE if word in asked else full


def recall(reference: FeatureText, answer: Collection[str], asked: Collection[str]) -> float:
    """Return the weighted share of a reference's distinct words that an answer contains, 0 to 1."""
    found = whole = 0.0
    for word, full, echoed in reference.weights:
        worth = echoed if word in asked else full
        whole += worth
        found += worth if word in answer else 0.0
    return found / whole if whole else 0.0


def share(found: Iterable[bool]) -> float:
    """Return the share of True values, or NaN if there are no values."""
    flags = list(found)
    return sum(flags) / len(flags) if flags else float("nan")


def found_forms(references: Sequence[FeatureText], answer: FeatureText) -> frozenset[str]:
    """Return an answer's words, and the references' words that the answer contains in a different form."""
    said = answer.distinct
    more: set[str] = set()
    missing = {
        reference.raw: lacking
        for reference in references
        if (lacking := [word for word in reference.content[:_MAX_SEARCHED_WORDS] if word not in said])
    }
    if not missing:
        return said
    joined = "".join(answer.words)
    if "0" not in said and not said.isdisjoint(NOBODY):
        more.add("0")
    for reference in references:
        words = missing.get(reference.raw, [])
        if words:
            more.update(
                word
                for word in words
                if (word in joined and word in answer.glued) or _occurs_in_other_number(word, said)
            )
            more.update(_words_written_as_one(reference, said))
            more.update(_named(reference, words, answer))
    return said | more if more else said


def _words_written_as_one(reference: FeatureText, said: frozenset[str]) -> list[str]:
    pairs = pairwise(reference.words[:_MAX_SEARCHED_WORDS])
    return [word for pair in pairs if _can_be_glued(*pair) and "".join(pair) in said for word in pair]


def _can_be_glued(one: str, other: str) -> bool:
    return len(one) + len(other) >= _LEAST_GLUED or (len(one) == len(other) == 1 and (one + other).isalpha())


def _occurs_in_other_number(word: str, said: frozenset[str]) -> bool:
    if not word.isalpha() or len(word) < _LEAST_GLUED - 1 or word in known_words():
        return False
    return f"{word}s" in said or f"{word}es" in said or (word.endswith("s") and word[:-1] in said)


def _named(reference: FeatureText, lacking: Sequence[str], answer: FeatureText) -> list[str]:
    """Return reference words that the answer abbreviates to initials, or initials that the answer spells out."""
    words = reference.content[:_MAX_SEARCHED_WORDS]
    if _FEWEST_INITIALS <= len(words) <= _MOST_INITIALS and answer.written_initials:
        initials = "".join(word[0] for word in words)
        if initials in answer.written_initials:
            return list(words)
    return [word for word in reference.written_initials if word in lacking and word in answer.initials_of_names]


def _initials_of_names(answer: FeatureText) -> Iterator[str]:
    for match in _NAME.finditer(answer.raw):
        words = _BLANK_OR_HYPHEN.split(match[0])[: 2 * _MOST_INITIALS]
        words = words[1:] if words[0].lower() in STOP_WORDS else words
        yield "".join(word[0] for word in words).lower()
        yield "".join(word[0] for word in words if word[0].isupper()).lower()
    if len(answer.words) <= _MAX_WORDS_OF_LOWER_CASE_NAME:
        yield "".join(word[0] for word in answer.content)


def spelling_features(
    candidates: Sequence[FeatureText], best: FeatureText, answer: FeatureText, asked: Collection[str]
) -> dict[str, float]:
    """Return features for similar spellings, each from 0 to 1.

    `best` is SMILE's best reference, and `candidates` are references by recall, highest first.

    Returns:
        `spelling_least`: for the best reference's important words, the lowest similarity (by insertions and deletions)
        to the answer's closest word; NaN if the reference has no important words. `spelling_begin`: the weighted mean
        of the words' Jaro-Winkler similarities, for the best reference or the first candidate, whichever is higher.
        `spelling_within`: the highest similarity of a reference to a part of the answer.
    """
    words = _Spelt(tuple(dict.fromkeys(map(_FIRST_LETTERS, answer.words)))[:_MAX_ANSWER_WORDS])
    texts = dict.fromkeys(" ".join(each.words)[:_MAX_REFERENCE_LETTERS] for each in (best, *candidates))
    whole = " ".join(answer.words)[:_MAX_ANSWER_LETTERS]
    within = 0.0
    for text in texts:
        within = max(within, _within(text, whole))
        if within == 1.0:
            break
    return {
        "spelling_least": _farthest(best, words, asked),
        "spelling_begin": max(_beginnings(each, words, asked) for each in {best: None, candidates[0]: None}),
        "spelling_within": within,
    }


class _Spelt:
    """The distinct words of an answer, most of which need no comparison of spellings."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    @lazy
    def distinct(self) -> frozenset[str]:
        return frozenset(self.words)

    @lazy
    def unknown(self) -> Sequence[str]:
        """The words that the dictionary lacks."""
        return [word for word in self.words if word not in known_words()]

    @lazy
    def known(self) -> Sequence[str]:
        return [word for word in self.words if word in known_words()]

    def comparable(self, word: str) -> Sequence[str]:
        """Return the words to which a word is compared: if it is a known one, no other ones unless they begin alike."""
        if word not in known_words():
            return self.words
        first, begin = word[:_MIN_EQUAL_LETTERS], word[: max(_MIN_EQUAL_LETTERS, len(word) - 1)]
        alike = (other for other in self.known if other.startswith(first))  # few words, all for which `_begins` is True
        return [*self.unknown, *(other for other in alike if _begins(word, begin, other))]


def _farthest(reference: FeatureText, answer: _Spelt, asked: Collection[str]) -> float:
    proving = [word for word in _first_words(reference) if weight(word, asked) >= _MIN_IMPORTANT_WEIGHT]
    if not proving:
        return nan
    return min(_closeness(proving, answer, Indel.normalized_similarity))


def _beginnings(reference: FeatureText, answer: _Spelt, asked: Collection[str]) -> float:
    words = _first_words(reference)
    weights = np.array([weight(word, asked) for word in words])
    return float(weights @ _closeness(words, answer, JaroWinkler.normalized_similarity) / weights.sum())


def _first_words(reference: FeatureText) -> list[str]:
    return list(dict.fromkeys(word[:_MAX_LETTERS] for word in reference.words))[:_MAX_REFERENCE_WORDS]


def _closeness(words: Sequence[str], answer: _Spelt, scorer: Callable[..., float]) -> list[float]:
    """Return the similarity of each word to an answer's closest word, 0 to 1; numbers must be equal."""
    closeness = []
    for word in words:
        if word in answer.distinct or word.isdecimal():
            closeness.append(float(word in answer.distinct))
            continue
        others = answer.comparable(word)
        closeness.append(float(process.extractOne(word, others, scorer=scorer)[1]) if others else 0.0)
    return closeness


def _begins(word: str, begin: str, other: str) -> bool:
    """Return True if two words are equal or share their first letters.

    They must share at least four letters, and all letters of the shorter word except possibly its last. `begin`
    is the part of `word` that `other` must share if `other` is not shorter than `word`.
    """
    return word == other or other.startswith(
        begin if len(other) >= len(word) else word[: max(_MIN_EQUAL_LETTERS, len(other) - 1)]
    )


def _within(text: str, whole: str) -> float:
    """Return the similarity, 0 to 1, of a text to the answer's closest part; 0 or 1 for a text without letters.

    A shorter answer is compared as a whole: "Zealand" is only a part of "New Zealand".
    """
    if any(map(str.isalpha, text)):
        if len(text) <= _MAX_LETTERS and text in whole:
            return 1.0
        if len(whole) < len(text):
            return fuzz.ratio(text, whole) / 100
        return fuzz.partial_ratio(text, whole) / 100
    return float(f" {text} " in f" {whole} ")


def missing_features(
    best: FeatureText, parts: Sequence[FeatureText], said: Collection[str], asked: Collection[str]
) -> dict[str, float]:
    """Return the shares of the best reference's words that an answer contains, by the words' role.

    Only words that the question lacks count; a share without such words is NaN. `parts` are the reference's parts.
    `said` contains the answer's words and other forms of these words, and `asked` contains the question's words.

    Returns:
        `head_recall`: 1 if the answer contains the head of the reference's phrase. `modifier_recall`: the share of all
        words except the head. `name_recall`: the share of words that the dictionary lacks, mostly names.
        `member_recall`: for a list, the share of the list's parts that the answer contains completely.
    """
    core = best.core
    new = [word for word in dict.fromkeys(core.content) if word not in asked]
    head = head_of(core)
    names = [word for word in new if word.isalpha() and word not in known_words()]
    members = [recall(part, said, asked) >= _MIN_PART_RECALL for part in parts] if len(parts) > 1 else []
    return {
        "head_recall": float(head in said) if head in new else nan,
        "modifier_recall": share(word in said for word in new if word != head),
        "name_recall": share(word in said for word in names),
        "member_recall": share(members),
    }


def head_of(reference: FeatureText) -> str:
    """Return the head of a reference's phrase: "kitchen" in "a large kitchen in the old house".

    The head is the last content word before the first preposition, verb or comma.
    """
    words = FeatureText.of(_COMMA.split(reference.raw, 1)[0]).words if _COMMA.search(reference.raw) else reference.words
    head = ""
    for word in words:
        if head and word in _BEHIND_HEAD:
            return head
        if word not in STOP_WORDS:
            head = word
    return head or reference.content[-1]
