"""Choose the part of an answer that `correctness` reads: the final claim, or the whole text without its wrapping."""

import re
from typing import Final, NamedTuple

from gradewire_proto import final_answer
from gradewire_proto.final_answer import FinalAnswer, Position
from gradewire_proto.final_answer.types import STRIKES
from gradewire_proto.final_answer.words import any_of
from gradewire_server.metrics.correctness.words import STOP_WORDS

_MARKED: Final = frozenset[Position]({"boxed", "tagged", "json"})
_MOST_WORDS: Final[dict[Position, int]] = {"phrase": 15, "calculation": 40, "correction": 20, "line": 15}
"""Maximum number of words in a text whose claim is taken without a mark or an announcement.

In longer prose, half of these claims cut away the answer: of 44 right answers in EVOUNA, the reference was outside the
claim in 22.
"""
_LEADS: Final = re.compile(
    rf"\W*(?:[^\W\d_]+\s){{0,3}}?(?:{any_of('answer')})\s?(?:(?:{any_of('is')})\s?[:\uff1a]?|[:\uff1a])\s*(?=[^\n]*\w[^\n]*\s*$)",
    re.IGNORECASE,
)
"""An announcement at the beginning of a text of one line."""
_LAYERS: Final = 2
_LONGEST: Final = max(_MOST_WORDS.values())
_ANNOUNCED: Final = re.compile(any_of("answer"), re.IGNORECASE)
_DOLLARS_OF_LATEX: Final = 2
_DOLLAR: Final = "\ue000"
_DEGREES: Final = re.compile(r"\s?\^\{?\\circ\}?")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}\n]{0,200})\}")
_MATHS: Final = re.compile(r"(?<![\w$])\$\$?([^$\n]{1,400}?[^$\s])\$\$?(?![\w$])|\\\((.{1,400}?)\\\)")
_TAGS: Final = re.compile(r"<(b|strong|i|em|u|p|span|div|h[1-6]|code)>([^<>]{0,2000})</\1>", re.IGNORECASE)
_COMPARES: Final = re.compile(r"[<>\u2264\u2265!]=?|=[<>]")
_EXPLAINS: Final = re.compile(
    r"\b(?:because|since|check|proof|verif\w*|indeed|weil|denn|probe|car|parce que|porque)\b|因为", re.IGNORECASE
)
"""Words before a calculation that explains or checks an answer."""
_MARKS: Final = ("\\boxed", "\\fbox", "<", "{", "####", "[/", "\u0336")
_MAY_BE_CUT: Final = re.compile(
    r"[=?!*_`~#→✗✘❌✓\n\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0400-\u04ff\u0600-\u06ff]|[:\u2013\u2014](?=\s)"
    r"|^\W*[\"“”«»„']|\b[a-hA-H]\)|\b(?-i:[B-H])\b|\b(?-i:A)$|n['\u2019]t\b|\b(?:no[nt]?|nein|nicht|kein\w{0,2}|pas"
    r"|n[ãi]o|nie|niet|ni|but|aber|sondern|mais|pero|sino|rather|instead|unlike|statt|vez|lieu|plut[oô]t|actually|wait"
    r"|hold|hang|halt|sorry|strike|scratch|correct(?:ion)?|korrektur|mean|meant|meine|edit|oops|hmm+|[äe]hm?|thought"
    r"|think|guess|wrong|false|falsch|richtig|faux|falso|fait|realidad|besser|mejor|dicho|anzi|aliás|mistake|so|therefore"
    r"|thus|hence|somit|donc|entonces|quindi|answer|antwort|lösung|r[ée]ponses?|respuesta|risposta|resposta|ans|result"
    r"|ergebnis|endergebnis|sure|pardon|perd[oó]n|moment|espera|option|asking|asked)\b"
    r"|\b(?:yet|though|however|ma|mas|maar|turns|really|thinking|say|said|many|people|first|glance|looks?|looked|seem\w*"
    r"|far|muchos|viele|vue|error|also|results|total|all|choice)\b(?=.*[.,;]\s)",
    re.IGNORECASE,
)
"""A pattern that every text with a final answer apart from the whole text is likely to match; it is fast."""
_MOST_BEFORE: Final = 60
_LEAST_KEPT: Final = 0.6
"""Minimum share of a text that is left without its wrapping, unless tags or tokens stand before it."""


