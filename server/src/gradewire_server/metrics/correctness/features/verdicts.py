"""Yes and no: what a reference says of its question, and what an answer says."""

import re
from collections.abc import Sequence
from math import nan
from typing import Final

from gradewire_server.metrics.correctness.features.contradictions import NEGATIONS, clause_words
from gradewire_server.metrics.correctness.features.words import Said
from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict

_MOST_REFERENCES: Final = 32
_EITHER_WAY: Final = NEGATIONS | {"mind", "false"}
_BEGIN: Final = 400
"""Characters in which a text says yes or no."""
_LED: Final = re.compile(
    r"[\s'\"*_`\u2018\u201c-]*(?:(?:the |my )?answer(?: is)?\b[\s:*_'\"]*)?"
    r"(?:(?P<yes>yes|yeah|yep|yup|true|correct|affirmative)|(?P<no>no|nope|nah|false|incorrect))\b"
    r"(?:\s*(?:[.,;:!*'\"\n\u2013\u2014\u2019\u201d(-]|$)"
    r"|\s+(?:because|since|as|it|they|he|she|this|that|there|we|you|i)\b)"
)
_CLAUSE_END: Final = re.compile(r"[.,;:!?\n]|\b(?:because|since|but|although|however)\b")


def led_verdict(text: str) -> bool | None:
    """The yes (True) or no (False) that a text begins with, or is; None where it begins with neither.

    "No, it does not", "yes because", "False. The ..." begin with one; "No one knows", "no water is lost", "true love"
    and "Yes Minister" do not.
    """
    begin = text[:_BEGIN].casefold()
    led = _LED.match(begin)
    return led["yes"] is not None if led else leading_verdict(begin)


def verdict_features(question: Said, references: Sequence[Said], answer: Said) -> dict[str, float]:
    """How the yes or no of an answer fits that of its references, of which the best one is the first.

    Returns:
        `verdict`: 1 where both say the same, 0 where they do not, NaN where one of them says neither; behind a question
        that asks for yes or no, a first clause with a negation says no. `verdict_conflict`: 1 where a reference that
        begins with yes or no meets an answer that begins with the other one, and no other reference begins as it does.
        Behind a question with a negation, or with "mind", yes and no may mean the same, and nothing is in conflict.
    """
    best = references[0]
    ours, asks = led_verdict(best.raw), asks_yes_or_no(question.raw) and " or " not in question.raw
    if ours is None and not asks:
        return {"verdict": nan, "verdict_conflict": 0.0}
    theirs = led_verdict(answer.raw)
    conflict = (
        ours is not None
        and theirs is (not ours)
        and _EITHER_WAY.isdisjoint(clause_words(question.raw))
        and all(led_verdict(other.raw) is not theirs for other in references[1:_MOST_REFERENCES])
    )
    if (ours is None) != (theirs is None) and asks:
        ours = _says_no(best.raw) if ours is None else ours
        theirs = _says_no(answer.raw) if theirs is None else theirs
    return {
        "verdict": nan if ours is None or theirs is None else float(ours == theirs),
        "verdict_conflict": float(conflict),
    }


def _says_no(text: str) -> bool | None:
    """False where the first clause has a negation; else None."""
    first = _CLAUSE_END.split(text[:_BEGIN], 1)[0]
    return None if NEGATIONS.isdisjoint(clause_words(first)) else False
