"""Binary questions: which they are, and the rule that grades answers to them.

Source: Mañas, Krojer and Agrawal 2024 (LAVE), section 4.2 and appendix A.3: yes/no questions are where language models
go wrong most.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from gradewire_server.metrics.reference_filter import Counted, count_references

_HEAD_CHARACTERS: Final = 200
_WORDS: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CLAUSE_END: Final = re.compile(r"[.,;:!?()\n\u2013\u2014-]")

_LEADING: Final = {
    **dict.fromkeys(["yes", "yeah", "yep", "yup", "yea", "aye"], True),
    **dict.fromkeys(["no", "nope", "nah", "nay"], False),
}
_WHOLE_CLAUSE: Final = {
    **dict.fromkeys(("true", "correct", "right", "affirmative", "indeed", "sure", "of course"), True),
    **dict.fromkeys(("certainly", "definitely", "absolutely"), True),
    **dict.fromkeys(["false", "incorrect", "wrong", "negative", "never"], False),
    **dict.fromkeys(("not really", "not at all", "not yet", "not any more", "not anymore", "not any longer"), False),
    **dict.fromkeys(("of course not", "certainly not", "definitely not", "absolutely not"), False),
}
_NEITHER: Final = frozenset({
    "no idea", "no clue", "no answer", "no information", "no one", "no way to", "no matter",
    "yes and no", "yes or no", "yes no", "no and yes", "no or yes", "no yes",
})  # fmt: skip
_INTRODUCTIONS: Final = (("the", "answer", "is"), ("my", "answer", "is"), ("answer", "is"), ("answer",))
_SUBJECTS: Final = frozenset(["it", "this", "that", "there", "he", "she", "they", "we", "i", "you", "these", "those"])
_AUXILIARIES: Final = frozenset({
    "is", "are", "am", "was", "were", "does", "do", "did", "has", "have", "had",
    "can", "could", "will", "would", "should", "must", "may", "might",
})  # fmt: skip
_SHORT: Final = {
    "it's": "it is", "that's": "that is", "there's": "there is", "he's": "he is", "she's": "she is",
    "they're": "they are", "we're": "we are", "you're": "you are", "i'm": "i am",
    "cannot": "can not", "can't": "can not", "won't": "will not", "shan't": "shall not",
}  # fmt: skip


def is_binary(counted: Counted) -> bool:
    """Whether the most common reference is yes or no; `counted` as `count_references` gives it."""
    return counted.keys[0] in {"yes", "no"}


def rule_verdict(references: Sequence[str], prediction: str) -> bool | None:
    """Whether the yes or no that a prediction begins with is that of most references.

    Returns:
        None where the question is not binary, the prediction begins with neither, or the references are divided.
    """
    if not is_binary(count_references(references)):
        return None
    said, expected = leading_verdict(prediction), majority(references)
    return None if said is None or expected is None else said is expected


def majority(references: Sequence[str]) -> bool | None:
    """True for yes, False for no; None where as many references say the one as the other."""
    said = Counter(map(leading_verdict, references))
    return None if said[True] == said[False] else said[True] > said[False]


def leading_verdict(text: str) -> bool | None:
    """The yes (True) or no (False) that a text begins with; None where it begins with neither, or with both.

    Perhaps behind "answer:" or "the answer is", there stands

    - "yes", "yeah", "yep", "yup", "yea", "aye", or "no", "nope", "nah", "nay", whatever follows; but not "no idea", "no
      one", "no answer", "yes and no", "yes or no" and the like;
    - or as the whole first clause a word like "correct", "definitely", "false", "never", "not really", "of course not";
    - or as the whole first clause a subject, an auxiliary and perhaps "not": "it is", "they don't", "there aren't any".
      "It is a cat" and "it is not a cat" say neither, for the question may have asked about another animal.

    English only. Only the first words are looked at, so it takes no longer for long texts.
    """
    head = text[:_HEAD_CHARACTERS].casefold().replace("\u2019", "'").strip()
    words = _expanded(_WORDS.findall(head))
    clause = _expanded(_WORDS.findall(_CLAUSE_END.split(head, maxsplit=1)[0]))
    introduced = next((len(i) for i in _INTRODUCTIONS if tuple(words[: len(i)]) == i and len(words) > len(i)), 0)
    if introduced:
        words = words[introduced:]
        clause = clause[introduced:] or words[:1]
    if any(" ".join(words[:count]) in _NEITHER for count in (2, 3)):
        return None
    if words and words[0] in _LEADING:
        return _LEADING[words[0]]
    whole = " ".join(clause)
    return _WHOLE_CLAUSE[whole] if whole in _WHOLE_CLAUSE else _elliptic(clause)


def _elliptic(clause: list[str]) -> bool | None:
    """The verdict of a clause that is subject and auxiliary alone."""
    if len(clause) < 2 or clause[0] not in _SUBJECTS or clause[1] not in _AUXILIARIES:
        return None
    return {"": True, "not": False, "not any": False}.get(" ".join(clause[2:]))


def _expanded(words: list[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if word in _SHORT:
            found.extend(_SHORT[word].split())
        elif word.endswith("n't"):
            found.extend((word[:-3], "not"))
        else:
            found.append(word)
    return found