class Claim(NamedTuple):
    """The claim of an answer, and where it comes from.

    Attributes:
        text: The claim.
        around: The text that the claim was taken from without a mark or an announcement, or "".
    """

    text: str
    around: str = ""


def claim_of(prediction: str) -> Claim:
    """Return an answer's claim.

    The claim is the final answer if a box, a tag, a JSON value or "the answer is" marks it, or if the answer is short.
    Otherwise the claim is the whole text without special tokens, thinking, emphasis and courtesies.
    """
    prediction = _without_marks(prediction)
    claim = _searched(prediction, _LAYERS)
    led = _LEADS.match(prediction) if 1 < len(claim.text) < len(prediction) else None
    # Behind an announcement that opens the text, read what follows as if it stood alone.
    return claim if led is None else _searched(prediction[led.end() :], _LAYERS)


def _searched(text: str, layers: int) -> Claim:
    """Return the claim in a text; search marked claims again, at most `layers` times."""
    if not _may_be_cut(text):
        return Claim(text)
    found = final_answer.find_final_answer(text)  # imported here first, which takes a second or two
    if not _has_words(found.text) or (found.position == "calculation" and _is_no_result(text, found.start or 0)):
        return Claim(text)
    if found.position == "whole":
        kept = len(found.text) >= _LEAST_KEPT * len(text.strip()) or "<" in text
        return Claim(found.text if kept else text)
    if found.position in _MARKED:
        return _searched(found.text, layers - 1) if layers else Claim(found.text)
    if _is_announced(text, found):
        return Claim(found.text)
    most = _MOST_WORDS[found.position]
    return Claim(found.text, text) if len(text.split(None, most)) <= most else Claim(text)


def _has_words(claim: str) -> bool:
    """Return True if a claim has a number, a letter alone, or a word that is not a small word."""
    words = claim.casefold().split()
    return any(map(str.isalnum, claim)) and (
        len(claim.strip()) == 1 or any(word.strip(".,") not in STOP_WORDS for word in words)
    )


def _is_no_result(prediction: str, start: int) -> bool:
    """Return True for a calculation that explains or checks an answer, and for a comparison."""
    return _EXPLAINS.search(prediction, 0, start) is not None or _COMPARES.search(prediction) is not None


def _without_marks(text: str) -> str:
    """Return a text without struck words, tags of HTML around words, quotes around it, and LaTeX's marks in numbers."""
    plain = final_answer.without_struck_text(text) if any(mark in text for mark in STRIKES) else text
    if "<" in plain:
        plain = _TAGS.sub(r"\2", plain)
    stripped = plain.strip()
    if (
        len(stripped) > 2
        and stripped[0] in "\"'`"
        and stripped[-1] == stripped[0]
        and stripped[0] not in stripped[1:-1]
    ):
        plain = stripped[1:-1]
    plain = _without_latex(plain)
    return plain if plain.strip() else text


def _without_latex(text: str) -> str:
    """Return a text without the marks that LaTeX needs in numbers and units: "$9{,}500$" is "9,500"."""
    if "\\" not in text and "{,}" not in text and text.count("$") < _DOLLARS_OF_LATEX:
        return text
    plain = text.replace("{,}", ",").replace("\\$", _DOLLAR).replace("\\%", "%").replace("\\,", "")
    plain = _DEGREES.sub("\u00b0", _TEXT.sub(r"\1", plain))
    plain = _MATHS.sub(lambda match: match[1] or match[2], plain)
    return plain.replace(_DOLLAR, "$")


def _may_be_cut(prediction: str) -> bool:
    """Return False for plain prose, for which the search would take ten times as long as this."""
    if any(mark in prediction for mark in _MARKS):
        return True
    if len(prediction.split(None, _LONGEST)) > _LONGEST:
        return _ANNOUNCED.search(prediction) is not None
    return _MAY_BE_CUT.search(prediction) is not None


def _is_announced(prediction: str, found: FinalAnswer) -> bool:
    if found.position != "phrase" or found.start is None:
        return False
    return _ANNOUNCED.search(prediction, max(0, found.start - _MOST_BEFORE), found.start) is not None
