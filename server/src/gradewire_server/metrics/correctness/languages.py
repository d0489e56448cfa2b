"""Find answers in languages whose denials, hedges and refusals the rules of `correctness` cannot read."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from gradewire_server.domain.items import Item
from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, VOCABULARY

_MOST_CHARACTERS: Final = 4096
_MOST_REFERENCES: Final = 32
_ENGLISH_WORDS: Final = FUNCTION_WORDS.union(VOCABULARY["words"]["more_small_words"].split())
_OTHER_WORDS: Final = frozenset(" ".join(VOCABULARY["languages"].values()).split()) - _ENGLISH_WORDS
_DENIALS: Final = frozenset(VOCABULARY["words"]["foreign_denials"].split())
_FEW_WORDS: Final = 3
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# Elided articles and the like (French, Italian): "n'est" has the word "n".
_ELIDED: Final = re.compile(r"['\u2019]")
# One such character can be a word; of other scripts, a single letter may be a symbol ("λ = 5").
_IDEOGRAPHS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LEAST_LETTERS: Final = 2


def is_unread(item: Item) -> bool:
    """Return True if an answer says more than a reference does, and says it in a language that the rules cannot read.

    The rules read English. An answer that only repeats references, names or numbers has no language.
    """
    answer = _plain(item.prediction[:_MOST_CHARACTERS])
    said = _without(answer, item.references[:_MOST_REFERENCES])
    words = _WORD.findall(said)
    if not words:
        return False
    foreign = [word for word in words if _is_of_other_script(word)]
    if 2 * len(foreign) >= len(words):
        return True
    # Such a short answer says no more than that it is not the reference.
    if len(words) <= _FEW_WORDS and said != answer and not _DENIALS.isdisjoint(words):
        return True
    english, other = _counts(words)
    if not other or other <= english:
        return False
    # A single such word may belong to a name ("Cinco de Mayo"), unless the question is in such a language too.
    asked_english, asked_other = _counts(_WORD.findall(item.question[:_MOST_CHARACTERS].casefold()))
    return other > 1 or asked_other > asked_english


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _without(text: str, references: Sequence[str]) -> str:
    """Return a plain text without the references that it contains."""
    for reference in sorted(references, key=len, reverse=True):
        if plain := _plain(reference).strip():
            text = text.replace(plain, " ")
    return text


def _is_of_other_script(word: str) -> bool:
    if word.isascii():
        return False
    if _IDEOGRAPHS.search(word):
        return True
    return len(word) >= _LEAST_LETTERS and not any(unicodedata.name(letter, "").startswith("LATIN") for letter in word)


def _counts(words: Sequence[str]) -> tuple[int, int]:
    """Return the numbers of small English words and of small words that only other languages have."""
    parts = [part for word in words for part in (word, *(_ELIDED.split(word) if _ELIDED.search(word) else ()))]
    return sum(part in _ENGLISH_WORDS for part in parts), sum(part in _OTHER_WORDS for part in parts)
