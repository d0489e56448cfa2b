"""Questions about WordNet's neighbourhoods: which words mean the same, and which are safely something else."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

from gradewire_train.texts.wordnet import Key, Synset, WordNet

_BROADER = ("@", "@i")
_NARROWER = ("~", "~i")
_ALIKE = ("&", "^", "$")
_TRIES = 12
_PLAIN = re.compile(r"[a-z][a-z'-]{1,20}( [a-z][a-z'-]{1,20}){0,2}")


class Lexicon:
    """WordNet with what the generator asks of it; `decent` are all synsets that may be drawn.

    A sibling that is a synonym in another sense, or is broader or narrower in one, would be a negative that is right:
    `siblings` leaves all of these out.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self.wordnet = wordnet
        self.decent: Sequence[Synset] = [synset for synset in wordnet.synsets.values() if not synset.coarse]
        self.ancestors: Callable[[Key], frozenset[Key]] = lru_cache(maxsize=50_000)(self._ancestors)

    def synset(self, key: Key) -> Synset:
        """The synset of a key."""
        return self.wordnet.synsets[key]

    def keys_of(self, word: str) -> tuple[Key, ...]:
        """Keys of all senses of a word."""
        return self.wordnet.senses.get(word.lower(), ())

    def mates(self, word: str) -> frozenset[str]:
        """All words that share a sense with `word`, lower-cased, itself included."""
        synsets = map(self.synset, self.keys_of(word))
        return frozenset({word.lower(), *(mate.text.lower() for synset in synsets for mate in synset.words)})

    def siblings(self, synset: Synset, rng: Random, most: int) -> list[str]:
        """Words of other synsets below the same broader one, drawn; none of them may mean the same or include it."""
        cousins = [key for parent in synset.linked(*_BROADER) for key in self.synset(parent).linked(*_NARROWER)]
        found: list[str] = []
        for _ in range(_TRIES * most if cousins else 0):
            other = self.synset(rng.choice(cousins))
            word = other.words[0].text
            if other.key != synset.key and not other.coarse and word not in found and self.differs(word, synset):
                found.append(word)
                if len(found) == most:
                    break
        return found

    def differs(self, word: str, synset: Synset) -> bool:
        """Whether no sense of `word` is the synset, broader or narrower than it, or close to it (similar, see also)."""
        around = self.ancestors(synset.key) | {synset.key, *synset.linked(*_ALIKE)}
        names = {mate.text.lower() for mate in synset.words}
        if names & self.mates(word) or any(_within(name, word.lower()) for name in names):
            return False
        return not any(key in around or synset.key in self.ancestors(key) for key in self.keys_of(word))

    def antonyms(self, synset: Synset) -> list[str]:
        """Antonyms of the synset's first word."""
        return [self.synset(key).words[max(number, 1) - 1].text for key, number in synset.antonyms()]

    def wholes(self, key: Key) -> Iterator[Synset]:
        """What the synset is part of, the nearest first: Milan, Lombardy, Italy, Europe."""
        seen = {key}
        while parts := [whole for whole in self.synset(key).linked("#p") if whole not in seen]:
            key = parts[0]
            seen.add(key)
            yield self.synset(key)

    def _ancestors(self, key: Key) -> frozenset[Key]:
        found: set[Key] = set()
        open_ = [key]
        while open_:
            for parent in self.synset(open_.pop()).linked(*_BROADER):
                if parent not in found:
                    found.add(parent)
                    open_.append(parent)
        return frozenset(found)


def plain(word: str) -> bool:
    """Whether it is a common word or phrase of at most three words, without capitals, digits and signs."""
    return _PLAIN.fullmatch(word) is not None


def by_topic(lexicon: Lexicon, topics: Iterable[int]) -> Mapping[int, tuple[list[Synset], list[Synset]]]:
    """Nouns of kinds, by topic: those met in WordNet's tagged texts, and all whose first word is plain."""
    found: dict[int, tuple[list[Synset], list[Synset]]] = {topic: ([], []) for topic in topics}
    for synset in lexicon.decent:
        if synset.key[0] == "n" and synset.topic in found and plain(synset.words[0].text) and synset.linked("@"):
            met, every = found[synset.topic]
            every.append(synset)
            if synset.met:
                met.append(synset)
    return found


def _within(name: str, word: str) -> bool:
    return f" {name} " in f" {word} " or f" {word} " in f" {name} "
