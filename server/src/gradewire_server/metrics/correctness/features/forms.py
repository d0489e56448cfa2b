"""Other forms in which an answer has a word of its reference.

Initials for a name, a name for its initials, two words written as one or one as two, and the plural of a word that the
dictionary does not know.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from gradewire_server.metrics.correctness.features.words import STOP_WORDS, Said
from gradewire_server.metrics.text.lemmas import known_words

_INITIALS: Final = re.compile(r"(?<![\w.])(?:[A-Z]\.? ?){1,5}[A-Z](?:\b|\.)(?![\w.])")
# A name of several words, with the small words that stand inside names.
_NAME: Final = re.compile(r"[A-Z][\w']*(?:[ -](?:(?:of|the|and|for|in|de|la) )*[A-Z][\w']*)+")
_LEAST_GLUED: Final = 5
_FEWEST_INITIALS: Final = 3
_MOST_INITIALS: Final = 6
_SHORT_ANSWER: Final = 8
"""Words of an answer that may be a name as a whole, however it is written."""
_MOST_WORDS: Final = 64
"""Words of a reference that other forms are looked for."""


def found_forms(references: Sequence[Said], answer: Said) -> frozenset[str]:
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


def _parts(reference: Said, said: frozenset[str]) -> list[str]:
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


def _named(reference: Said, lacking: Sequence[str], initials: frozenset[str], names: frozenset[str]) -> list[str]:
    """The words of a name of which the answer has the initials, or the initials for which it has the name."""
    words = reference.content[:_MOST_WORDS]
    if _FEWEST_INITIALS <= len(words) <= _MOST_INITIALS and "".join(word[0] for word in words) in initials:
        return list(words)
    return [word for word in _written_initials(reference.raw) if word in lacking and word in names]


def _written_initials(text: str) -> frozenset[str]:
    """What a text writes in capitals, with stops or without, in lower case: "U.S.A." and "USA" are "usa"."""
    found = (re.sub(r"[. ]", "", match[0]).lower() for match in _INITIALS.finditer(text))
    return frozenset(each for each in found if len(each) >= _FEWEST_INITIALS)


def _initials_of_names(answer: Said) -> Iterator[str]:
    """Initials of the names in an answer, with and without the small words in them."""
    for match in _NAME.finditer(answer.raw):
        words = re.split(r"[ -]", match[0])[: 2 * _MOST_INITIALS]
        words = words[1:] if words[0].lower() in STOP_WORDS else words
        yield "".join(word[0] for word in words).lower()
        yield "".join(word[0] for word in words if word[0].isupper()).lower()
    if len(answer.words) <= _SHORT_ANSWER:
        yield "".join(word[0] for word in answer.content)
