"""Answers that do not answer: they say that it cannot be known or found, whatever figure stands behind that."""

import re
from itertools import islice
from typing import Final

from gradewire_server.metrics.calibrated.features.words import Said, folded_words

_MAX_CHARACTERS: Final = 16_384
_OPENING: Final = 240
"""Characters in which an answer begins with a refusal."""
_MOST_SENTENCES: Final = 64

_REFUSAL: Final = re.compile(
    r"\b(?:as an ai|i(?:'m| am) (?:sorry|not|unable)|i (?:do not|don't|cannot|can't|could not|couldn't|am not)|unknown"
    r"|unclear|clarify|more information|no information|not specified|not (?:clear|known|available|sure))\b"
)
"""Phrases of which the feature counts how many there are."""

_CANNOT: Final = (
    r"(?:can ?not|can't|could not|couldn't|unable to|not able to|impossible to|not possible to|no way to)"
    r"(?: be)?(?: \w+)?"
)
_TO_KNOW: Final = (
    r"(?:determin|answer|found|calculat|comput|provid|tell|say|know|identif|verif|confirm|infer|locat|assess|conclud"
    r"|estimat|find)"
)
_DOCUMENT: Final = (
    r"(?:passage|text|document|context|article|stor[iy]|report|table|filing|paragraph|source|data|statement|figure)"
)
_REFUSES: Final = re.compile(
    rf"\b{_CANNOT} {_TO_KNOW}"
    rf"|\b{_DOCUMENT}\w*(?: \w+)? (?:do(?:es)? not|don't|doesn't|did not|didn't) "
    r"|\b(?:(?:is|are|was|were) not|isn't|aren't|wasn't|weren't)(?: \w+)? (?:mentioned|stated|specified|provided"
    r"|disclosed|given|reported|indicated|available|known|clear|enough|sufficient|possible)\b"
    r"|\b(?:no|any|not enough|insufficient) (?:information|data|mention|indication|details|evidence|context)\b"
    r"|\bi (?:do not|don't) (?:actually |really )?(?:know|have)\b|\bi have no\b|\bnot sure\b|\bunanswerable\b"
)
# What comes behind one of these is an answer after all.
_TURN: Final = re.compile(
    r"\b(?:but|however|nevertheless|nonetheless|yet|still|though|although|as of|based on|here|i (?:think|believe)"
    r"|answer is|therefore|thus|likely|probably|(?:should|must|would) be)\b"
)
_NO_TURN: Final = re.compile(r"\b(?:i(?:'m| am) )?sorry,? but\b|\bunfortunately,? but\b")
_SENTENCE_END: Final = re.compile(r"[.!?](?!\w)|\n")


def refusal_features(question: Said, best: Said, answer: Said) -> dict[str, float]:
    """How an answer says that it has none.

    Returns:
        `refusals`: how many phrases of refusal or not knowing an answer has. `refused`: 1 where its beginning says that
        the answer cannot be known, found or given before it has a word of the best reference, and nothing behind takes
        that back; else 0. What it then has of the reference is named, not said. A reference that says so itself cannot
        be refused.
    """
    plain = answer.raw[:_MAX_CHARACTERS].replace("\u2019", "'").casefold()
    return {"refusals": float(len(_REFUSAL.findall(plain))), "refused": float(_refuses(question, best, plain))}


def _refuses(question: Said, best: Said, answer: str) -> bool:
    if not _REFUSES.search(answer, 0, 2 * _OPENING) or _REFUSES.search(best.raw.replace("\u2019", "'").casefold()):
        return False
    known = question.distinct | best.distinct
    new = frozenset(best.content).difference(question.distinct)
    begun, refused = 0, False
    for sentence in islice(_SENTENCE_END.split(_NO_TURN.sub("sorry", answer)), _MOST_SENTENCES):
        phrase = _REFUSES.search(sentence)
        if refused and not phrase and _TURN.search(sentence):
            return False
        if phrase and not refused:
            if begun > _OPENING or not new.isdisjoint(folded_words(sentence[: phrase.start()] or ".")):
                return False
            refused = not known.issuperset(folded_words(phrase[0]))
        elif not refused and not new.isdisjoint(folded_words(sentence or ".")):
            return False
        if refused and phrase and _TURN.search(sentence, phrase.end()):
            return False
        begun += len(sentence) + 1
    return refused
