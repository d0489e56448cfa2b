"""Porter's stemmer with NLTK's corrections, which rouge-score and NLTK's METEOR use.

Source: Porter 1980, "An algorithm for suffix stripping" (Program 14), steps 1a to 5b, with the corrections of NLTK's
default mode. Importing NLTK would need seconds and up to 90 MB.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

LONGEST_STEMMED_CHARACTERS: Final = 64
"""Maximum length of a word to stem."""
_REMEMBERED_STEMS: Final = 65_536

_VOWELS: Final = frozenset("aeiou")


def _table(rules: str) -> Mapping[str, str]:
    """Parse "ENDING>REPLACEMENT …", where an ending may be a whole word."""
    return dict(rule.split(">") for rule in rules.split())


_IRREGULAR: Final = _table(
    "skies>sky sky>sky dying>die lying>lie tying>tie news>news innings>inning inning>inning outings>outing "
    "outing>outing cannings>canning canning>canning howe>howe proceed>proceed exceed>exceed succeed>succeed"
)
_PLURALS: Final = _table("sses>ss ies>i ss>ss s>")
_DOUBLE_ENDINGS: Final = _table(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous ization>ize "
    "ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble fulli>ful"
)
_QUALITIES: Final = _table("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_REMAINING: Final = _table(
    "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive> ize>"
)


def _shape(letters: str) -> str:
    """Return "c" or "v" for each letter; "y" is a vowel after a consonant, and non-letters are consonants."""
    shape = ""
    for letter in letters:
        shape += "v" if letter in _VOWELS or (letter == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(letters: str) -> int:
    """Return Porter's m, the number of vowel-consonant sequences."""
    return _shape(letters).count("vc")


def _is_short(letters: str) -> bool:
    """Return Porter's *o: True if the letters end with a consonant, a vowel, and a consonant other than w, x or y.

    In NLTK, *o also holds for words that consist of one vowel and one consonant.
    """
    shape = _shape(letters)
    return shape == "vc" or (shape.endswith("cvc") and letters[-1] not in "wxy")


def _ending(word: str, endings: Mapping[str, str]) -> str:
    for length in range(min(len(word), max(map(len, endings))), 0, -1):
        if word[-length:] in endings:
            return word[-length:]
    return ""


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) == len("dies"):
        return word[:-1]
    ending = _ending(word, _PLURALS)
    return word.removesuffix(ending) + _PLURALS[ending] if ending else word


def _past_or_progressive(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("died") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    stem = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if stem == word or "v" not in _shape(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if stem[-2:] == 2 * stem[-1] and _shape(stem).endswith("c"):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _is_short(stem) else stem


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and len(word) > len("by") and _shape(word)[-2] == "c" else word


def _double_ending(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        word = word[:-2]  # "rationalli" has a second ending, "ational"
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replaced(word, _DOUBLE_ENDINGS)


def _replaced(word: str, endings: Mapping[str, str]) -> str:
    ending = _ending(word, endings)
    stem = word.removesuffix(ending)
    return stem + endings[ending] if ending and _measure(stem) else word


def _remaining_ending(word: str) -> str:
    ending = _ending(word, _REMAINING)
    stem = word.removesuffix(ending)
    if not ending or _measure(stem) <= 1 or (ending == "ion" and stem[-1] not in "st"):
        return word
    return stem


def _final_e(word: str) -> str:
    stem = word.removesuffix("e")
    measure = _measure(stem)
    return stem if measure > 1 or (measure == 1 and not _is_short(stem)) else word


def _final_ll(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


_STEPS: Final[tuple[Callable[[str], str], ...]] = (
    _plural,
    _past_or_progressive,
    _final_y,
    _double_ending,
    partial(_replaced, endings=_QUALITIES),
    _remaining_ending,
    _final_e,
    _final_ll,
)
_SHORTEST_STEMMED: Final = 3


@lru_cache(maxsize=_REMEMBERED_STEMS)
def _stem_of(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < _SHORTEST_STEMMED:
        return word
    for step in _STEPS:
        word = step(word)
    return word


def stem(word: str) -> str:
    """Return the stem of a lower-case word."""
    return _stem_of(word) if len(word) <= LONGEST_STEMMED_CHARACTERS else word
