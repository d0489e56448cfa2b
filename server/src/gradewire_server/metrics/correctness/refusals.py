"""Find answers that refuse to answer."""

import re
from collections.abc import Sequence
from typing import Final

from gradewire_server.metrics.correctness.words import FeatureText, folded_words, plain

_MAX_CHARACTERS_BEFORE_REFUSAL: Final = 240

_COUNTED_PHRASES: Final = re.compile(
    r"\b(?:as an ai|i(?:'m| am) (?:sorry|not|unable)|i (?:do not|don't|cannot|can't|could not|couldn't|am not)|unknown"
    r"|unclear|clarify|more information|no information|not specified|not (?:clear|known|available|sure))\b"
)
_IN_EACH_REFUSAL: Final = ("i ", "i'm", "as an ai", "unknown", "unclear", "clarify", "information", "not ")
"""Substrings for a first search, which is ten times as fast as the pattern. A refusal has at least one of them."""

_CANNOT: Final = (
    r"(?:can ?not|can't|could not|couldn't|(?:am |are |is |was )?(?:unable|not able|impossible|not possible)"
    r" to"
    r"|(?:there is )?no way to)"
)
_TO_KNOW: Final = (
    r"(?:determin|answer|found|calculat|comput|provid|tell|say|know|identif|verif|confirm|infer|locat|assess|conclud"
    r"|estimat|find|access|give)"
)
# A third person is not the subject of a refusal: "she couldn't find her brother", "the treasure could not be found".
_NOBODY: Final = (
    r"(?:^\W*|[,;:(\u2013\u2014]\s*|\b(?:i|i'm|we|we're|it|it's|one|but|and|is|therefore|so|sorry|unfortunately) )"
)
_DOCUMENT: Final = (
    r"(?:passage|text|document|context|article|stor[iy]|report|table|filing|paragraph|source|data|statement|figure"
    r"|excerpt|information|question|image|picture|photo|input)"
)
_TELLS: Final = (
    r"(?:state|mention|say|provide|specify|give|disclose|report|contain|include|indicate|list|have|show|explain|tell"
    r"|discuss|address|offer|identify|break|describe|detail|reveal|present)"
)
_KNOWLEDGE: Final = r"(?:information|data|access|knowledge|idea|way|details|answer|context|mention|record|clue)"
_REFUSES: Final = re.compile(
    rf"{_NOBODY}{_CANNOT} (?:\w+ )?{_TO_KNOW}"
    rf"|\b{_CANNOT} be (?:\w+ )?(?:determin|answer|calculat|comput|identif|verif|confirm|infer|assess|conclud|estimat)"
    rf"|\b{_DOCUMENT}\w*(?: \w+)? (?:do(?:es)? not|don't|doesn't|did not|didn't) (?:\w+ )?{_TELLS}\b"
    r"|\b(?:(?:is|are|was|were) not|isn't|aren't|wasn't|weren't)(?: \w+)? (?:mentioned|stated|specified|disclosed"
    rf"|(?:provided|given|reported|indicated|available|shown|included|visible|clear)(?: \w+)? (?:in|by|from|on) the"
    rf" (?:\w+ )?{_DOCUMENT})\b"
    r"|\b(?:information|data|details|context|evidence) (?:(?:is|are) not|isn't|aren't)\b"
    r"|\b(?:(?:it|this|that) (?:(?:is|was) not|isn't|wasn't)|it's not)(?: \w+)? (?:known|clear)"
    r"(?: exactly)?(?: from the \w+)? (?:whether|if|from|what|who|how|when|which|where)\b"
    r"|\b(?:no|not enough|insufficient|not have any|n't have any|not (?:find|provide|give|contain) any"
    r"|n't (?:find|provide|give|contain) any) (?:\w+ )?(?:information|data|mention|indication|details)\b"
    r"|\b(?:not enough|insufficient) context (?:\w+ )?to\b"
    rf"|\bi (?:do not|don't) (?:actually |really )?(?:know\b|have (?:\w+ ){{0,2}}{_KNOWLEDGE}\b)"
    rf"|\bi have no (?:\w+ )?{_KNOWLEDGE}\b|(?:\bi am|\bi'm|^\W*|\bsorry,?) not (?:\w+ )?sure\b|\bunanswerable\b"
)
_IN_EACH_THAT_REFUSES: Final = ("no", "n't", "unable", "impossible", "insufficient", "unanswerable")
_OF_ONE_SELF: Final = re.compile(r"\b(?:i|i'm|i've|my|me|we|our)\b")
"""First-person words. If a reference contains such a word, no answer counts as a refusal."""
_EXACTLY: Final = re.compile(r"\b(?:explicit|direct|exact|precise|separate)(?:ly)?\b|\b(?:more|further|better) than\b")
_RECKONS: Final = re.compile(
    r"[=\u2248]|\b(?:gives?|giving|equals?|yields?|total(?:s|ed|ing|led|ling)|comes? to|amounts? to|works? out"
    r"|result(?:s|ing)? (?:is|of|in))\b"
)
# Words after which an answer may follow in spite of a refusal.
_TURN: Final = re.compile(
    r"\b(?:but|however|nevertheless|nonetheless|yet|still|though|although|as of|based on|here|i (?:think|believe)"
    r"|answer is|therefore|thus|hence|likely|probably|(?:should|must|would) be)\b"
)
_NO_TURN: Final = re.compile(r"\b(?:i(?:'m| am) )?sorry,? but\b|\bunfortunately,? but\b")
_MIN_SHARE_OF_WORDS: Final = 0.5
_CLAUSE_END: Final = re.compile(r"[,;](?!\d)")
_SENTENCE_END: Final = re.compile(r"[.!?](?!\w)|\n")


