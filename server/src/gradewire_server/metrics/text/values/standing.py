"""How a value stands in its sentence: whether it is denied, or said to come on top of another one."""

import re
from typing import Final

_REACH: Final = 64
"""Characters before a value in which it can be denied."""
_CLAUSE: Final = 96
"""Characters on either side of a value that its clause is looked for in."""
DENIES: Final = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot)|n't|\b(?:rather than|instead of|as opposed to))\b"
    r"(?!\s+(?:only|just|merely|simply|exactly|quite|less|more|fewer|later|earlier|sooner|until|till|before)\b)",
    re.IGNORECASE,
)
"""What denies a value behind it; "not only 5" and "no less than 5" deny nothing."""
_ENDS: Final = re.compile(
    r"[.;:!?,()\n]|\b(?:but|until|till|before|after|since|than|later|because|although|though|while|is|was|are|were)\b",
    re.IGNORECASE,
)
"""What ends the reach of a denial: the clause, another verb, "did not end until"."""
_SIDE_REACH: Final = 24
_SIDES: Final = re.compile(r"\b(?:(before|prior to|earlier than)|after|later than)(?: the)?\s+$", re.IGNORECASE)
_OR: Final = re.compile(r"\b(?:or|nor)\b", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_ON_TOP: Final = re.compile(r"\b(?:another|an? (?:additional|extra|further))\s+\S?$", re.IGNORECASE)
_CLAUSES: Final = re.compile(r"[.,;:!?()\n]\s|\band\b", re.IGNORECASE)
WORD: Final = re.compile(r"[^\W\d_]{4,}")
"""Words that may tell one thing from another."""


def denied(text: str, start: int) -> bool:
    """Whether the value that begins at a place is denied: "not in 1999", "rather than seven"."""
    before = text[max(0, start - _REACH) : start]
    cues = list(DENIES.finditer(before))
    if not cues:
        return False
    between = before[cues[-1].end() :]
    return _ENDS.search(between) is None and (_DIGIT.search(between) is None or _OR.search(between) is not None)


def side(text: str, start: int) -> int:
    """-1 where what is said lies before the date that begins at a place, 1 where behind it, else 0."""
    found = _SIDES.search(text[max(0, start - _SIDE_REACH) : start])
    return 0 if found is None else -1 if found[1] else 1


def on_top(text: str, start: int, end: int) -> frozenset[str] | None:
    """Words of a value's clause, in small letters, where it comes on top of another ("another £5"), else None."""
    before = text[max(0, start - _CLAUSE) : start]
    if _ON_TOP.search(before) is None:
        return None
    clause = _CLAUSES.split(before)[-1] + " " + _CLAUSES.split(text[end : end + _CLAUSE])[0]
    return frozenset(word.lower() for word in WORD.findall(clause))
