"""Reads a label from prose: chat models put it in bold, or announce it, where they were asked for nothing but it."""

import re
from collections.abc import Sequence
from typing import Final

MARKUP: Final = '*_`~#>"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
"""Characters that chat models put around a label, or before its line."""
_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_DASHES: Final = "\N{EN DASH}\N{EM DASH}"
_ANNOUNCING: Final = (
    "verdict|rating|grade|score|judge?ment|similarity|evaluation|assessment|conclusion|classification|label"
)
_BEFORE_IT: Final = r"(?:(?:the|my|our|this|so|thus|hence|therefore|final|overall|both|two|student's),? ){0,4}"
# A question mark would ask, a colon would begin what it says ("Correct: Paris"), and a word would go on ("correct only
# if").
_OVER: Final = rf"(?= ?(?:[.!;,)(\n{_DASHES}]|- ))"


def announced_label(text: str, options: Sequence[str], opening: str, *, whole: bool) -> int | None:
    """The one label that a reply gives as its verdict; None where that is not certain.

    It is certain where, without markup, the reply begins with the label, or a sentence of it does behind "The verdict:"
    or the like or behind the words of the opening; where its sentence, or a part of it, ends there; and where no other
    label stands anywhere in the reply.

    Args:
        text: The reply.
        options: Labels.
        opening: What the judge was asked to begin with; "" where it went on from it.
        whole: Whether the reply ended by itself: one that was cut may have gone on with another label.
    """
    markup = "".join(set(MARKUP).difference(*options))
    plain = _plain(text, markup)
    labels = [_plain(option, markup) for option in options]
    named = {
        index for index, label in enumerate(labels) if label and re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain)
    }
    if len(named) != 1:
        return None
    (index,) = named
    if not whole and _begins_another(plain, labels, index):
        return None
    end = rf"(?:{_OVER}|\Z)" if whole else _OVER
    label = rf"{re.escape(labels[index])}(?![\w/%-]|[.,]\d){end}"
    announced = rf"(?:(?:{_ANNOUNCING})(?: is\b)? ?[:={_DASHES}-]? ?{_opening(opening, markup)})"
    found = re.search(rf"\A{label}|(?:\A|\n|[.!] ){_BEFORE_IT}{announced}{label}", plain)
    return index if found else None


def _opening(opening: str, markup: str) -> str:
    """Its last words, behind which a judge puts the label in a sentence of its own too ("The answer is correct.")."""
    words = _plain(opening, markup).rstrip(":").split()[-2:]
    return rf"|{re.escape(' '.join(words))} ?:? ?" if words else ""


def _begins_another(plain: str, labels: Sequence[str], index: int) -> bool:
    last = plain.rpartition(" ")[2].rpartition("\n")[2]
    return bool(last) and any(label.startswith(last) for place, label in enumerate(labels) if place != index)


def _plain(text: str, markup: str) -> str:
    """In small letters, without markup, with one blank or one end of line between words."""
    bare = text.casefold().replace(_APOSTROPHE, "'").translate(dict.fromkeys(map(ord, markup)))
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
