"""Whether an example teaches what it should."""

import unicodedata

from gradewire_train.examples import Example
from gradewire_train.texts.draw import normal

_FULL_STOPS = (".", "\N{IDEOGRAPHIC FULL STOP}")
_SHOWN_CHARACTERS = 40


def sound(example: Example) -> bool:
    """Whether a drawn example is to be kept: a positive in other words, and negatives, none of which is like either.

    Texts are compared as `normal` has them, without accents, articles and punctuation: there are others to draw. What
    somebody wrote as an example is held to `contradiction` alone.
    """
    right = {normal(example.anchor), normal(example.positive)}
    return bool(example.negatives) and not contradiction(example) and right.isdisjoint(map(normal, example.negatives))


def contradiction(example: Example) -> str:
    """What in an example would teach nothing, or the opposite of what it should; "" where nothing does.

    A negative is the right answer where it differs in case, blanks, Unicode's form (composed or not) or a full stop at
    the end only. Other signs may be all that tells answers apart: "C++" and "C#", "5" and "-5", "A+" and "A-".
    """
    if not all(each.strip() for each in example.answers):
        return "anchor, positive and negatives should not be blank"
    if example.anchor == example.positive:
        return "anchor and positive are the same text, from which nothing is learnt"
    right = {_form(example.anchor), _form(example.positive)}
    for negative in example.negatives:
        if _form(negative) in right:
            shown = negative[:_SHOWN_CHARACTERS]
            return f"the negative {shown!r} is the anchor or the positive but for case, blanks or a full stop"
    return ""


def _form(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    line = " ".join(folded.split())
    return line[:-1].rstrip() if line.endswith(_FULL_STOPS) else line
