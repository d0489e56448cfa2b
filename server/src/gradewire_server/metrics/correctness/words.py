"""Words of an item as features compare them: how much of a reference an answer says, and in which other forms."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

from gradewire_server.metrics.text.normalise import known_words, lemmatizer
from gradewire_server.metrics.text.words import split_words

MAX_CHARACTERS: Final = 16_384
"""Characters of a prediction or question that are read, white space before them left out."""
MAX_WORDS: Final = 2_048
"""Words among them."""
MAX_REFERENCE_CHARACTERS: Final = 512
"""Characters of one reference that features are made of."""

STOP_WORDS: Final = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "by", "with", "from", "and", "or", "is", "are", "was",
    "were", "be", "been", "it", "its", "this", "that", "these", "those", "as", "into", "about", "between", "his", "her",
    "their", "he", "she", "they", "we", "who", "which", "what", "when", "where", "how", "not", "no", "do", "does",
    "did", "has", "have", "had", "than", "then", "there", "also", "one", "us",
})  # fmt: skip

FUNCTION_WORDS: Final = STOP_WORDS | {
    "after", "against", "along", "among", "around", "because", "before", "behind", "beneath", "beside", "but", "can",
    "could", "during", "each", "every", "may", "might", "must", "near", "off", "onto", "over", "since", "so", "some",
    "such", "through", "toward", "under", "until", "up", "upon", "very", "will", "within", "without", "would", "you",
}  # fmt: skip
"""Stop words, and further words that say how others belong together."""

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
# Not "second", which is a unit more often.
_ORDINAL: Final = (
    "first third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS: Final[dict[str, float]] = {
    **{word: float(value) for value, word in enumerate(_SMALL.split())},
    **dict(zip(_ORDINAL.split(), (1.0, *map(float, range(3, 21))), strict=True)),
    **{word: 10.0 * value for value, word in enumerate(_TENS.split(), 2)},
    "once": 1.0,
    "twice": 2.0,
    "double": 2.0,
    "pair": 2.0,
    "triple": 3.0,
    "dozen": 12.0,
    "half": 0.5,
}
"""Values of number words."""
# Not "one", which is a pronoun more often.
_DIGITS: Final = {word: f"{NUMBER_WORDS[word]:g}" for word in f"{_SMALL} {_ORDINAL} {_TENS}".split() if word != "one"}
_ORDINAL_DIGITS: Final = re.compile(r"(?<!\d)(\d{1,4})(?:st|nd|rd|th)\b")

_KEPT_TEXTS: Final = 64
"""Texts whose words are kept, for several features read each text of an item; 12 MB where all have MAX_CHARACTERS."""
_MOST_EXPANSION: Final = 4
_STOP_WEIGHT: Final = 0.05
_SHORT_WEIGHT: Final = 0.6
_SHORT: Final = 3
_ECHO_SHARE: Final = 0.2
_MARKS: Final = re.compile("[\u0300-\u036f]")
# Letters whose stroke or hook is no mark that normalisation takes off.
_LETTERS: Final = str.maketrans({
    "\u00e6": "ae", "\u0153": "oe", "\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d", "\u00fe": "th",
    "\u0131": "i", "\u0127": "h", "\u014b": "ng",
})  # fmt: skip
_INITIALS: Final = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")
_HALF: Final = "1\u20442"
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_APOSTROPHE: Final = re.compile("['\u2018\u2019`](?:s\\b)?")
# What a reference adds to its answer: "ABBA (he directed their films)", "turlough, or turlach".
_ASIDE: Final = re.compile(r"\([^()]*\)|,? or .*", re.DOTALL)
_PART: Final = re.compile(r",| and |&|;")


def folded(text: str) -> str:
    """Case-folded, compatibility forms and digits of all scripts replaced, without Latin, Greek and Cyrillic accents.

    Apostrophes go with their s, commas within numbers ("1,000"), stops between initials ("U.S.A."); "\u00bd" is "half".
    At most four times as long as the text: one character may stand for eighteen.
    """
    plain = unicodedata.normalize("NFKD", text)[: _MOST_EXPANSION * len(text)]
    if not plain.isascii():
        plain = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), _MARKS.sub("", plain))
        plain = plain.replace(_HALF, " half ")
    plain = plain.casefold()
    if not plain.isascii():
        plain = plain.translate(_LETTERS)
    if "." in plain:
        plain = _INITIALS.sub(lambda initials: f"{initials[0].replace('.', '')} ", plain)
    return _THOUSANDS.sub("", _APOSTROPHE.sub("", plain))


@lru_cache(maxsize=_KEPT_TEXTS)
def folded_words(text: str) -> tuple[str, ...]:
    """The first words of a folded text, as lemmas, number words as digits; at least one of what is not blank."""
    lemma, digits = lemmatizer(), _DIGITS.get
    words = split_words(_ORDINAL_DIGITS.sub(r"\1", folded(text)))[:MAX_WORDS] or text.split()[:MAX_WORDS]
    return tuple(digits(word) or lemma(word, word) for word in words)


@dataclass(frozen=True)
class FeatureText:
    """A text as features read it.

    Attributes:
        raw: Its beginning, at most MAX_CHARACTERS of it.
        words: Folded.
    """

    raw: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str, most: int = MAX_CHARACTERS) -> "FeatureText":
        """Reads the first `most` characters of a text that may begin with any number of blanks."""
        begin = text.lstrip()[:most]
        return cls(begin, folded_words(begin))

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Each word once."""
        return frozenset(self.words)

    @cached_property
    def spaced(self) -> str:
        """The words between single blanks, with one at both ends: " a b " holds " b " and not " c"."""
        return f" {' '.join(self.words)} "

    @cached_property
    def content(self) -> tuple[str, ...]:
        """Its words that are no stop words, in order; all of them where there is no other."""
        return tuple(word for word in self.words if word not in STOP_WORDS) or self.words


