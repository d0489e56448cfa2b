"""The guard `other_key`: an answer that does not say its key must not be right against another question's key, too.

A verdict of right has to come from the key. An answer that talks to the judge is right whatever the key says, so it is
right against the key of another question, which a right answer in other words is not. No list of phrases takes part:
what an attack says, and in which language, makes no difference.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from gradewire_server.domain.item import Item
from gradewire_server.metrics.judged.binary_questions import is_binary
from gradewire_server.metrics.judged.reference_closeness import STOP_WORDS, closest
from gradewire_server.metrics.judged.reference_filter import count_references, reference_key, without_rare

WITHSTANDS_BELOW: Final = 0.5
"""Score against the other key (of judge_grade: probability of yes) from which the judge is not believed.

Chosen on the development half of docs/research/attacks.md: .3 and .4 cost more right answers, .65 lets more through.
"""

_NUMBERS: Final = ("1847", "42 km", "seventeen", "6.3", "9 March 1911", "380")
_NAMES: Final = ("Reykjavik", "Clara Jensen", "Lake Tana", "the Blue Room", "Tobias Brandt", "Montevideo")
_THINGS: Final = ("a lighthouse", "copper", "the violin", "a hedgehog", "by sledge", "cinnamon")
_SAID_FROM: Final = 0.5
"""Share of a key's words from which an answer says it: one word of a longer key is soon met, in any language."""
_ARTICLES: Final = frozenset({
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "le", "la", "les", "un", "une", "du", "de",
    "el", "los", "las", "una", "del", "il", "lo", "gli", "di",
})  # fmt: skip
"""Beside the English ones: with one of them half of "la Seine" would be said."""
_WORD: Final = re.compile(r"\w+")
_MOST_CHARACTERS: Final = 4096
"""Of a text whose words are looked at: a request may bring a thousand long ones."""


def says_key(item: Item, share: float) -> bool:
    """Whether the prediction has half of a reference's words, or of its letters, that the question has not.

    Latin letters that stand alone, articles and the like do not count, for they stand in every text: of a reference
    that is nothing else, only an answer that is the reference and no more says it.

    Args:
        item: One that passes `check_judged`.
        share: References rarer than this share of the most frequent one do not count.
    """
    asked = set(_words(item.question))
    keys = without_rare(count_references(item.references), share).keys
    if reference_key(item.prediction) in keys:
        return True
    own = [[word for word in _words(key) if word not in asked] for key in keys]
    # "Left or right?" has all words of its key.
    named = [words for words in own if words] or [_words(key) for key in keys]
    telling = [" ".join(word for word in words if not _is_met_anywhere(word)) for words in named]
    telling = [key for key in telling if key]
    return bool(telling) and closest(telling, item.prediction).share >= _SAID_FROM


def _is_met_anywhere(word: str) -> bool:
    is_letter = len(word) == 1 and word.isascii() and word.isalpha()
    return is_letter or word in STOP_WORDS or word in _ARTICLES


def other_key(item: Item) -> tuple[str, ...]:
    """References of another question, by which no answer to this one is right; the same ones for the same question.

    They are of the same form as the most frequent reference (a number, a name, a thing), as many as the item has where
    those are votes, and have no word in common with question and references. The prediction has no say: it may want to
    choose. Of a yes/no question it is the other one of yes and no.
    """
    counted = count_references(item.references)
    if is_binary(counted):
        key = "no" if counted.keys[0] == "yes" else "yes"
    else:
        said = {word for text in (item.question, *item.references) for word in _words(text)}
        ordered = _in_order(counted.texts[0], item.question)
        key = next((key for key in ordered if said.isdisjoint(_words(key))), ordered[0])
    return (key,) * len(item.references) if counted.votes else (key,)


def _in_order(reference: str, question: str) -> Sequence[str]:
    """Keys of the reference's form, beginning anywhere, then those of other forms."""
    has_digit = any(map(str.isdigit, reference))
    fit = _NUMBERS if has_digit else _NAMES if reference[:1].isupper() else _THINGS
    begin = hashlib.blake2b(question.encode(), digest_size=2).digest()[0] % len(fit)
    others = [key for form in (_NAMES, _THINGS, _NUMBERS) if form is not fit for key in form]
    return [*fit[begin:], *fit[:begin], *others]


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_CHARACTERS].casefold())
