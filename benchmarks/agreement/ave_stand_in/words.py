"""What is known of words: their inflections (lemminflect's lexicon) and their senses (WordNet)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import ModuleType

# A longer word stands in no lexicon.
_LONGEST_WORD = 40
_REMEMBERED = 4096


class Thesaurus(Protocol):
    """Senses of nouns."""

    def noun_senses(self, phrase: str) -> tuple[tuple[str, ...], ...]:
        """Members of each sense of a noun or name, most frequent sense first, written as a dictionary writes them.

        Args:
            phrase: In lower case, words separated by blanks; a base form.

        Returns:
            Empty where the phrase is not known.
        """
        ...


class WordForms:
    """Inflections of words, from lemminflect's lexicon alone: a word that is not in it has none.

    Raises:
        ImportError: lemminflect is not installed.
    """

    def __init__(self) -> None:
        self._lexicon = _lexicon()
        self._lemmas = lru_cache(maxsize=_REMEMBERED)(self._looked_up)

    def lemma(self, word: str, part: str) -> str | None:
        """The first lemma of a word as NOUN or VERB, in lower case; None where the lexicon has none."""
        lemmas = self._lemmas(word.lower(), part)
        return lemmas[0] if lemmas else None

    def is_plural(self, word: str) -> bool:
        """Whether the word is a noun in the plural; "sheep" is not said to be one."""
        lemma = self.lemma(word, "NOUN")
        return lemma is not None and lemma != word.lower()

    def other_number(self, word: str) -> tuple[str, str] | None:
        """The noun in its other number, with the name of that number; None where there is no other form."""
        lowered = word.lower()
        if (lemma := self.lemma(lowered, "NOUN")) is None:
            return None
        if lemma != lowered:
            return lemma, "singular"
        plurals = [form for form in self._inflected(lemma, "NNS") if form != lowered]
        return (plurals[0], "plural") if plurals else None

    def is_participle(self, word: str) -> bool:
        """Whether the word can be the past participle of a verb."""
        lemma = self.lemma(word, "VERB")
        return lemma is not None and lemma != word.lower() and word.lower() in self._inflected(lemma, "VBN", "VBD")

    def verb_form(self, word: str, tag: str) -> str | None:
        """A verb in the form of a Penn Treebank tag (VBD, VBG); None where the lexicon has none or it is the same."""
        if (lemma := self.lemma(word, "VERB")) is None:
            return None
        return next((form for form in self._inflected(lemma, tag) if form != word.lower()), None)

    def _inflected(self, lemma: str, *tags: str) -> list[str]:
        # A verb may have its participle under the past's tag alone, where both are one word.
        return [form for tag in tags for form in self._lexicon.getInflection(lemma, tag, inflect_oov=False)]

    def _looked_up(self, word: str, part: str) -> tuple[str, ...]:
        # Words with a hyphen or an apostrophe are in no lexicon; hostile ones are long.
        if len(word) > _LONGEST_WORD or not word.isalpha():
            return ()
        found: Any = self._lexicon.getAllLemmas(word, upos=part)
        return tuple(found.get(part, ()))


def _lexicon() -> ModuleType:
    import lemminflect

    module: ModuleType = lemminflect
    return module
