"""Draw questions about actions (verbs) and qualities (adjectives), with antonyms among the wrong answers."""

from random import Random

from lemminflect import getInflection

from gradewire_train.material import WORDS
from gradewire_train.texts.draw import Draw, some
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.wordnet import Synset

_WRONG = 3
_MOTION, _CONTACT, _CREATION, _CONSUMPTION, _BODY, _COMPETITION, _TALK, _SOCIAL = 38, 35, 36, 34, 29, 33, 32, 41
_TOPICS = frozenset({_MOTION, _CONTACT, _CREATION, _CONSUMPTION, _BODY, _COMPETITION, _TALK, _SOCIAL})

_USUAL = 5
"""Minimum count of an adjective in WordNet's tagged texts; 10 % of the draws ignore this limit."""


class Activities:
    """A source of draws about verbs that occur in WordNet's tagged texts."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._verbs = [
            synset
            for synset in lexicon.decent
            if synset.key[0] == "v" and synset.topic in _TOPICS and synset.words[0].met and _one(synset.words[0].text)
        ]

    def doing(self, rng: Random) -> Draw | None:
        """Ask about an action: "riding", "rides", "rode"; wrong answers are different actions in the same tense."""
        verb = rng.choice(self._verbs)
        doer = rng.choice(WORDS["doers"])
        past = rng.random() < 0.3
        tag = "VBD" if past else "VBG"
        names = [word.text for word in verb.words if _one(word.text)]
        answer = _form(names[0], tag)
        others = [*self._lexicon.antonyms(verb), *self._lexicon.siblings(verb, rng, 1)]
        others += [other.words[0].text for other in rng.sample(self._verbs, 3)]
        wrong = [_form(name, tag) for name in others if _one(name) and self._lexicon.differs(name, verb)][:_WRONG]
        same = [_form(name, tag) for name in names[1:]]
        if not same or rng.random() < 0.3:
            same += [_form(names[0], "VBZ"), names[0], _form(names[0], "VBG"), _form(names[0], "VBD")]
        manner = rng.choice(WORDS["manners"])
        looser = (f"{answer} {manner}", f"the {doer} is {_form(names[0], 'VBG')}")
        question = f"what did the {doer} do" if past else f"what is the {doer} doing"
        statement = f"The {doer} {{}}" if past else f"The {doer} is {{}}"
        return Draw(question, statement, answer, tuple(same), looser, tuple(wrong))


def _one(word: str) -> bool:
    return plain(word) and " " not in word


def _form(verb: str, tag: str) -> str:
    forms = getInflection(verb, tag)
    return str(forms[0]) if forms else verb


class Qualities:
    """A source of draws about WordNet's head adjectives that have an antonym."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._heads = [
            synset
            for synset in lexicon.decent
            if synset.key[0] == "a" and lexicon.antonyms(synset) and plain(synset.words[0].text)
        ]
        self._met = [synset for synset in self._heads if synset.words[0].met >= _USUAL]

    def like(self, rng: Random) -> Draw | None:
        """Ask about a quality. For example, "large" and "big" are both right. Antonyms and similar words are wrong."""
        head = rng.choice(self._met if rng.random() < 0.9 else self._heads)
        subject = rng.choice(WORDS["described_things"])
        answer = head.words[0].text
        attribute = next((self._lexicon.synset(key).words[0].text for key in head.linked("=")), None)
        asked = f"what is the {attribute} of the {subject}" if attribute else f"how is the {subject}"
        if rng.random() < 0.3:
            asked = f"what is the {subject} like"
        near = [synset for synset in self._similar(head) if plain(synset.words[0].text)]
        far = [
            word.text
            for name in self._lexicon.antonyms(head)
            for key in self._lexicon.keys_of(name)
            if key[0] == "a"
            for synset in some(rng, self._similar(self._lexicon.synset(key)), 1)
            for word in synset.words[:1]
        ]
        wrong = [*self._lexicon.antonyms(head), *(name for name in far if self._lexicon.differs(name, head))]
        same = [word.text for word in head.words[1:]]
        chosen = some(rng, near, 2)
        looser = [*(synset.words[0].text for synset in chosen), f"the {subject} is {answer}", f"{answer} {subject}"]
        same += [word.text for synset in chosen[:1] for word in synset.words[:1]] if not same else []
        return Draw(asked, f"The {subject} is {{}}", answer, tuple(same), tuple(looser), tuple(wrong[:_WRONG]))

    def _similar(self, head: Synset) -> list[Synset]:
        return [self._lexicon.synset(key) for key in head.linked("&")]
