"""Find synonyms and non-synonyms in WordNet, and draw sentence pairs."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from random import Random

from gradewire_train.material import ANSWERS
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.wording import with_article
from gradewire_train.texts.wordnet import Key, Synset, WordNet

_BROADER = ("@", "@i")
_NARROWER = ("~", "~i")
_ALIKE = ("&", "^", "$")
_TRIES = 12
_PLAIN = re.compile(r"[a-z][a-z'-]{1,20}( [a-z][a-z'-]{1,20}){0,2}")

_ANIMAL, _ARTEFACT, _PERSON = 5, 6, 18
_DEFINED = ("{word}: {gloss}", "{word} means {gloss}", "{article} is {gloss}", "the word {word} stands for {gloss}")
_GLOSS_WORDS = 12
_WRONG_GLOSSES = 2


class Lexicon:
    """WordNet with the generator's queries; `decent` contains all synsets that may be drawn."""

    def __init__(self, wordnet: WordNet) -> None:
        self.wordnet = wordnet
        self.decent: Sequence[Synset] = [synset for synset in wordnet.synsets.values() if not synset.coarse]
        self.ancestors: Callable[[Key], frozenset[Key]] = lru_cache(maxsize=50_000)(self._ancestors)

    @cached_property
    def nouns(self) -> Sequence[Synset]:
        """Nouns that have a broader term and whose first word is `plain`."""
        return [each for each in self.decent if each.key[0] == "n" and each.linked("@") and plain(each.words[0].text)]

    def instances(self, topic: int) -> Sequence[Synset]:
        """Return a topic's synsets that are single instances, such as persons or places."""
        return [each for each in self.decent if each.key[0] == "n" and each.topic == topic and each.linked("@i")]

    def synset(self, key: Key) -> Synset:
        """Return the synset with this key."""
        return self.wordnet.synsets[key]

    def keys_of(self, word: str) -> tuple[Key, ...]:
        """Return the keys of all senses of a word."""
        return self.wordnet.senses.get(word.lower(), ())

    def mates(self, word: str) -> frozenset[str]:
        """Return `word` and all words that share a sense with it, in lower case."""
        synsets = map(self.synset, self.keys_of(word))
        return frozenset({word.lower(), *(mate.text.lower() for synset in synsets for mate in synset.words)})

    def siblings(self, synset: Synset, rng: Random, most: int) -> list[str]:
        """Return at most `most` random words from sibling synsets; each word differs from `synset` (see `differs`)."""
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
        """Return True if no sense of `word` is this synset, and none is a broader, narrower or similar synset."""
        around = self.ancestors(synset.key) | {synset.key, *synset.linked(*_ALIKE)}
        names = {mate.text.lower() for mate in synset.words}
        if names & self.mates(word) or any(_within(name, word.lower()) for name in names):
            return False
        return not any(key in around or synset.key in self.ancestors(key) for key in self.keys_of(word))

    def antonyms(self, synset: Synset) -> list[str]:
        """Return the antonyms of the synset's first word."""
        return [self.synset(key).words[max(number, 1) - 1].text for key, number in synset.antonyms()]

    def wholes(self, key: Key) -> Iterator[Synset]:
        """Yield the synsets that contain this synset, nearest first: Lombardy, Italy and Europe for Milan."""
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
    """Return True for a phrase of one to three words if they consist of lower-case letters, hyphens and apostrophes."""
    return _PLAIN.fullmatch(word) is not None


def _within(name: str, word: str) -> bool:
    return f" {name} " in f" {word} " or f" {word} " in f" {name} "


class Sentences:
    """Draws without a question: sentences, with right answers (the same statement in other words) and wrong answers."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._met = {
            topic: [each for each in lexicon.nouns if each.topic == topic and each.met]
            for topic in (_ANIMAL, _ARTEFACT, _PERSON)
        }
        self._defined = [each for each in lexicon.nouns if 3 <= len(each.definition.split()) <= _GLOSS_WORDS]

    def definition(self, rng: Random) -> Draw | None:
        """Draw a word's definition with its synonyms; wrong answers are the definitions of similar words."""
        synset = rng.choice(self._defined)
        word = synset.words[0].text
        gloss = synset.gloss
        others = [
            key for name in self._lexicon.siblings(synset, rng, _WRONG_GLOSSES) for key in self._lexicon.keys_of(name)
        ]
        wrong = [self._lexicon.synset(key).gloss for key in others if self._lexicon.synset(key).topic == synset.topic]
        if rng.random() < 0.5:
            return Draw("", "", with_article(word), (gloss,), (), tuple(wrong[:_WRONG_GLOSSES]))
        template = rng.choice(_DEFINED)
        texts = [template.format(word=word, article=with_article(word), gloss=each) for each in (gloss, *wrong)]
        same = [gloss, *(with_article(name.text) for name in synset.words[1:])]
        return Draw("", "", texts[0], tuple(same), (), tuple(texts[1 : 1 + _WRONG_GLOSSES]))

    def scene(self, rng: Random) -> Draw | None:
        """Draw a short scene; wrong answers contradict the scene or replace a word.

        Right answers have a different word order or a broader word.
        """
        actor = rng.choice(self._met[_ANIMAL if rng.random() < 0.2 else _PERSON])
        thing = rng.choice(self._met[_ARTEFACT])
        active, turned, denied = rng.choice(ANSWERS["scenes"])
        who = with_article(actor.words[0].text)
        what = with_article(thing.words[0].text)
        others = self._lexicon.siblings(thing, rng, 1) or self._lexicon.siblings(actor, rng, 1)
        texts = [text.format(who=who, what=what) for text in (active, turned, denied)]
        same = [texts[1]]
        for synset, text in ((actor, who), (thing, what)):
            broader = self._broader(synset)
            if broader and len(others) == 1:
                same.append(texts[0].replace(text, with_article(broader)))
        wrong = [texts[2]]
        wrong += [texts[rng.randrange(2)].replace(what, with_article(other)) for other in others]
        return Draw("", "", texts[0], tuple(same), (), tuple(wrong))

    def _broader(self, synset: Synset) -> str | None:
        for key in synset.linked("@"):
            name = self._lexicon.synset(key).words[0].text
            if plain(name) and len(self._lexicon.ancestors(key)) >= 5:
                return name
        return None