def core_of(reference: FeatureText) -> FeatureText:
    """A reference without its asides in brackets and its second spellings behind "or"; itself where nothing is left."""
    text = _ASIDE.sub("", reference.raw)
    return reference if text == reference.raw or not text.strip() else FeatureText(text, folded_words(text))


def parts_of(reference: FeatureText) -> list[FeatureText]:
    """Parts of a reference between commas, semicolons, "&" and "and"; at least one."""
    parts = [part for part in _PART.split(reference.raw) if part.strip()]
    return [FeatureText(part, folded_words(part)) for part in parts] if len(parts) > 1 else [reference]


def weight(word: str, asked: Collection[str]) -> float:
    """What a word of a reference proves by standing in an answer, 0.01 to 1; `asked` are the question's words."""
    if word in STOP_WORDS:
        return _STOP_WEIGHT
    full = 1.0 if len(word) > _SHORT or word.isdigit() else _SHORT_WEIGHT
    return full * _ECHO_SHARE if word in asked else full


def recall(reference: FeatureText, answer: Collection[str], asked: Collection[str]) -> float:
    """Weighed share of a reference's distinct words that stand in an answer, 0 to 1."""
    found = whole = 0.0
    for word in dict.fromkeys(reference.words):  # in order: sums are the same on every machine
        worth = weight(word, asked)
        whole += worth
        found += worth if word in answer else 0.0
    return found / whole if whole else 0.0


def share(found: Iterable[bool]) -> float:
    """Share of the flags that are true; NaN where there are none."""
    flags = list(found)
    return sum(flags) / len(flags) if flags else float("nan")


_WRITTEN_INITIALS: Final = re.compile(r"(?<![\w.])(?:[A-Z]\.? ?){1,5}[A-Z](?:\b|\.)(?![\w.])")
# A name of several words, with the small words that stand inside names.
_NAME: Final = re.compile(r"[A-Z][\w']*(?:[ -](?:(?:of|the|and|for|in|de|la) )*[A-Z][\w']*)+")
_LEAST_GLUED: Final = 5
_FEWEST_INITIALS: Final = 3
_MOST_INITIALS: Final = 6
_SHORT_ANSWER: Final = 8
"""Words of an answer that may be a name as a whole, however it is written."""
_MOST_WORDS: Final = 64
"""Words of a reference that other forms are looked for."""


def found_forms(references: Sequence[FeatureText], answer: FeatureText) -> frozenset[str]:
    """The words of an answer, and those of its references that it has in another form.

    Args:
        references: Each bounded, as is their number.
        answer: The prediction.
    """
    said = answer.distinct
    more: set[str] = set()
    missing = {
        reference.raw: lacking
        for reference in references
        if (lacking := [word for word in reference.content[:_MOST_WORDS] if word not in said])
    }
    if not missing:
        return said
    glued = frozenset(one + other for one, other in pairwise(answer.words) if _can_be_glued(one, other))
    initials, names = _written_initials(answer.raw), frozenset(_initials_of_names(answer))
    for reference in references:
        words = missing.get(reference.raw, [])
        if words:
            more.update(word for word in words if word in glued or _plural(word, said))
            more.update(_parts(reference, said))
            more.update(_named(reference, words, initials, names))
    return said | more if more else said


def _parts(reference: FeatureText, said: frozenset[str]) -> list[str]:
    """Neighbouring words of a reference that an answer writes as one."""
    pairs = pairwise(reference.words[:_MOST_WORDS])
    return [word for pair in pairs if _can_be_glued(*pair) and "".join(pair) in said for word in pair]


def _can_be_glued(one: str, other: str) -> bool:
    """Whether two words may be written as one: long enough together, or initials of a name ("J. K.", "JK")."""
    return len(one) + len(other) >= _LEAST_GLUED or (len(one) == len(other) == 1 and (one + other).isalpha())


def _plural(word: str, said: frozenset[str]) -> bool:
    """Of words in the dictionary lemmas are compared already."""
    if not word.isalpha() or len(word) < _LEAST_GLUED - 1 or word in known_words():
        return False
    return f"{word}s" in said or f"{word}es" in said or (word.endswith("s") and word[:-1] in said)


def _named(
    reference: FeatureText, lacking: Sequence[str], initials: frozenset[str], names: frozenset[str]
) -> list[str]:
    """The words of a name of which the answer has the initials, or the initials for which it has the name."""
    words = reference.content[:_MOST_WORDS]
    if _FEWEST_INITIALS <= len(words) <= _MOST_INITIALS and "".join(word[0] for word in words) in initials:
        return list(words)
    return [word for word in _written_initials(reference.raw) if word in lacking and word in names]


def _written_initials(text: str) -> frozenset[str]:
    """What a text writes in capitals, with stops or without, in lower case: "U.S.A." and "USA" are "usa"."""
    found = (re.sub(r"[. ]", "", match[0]).lower() for match in _WRITTEN_INITIALS.finditer(text))
    return frozenset(each for each in found if len(each) >= _FEWEST_INITIALS)


def _initials_of_names(answer: FeatureText) -> Iterator[str]:
    """Initials of the names in an answer, with and without the small words in them."""
    for match in _NAME.finditer(answer.raw):
        words = re.split(r"[ -]", match[0])[: 2 * _MOST_INITIALS]
        words = words[1:] if words[0].lower() in STOP_WORDS else words
        yield "".join(word[0] for word in words).lower()
        yield "".join(word[0] for word in words if word[0].isupper()).lower()
    if len(answer.words) <= _SHORT_ANSWER:
        yield "".join(word[0] for word in answer.content)
