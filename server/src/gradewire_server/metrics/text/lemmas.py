"""Lemma of a word on its own: lemminflect's dictionary, first noun lemma, else verb, adjective, adverb, else the word.

Source: lemminflect 0.2.3 (SPECIALIST lexicon), which carries its data; docs/research/lemmas.md says how far it
agrees with WordNet's lemmatizer. Another rule is another metric version.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from lemminflect import config
from lemminflect.codecs.OverridesCodec import OverridesCodec

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")


@cache
def lemma_table() -> Mapping[str, str]:
    """Lemmas of all words whose lemma is another word (about 33 000); read once, 0.1 s.

    The whole dictionary is folded into one table because lemminflect's own look-up copies its entry each time (5 µs and
    more), and because a table of fixed size needs no bound against a flood of unknown words. The file is read here
    because lemminflect's own reading takes four times as long, which every command and every server would wait for.
    """
    found: dict[str, str] = {}
    for part_of_speech in reversed(PARTS_OF_SPEECH):
        found.update(_entries()[part_of_speech])
    # lemminflect looks words up in lower case: entries that are not are never found.
    lemmas = {word: lemmas.partition("/")[0].lower() for word, lemmas in found.items() if word == word.lower()}
    return {word: lemma for word, lemma in lemmas.items() if lemma != word}


@cache
def known_words() -> frozenset[str]:
    """The words of the dictionary (about 70 000), inflected ones too, in lower case: few names, no number words."""
    return frozenset(word for word, _, _ in _rows() if word == word.lower())


@cache
def _entries() -> Mapping[str, Mapping[str, str]]:
    """Part of speech to word to its lemmas, with "/" between them."""
    entries: dict[str, dict[str, str]] = defaultdict(dict)
    for word, part_of_speech, lemmas in _rows():
        entries[part_of_speech][word] = lemmas
    overrides: dict[str, dict[str, tuple[str, ...]]] = OverridesCodec.load(config.lemma_overrides_fn)
    for word, entry in overrides.items():
        for part_of_speech, lemmas_of_word in entry.items():
            entries[part_of_speech.lower()][word] = "/".join(lemmas_of_word)
    return entries


def _rows() -> Iterator[list[str]]:
    """Of the dictionary: word, part of speech, lemmas."""
    with gzip.open(config.lemma_lu_fn, "rt", encoding="utf-8") as file:
        return csv.reader(file.read().splitlines(), quoting=csv.QUOTE_NONE)


@cache
def lemmatizer() -> Callable[[str, str], str]:
    """The look-up as a bound method: `lemmatizer()(word, word)` is the lemma of a lower-cased word."""
    return lemma_table().get
