"""Lemma of a word on its own: lemminflect's dictionary, first noun lemma, else verb, adjective, adverb, else the word.

Source: lemminflect 0.2.3 (SPECIALIST lexicon), which carries its data; docs/research/lemmas.md says how far it
agrees with WordNet's lemmatizer. Another rule is another metric version.
"""

from collections.abc import Callable, Mapping
from functools import cache

from lemminflect import config
from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec
from lemminflect.codecs.OverridesCodec import OverridesCodec

PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ", "ADV")


@cache
def lemma_table() -> Mapping[str, str]:
    """Lemmas of all words whose lemma is another word (about 33 000); read once, 0.3 s.

    The whole dictionary is folded into one table because lemminflect's own look-up copies its entry each time (5 µs and
    more), and because a table of fixed size needs no bound against a flood of unknown words.
    """
    entries = _entries()
    overrides: dict[str, dict[str, tuple[str, ...]]] = OverridesCodec.load(config.lemma_overrides_fn)
    table = {}
    for word in entries.keys() | overrides.keys():
        if word != word.lower():
            continue  # lemminflect looks words up in lower case, so these entries are never found
        lemma = _first({**entries.get(word, {}), **overrides.get(word, {})}, word)
        if lemma != word:
            table[word] = lemma
    return table


@cache
def known_words() -> frozenset[str]:
    """The words of the dictionary (about 70 000), inflected ones too, in lower case: few names, no number words."""
    return frozenset(word for word in _entries() if word == word.lower())


@cache
def _entries() -> dict[str, dict[str, tuple[str, ...]]]:
    entries: dict[str, dict[str, tuple[str, ...]]] = LemmaLUCodec.load(config.lemma_lu_fn)
    return entries


def _first(entry: Mapping[str, tuple[str, ...]], word: str) -> str:
    for part_of_speech in PARTS_OF_SPEECH:
        if part_of_speech in entry:
            return entry[part_of_speech][0].lower()
    return word


@cache
def lemmatizer() -> Callable[[str, str], str]:
    """The look-up as a bound method: `lemmatizer()(word, word)` is the lemma of a lower-cased word."""
    return lemma_table().get