def refusal_features(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> dict[str, float]:
    """Return features for an answer that refuses. `references` begins with the best reference.

    Returns:
        `refusals`: the number of phrases of refusal or ignorance. `refused`: 1 if the text begins with a claim that the
        requested fact cannot be known, found or given, and does not state the fact later (see
        docs/reference/correctness.md); otherwise 0.
    """
    said = plain(answer.raw)
    phrases = len(_COUNTED_PHRASES.findall(said)) if _holds_one(_IN_EACH_REFUSAL, said) else 0
    return {"refusals": float(phrases), "refused": float(_refuses(question, references, said))}


def _holds_one(phrases: Sequence[str], text: str) -> bool:
    return any(phrase in text for phrase in phrases)


def _refuses(question: FeatureText, references: Sequence[FeatureText], answer: str) -> bool:
    if not _holds_one(_IN_EACH_THAT_REFUSES, answer):
        return False
    if not _REFUSES.search(answer, 0, 2 * _MAX_CHARACTERS_BEFORE_REFUSAL):
        return False
    if any(
        phrases.search(plain(each.raw)) for each in references for phrases in (_REFUSES, _COUNTED_PHRASES, _OF_ONE_SELF)
    ):
        return False
    new = frozenset(references[0].content).difference(question.distinct)
    sentences = [each for each in _SENTENCE_END.split(_NO_TURN.sub("sorry", answer)) if each.strip()]
    begun = 0
    for place, sentence in enumerate(sentences):
        phrase = _REFUSES.search(sentence)
        before = sentence[: phrase.start()] if phrase else sentence
        if begun > _MAX_CHARACTERS_BEFORE_REFUSAL or not new.isdisjoint(folded_words(before or ".")):
            return False
        if phrase and not (question.distinct | references[0].distinct).issuperset(folded_words(phrase[0])):
            behind = (sentence[phrase.end() :], *sentences[place + 1 :])
            return not _retracted(behind, new, question, loosely=_EXACTLY.search(sentence) is not None)
        begun += len(sentence) + 1
    return False


def _retracted(behind: Sequence[str], new: frozenset[str], question: FeatureText, *, loosely: bool) -> bool:
    """Return True if the text after a refusal answers the question.

    `behind` contains the rest of the refusal's sentence and the sentences after it.
    """
    if _TURN.search(behind[0]):
        return True
    return any(
        _answers(each, new, question, loosely=loosely)
        or (place > 0 and _TURN.search(each) and not _REFUSES.search(each))
        for place, each in enumerate(behind)
    )


def _answers(text: str, new: frozenset[str], question: FeatureText, *, loosely: bool) -> bool:
    """Return True if a clause contains most of a reference's new words, and repeats the question or calculates.

    If `loosely` is True, the new words are enough, because only an exact answer was refused.
    """
    asked = frozenset(question.content)
    for clause in _CLAUSE_END.split(text):
        words = frozenset(folded_words(clause)) if clause.strip() else frozenset[str]()
        if not new or len(new.intersection(words)) < _MIN_SHARE_OF_WORDS * len(new) or _REFUSES.search(clause):
            continue
        if (
            loosely
            or _RECKONS.search(clause)
            or (asked and len(asked.intersection(words)) >= _MIN_SHARE_OF_WORDS * len(asked))
        ):
            return True
    return False
