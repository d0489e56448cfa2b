"""Draw questions about nouns, and about terms by their definitions."""

import re
from random import Random

from lemminflect import getInflection

from gradewire_train.material import QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw, some
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.wording import misspelt, with_article
from gradewire_train.texts.wordnet import Synset

_WRONG = 4
_ASKED = {int(topic): asked for topic, asked in QUESTIONS["topics"].items()}
_COUNTABLE = frozenset({5, 6, 8, 18, 20})
_TOPIC_WEIGHTS = {4: 2, 5: 5, 6: 8, 7: 2, 8: 2, 9: 2, 10: 2, 11: 1, 12: 1, 13: 4, 14: 1, 17: 1, 18: 5, 19: 1, 20: 2}
_CONCRETE = frozenset({5, 6, 8, 13, 15, 17, 18, 20, 25, 27})
_GLOSS_WORDS = 9
_ASIDE_WORDS = 5
_LONG_WORD = 6
_DEEP = 6
"""Minimum number of synsets above a usable broader word; a word with fewer, such as "object", is too general."""
_MET = 0.7
_BROAD_CHILDREN = 60
"""Maximum number of narrower terms of a usable broader word; a word with more narrower terms is too vague."""


class Things:
    """Draws about nouns: `shown` asks for a visible thing, `term` for a defined word."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        of_topic = {topic: [each for each in lexicon.nouns if each.topic == topic] for topic in _ASKED}
        self._topics = {topic: ([each for each in every if each.met], every) for topic, every in of_topic.items()}
        self._weights = [_TOPIC_WEIGHTS.get(topic, 1) for topic in _ASKED]
        self._defined = [
            synset
            for _, every in self._topics.values()
            for synset in every
            if len(synset.definition.split()) <= _GLOSS_WORDS
        ]

    def shown(self, rng: Random) -> Draw | None:
        """Ask for a visible thing.

        Right answers vary in word, plural and article. Wrong answers are siblings or antonyms.
        """
        topic = rng.choices(tuple(_ASKED), self._weights)[0]
        met, every = self._topics[topic]
        synset = rng.choice(met if rng.random() < _MET else every)
        question, statement = rng.choice(_ASKED[topic])
        return self._draw(rng, synset, question, statement)

    def term(self, rng: Random) -> Draw | None:
        """Ask for a word by its definition."""
        synset = rng.choice(self._defined)
        gloss = re.sub(r"\([^)]*\)", "", synset.definition).split(";")[0].strip()
        words = {word for name in synset.words for word in name.text.lower().split()}
        if not gloss or words & set(gloss.lower().split()):
            return None
        question, statement = rng.choice(QUESTIONS["term"])
        return self._draw(rng, synset, question.format(gloss=gloss), statement)

    def _draw(self, rng: Random, synset: Synset, question: str, statement: str) -> Draw | None:
        names = [word.text for word in synset.words if plain(word.text)]
        name = rng.choice(names) if rng.random() < 0.5 else names[0]
        answer, wrong = name, self._wrong(rng, synset)
        same = [other for other in names if other != name]
        if synset.topic in _COUNTABLE:
            if not same or rng.random() < 0.2:
                same += [with_article(name), f"the {name}", _plural(name)]
            if rng.random() < 0.25:
                shape = with_article if rng.random() < 0.7 else _plural
                answer, wrong = shape(name), [shape(each) for each in wrong]
        if not same or rng.random() < 0.05:
            same.append(misspelt(rng, name))
        return Draw(question, statement, answer, tuple(same), self._looser(rng, synset, name), tuple(wrong))

    def _wrong(self, rng: Random, synset: Synset) -> list[str]:
        """Return antonyms, siblings and other words from the synset's topic."""
        siblings = self._lexicon.siblings(synset, rng, 2 if synset.topic in _CONCRETE else 1)
        met, every = self._topics[synset.topic]
        others = [each.words[0].text for each in (*some(rng, met, 2), rng.choice(every))]
        distant = [other for other in others if self._lexicon.differs(other, synset)]
        return [*self._lexicon.antonyms(synset), *siblings, *distant][:_WRONG]

    def _looser(self, rng: Random, synset: Synset, name: str) -> tuple[str, ...]:
        """Return right answers with more or less detail: narrower or broader terms, parts of a name, additions."""
        around = [self._lexicon.synset(key) for key in some(rng, synset.linked("~"), 1)]
        for key in synset.linked("@")[:1]:
            broader = self._lexicon.synset(key)
            if len(broader.linked("~")) <= _BROAD_CHILDREN and len(self._lexicon.ancestors(key)) >= _DEEP:
                around.append(broader)
        looser = [each.words[0].text for each in around if plain(each.words[0].text)]
        if synset.topic in _COUNTABLE:
            looser.append(" ".join([rng.choice(WORDS["details"]), name]))
        first, *rest = name.split()
        if rest and len(first) >= _LONG_WORD:
            looser += [first, f"{first} ({' '.join(rest)})"]
        gloss = synset.definition
        if len(gloss.split()) <= _ASIDE_WORDS:
            looser += [f"{name} ({gloss})", f"{name}, {gloss}"]
        looser += [f"{name} or {word.text}" for word in synset.words[-1:] if word.text != name]
        return tuple(looser)


def _plural(noun: str) -> str:
    *front, last = noun.split(" ")
    forms = getInflection(last, "NNS")
    return " ".join((*front, str(forms[0]) if forms else last))
