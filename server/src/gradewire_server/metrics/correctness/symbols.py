"""Compare what must be the same sign for sign: matrices, intervals, points, and letters that stand for themselves."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from gradewire_server.metrics.correctness.words import STOP_WORDS, FeatureText

_MAX_CHARACTERS: Final = 1_024
_MOST_STRUCTURES: Final = 16
_MOST_REFERENCES: Final = 8
_ENVIRONMENT: Final = re.compile(r"\\(?:begin|end)\{[a-zA-Z*]{1,16}\}")
_ROW_END: Final = re.compile(r"\\\\")
_SIZE: Final = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])")
_STRUCTURE: Final = re.compile(r"[\[(][^\w\n]{0,8}[^\n]{0,400}[\])]")
_SEPARATED: Final = re.compile(r"[^\s,;&][^,;&\n]*[,;&][^,;&\n]*[^\s,;&]")
_LONGEST_FORMULA: Final = 64
_SIGNS: Final = re.compile("[<>+\u2264\u2265\u00b1]")
_ALL_SIGNS: Final = re.compile("[-<>+\u2264\u2265\u00b1*/=^|!~]")
_LETTER: Final = re.compile(r"(?<![\w.'])[A-Z](?![\w'])(?!\.\s?[A-Z])")
_ARTICLE_OR_PRONOUN: Final = re.compile(r"(?:^|[.!?]\s+)A(?=\s+[a-z])|\bI(?=\s+[a-z])")


def symbol_altered(references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if an answer gives a reference's structure or letter in another form, 0 if not.

    Structures are numbers or names in brackets with separators: "(0, 1.5)" for "(0, 1)", or a matrix with other rows.
    Formulas may not differ in their signs alone. Letters are capitals that stand alone: "a vitamin" for "Vitamin A". An
    answer without capitals is no conflict if it has the reference word for word.
    """
    raw = answer.raw[:_MAX_CHARACTERS]
    found = [_is_altered(reference.raw, raw, reference, answer) for reference in references[:_MOST_REFERENCES]]
    return float(bool(found) and all(found))


def _is_altered(reference: str, raw: str, wanted: FeatureText, answer: FeatureText) -> bool:
    if _has_other_signs(reference, raw):
        return True
    ours = _structures(reference)
    if len(ours) == 1 and (theirs := _structures(raw)) and _core(reference) in ours:
        return ours.isdisjoint(theirs)
    return _lacks_letter(reference, raw, wanted, answer)


def _has_other_signs(reference: str, raw: str) -> bool:
    """Return True if a formula differs only in its signs: "x < 3" for "x > 3", "2 - 3i" for "2 + 3i"."""
    ours, theirs = ("".join(text.split()).strip("$.").replace("\u2212", "-").casefold() for text in (reference, raw))
    if len(ours) > _LONGEST_FORMULA or ours == theirs or not _SIGNS.search(ours + theirs):
        return False
    plain, said = (_ALL_SIGNS.sub("", text) for text in (ours, theirs))
    return bool(plain) and plain == said


def _core(text: str) -> str:
    return next(iter(_structures(text.strip(" .$"))), "")


def _structures(text: str) -> frozenset[str]:
    """Return the outermost structures of a text in one notation, without blanks."""
    if not any(sign in text for sign in "[(") and "\\begin" not in text:
        return frozenset()
    plain = _ENVIRONMENT.sub(lambda match: "[[" if "begin" in match[0] else "]]", text)
    plain = _SIZE.sub("", _ROW_END.sub("],[", plain)).replace("&", ",").replace("\\infty", "\u221e").replace("\\", "")
    found = (match[0] for match in islice(_STRUCTURE.finditer(plain), _MOST_STRUCTURES))
    return frozenset("".join(each.split()) for each in found if _SEPARATED.search(each[1:-1]))


def _lacks_letter(reference: str, raw: str, wanted: FeatureText, answer: FeatureText) -> bool:
    letters = {match[0] for match in _LETTER.finditer(_ARTICLE_OR_PRONOUN.sub(" ", reference))}
    if not letters or len(wanted.words) > len(letters) + 1:
        return False
    if not any(map(str.isupper, raw)):
        return wanted.spaced not in answer.spaced
    said = {match[0] for match in _LETTER.finditer(_ARTICLE_OR_PRONOUN.sub(" ", raw))}
    # Without the letter, an answer that has the other words is another member of the kind.
    others = [word for word in wanted.words if word not in STOP_WORDS and word.upper() not in letters]
    return not letters <= said and (not others or any(word in answer.distinct for word in others))
