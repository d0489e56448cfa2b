"""Pairs of sentences for the task ``nli`` where no NLI data are given: definitions and short scenes over WordNet."""

import re
from random import Random

from gradewire_train.texts.draw import Draw
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.style import with_article
from gradewire_train.texts.wordnet import Synset

_ANIMAL, _ARTEFACT, _PERSON = 5, 6, 18
_DEFINED = ("{word}: {gloss}", "{word} means {gloss}", "{article} is {gloss}", "the word {word} stands for {gloss}")
_GLOSS_WORDS = 12
_WRONG = 2
_SCENES = (
    ("{who} is carrying {what}", "{what} is being carried by {who}", "nobody is carrying anything"),
    ("{who} stands next to {what}", "next to {what} there is {who}", "{who} is far away from {what}"),
    ("{who} is repairing {what}", "{what} is being repaired", "{what} is being thrown away"),
    ("{who} is looking at {what}", "{what} is looked at by {who}", "{who} pays no attention to {what}"),
    ("{who} sold {what}", "{what} was sold by {who}", "{who} bought {what}"),
    ("{who} lost {what} on the way", "on the way {what} got lost", "{who} found {what} on the way"),
    ("{who} is cleaning {what}", "{what} is being cleaned by {who}", "{who} is making {what} dirty"),
    ("{who} is hiding behind {what}", "behind {what} somebody is hiding", "{who} is standing in front of {what}"),
    ("{who} points at {what}", "it is {what} that {who} points at", "{who} turns away from {what}"),
    ("{who} has put {what} on the table", "{what} is on the table", "{what} has been taken off the table"),
)


class Sentences:
    """Draws without a question: the anchor and its paraphrase or entailment, against what contradicts it."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        nouns = [each for each in lexicon.decent if each.key[0] == "n" and each.linked("@")]
        self._met = {
            topic: [each for each in nouns if each.topic == topic and each.met and plain(each.words[0].text)]
            for topic in (_ANIMAL, _ARTEFACT, _PERSON)
        }
        self._defined = [
            each for each in nouns if plain(each.words[0].text) and 3 <= len(each.definition.split()) <= _GLOSS_WORDS
        ]

    def definition(self, rng: Random) -> Draw | None:
        """What a word means, said with one of its names and with another; against other words' definitions."""
        synset = rng.choice(self._defined)
        word = synset.words[0].text
        gloss = _gloss(synset)
        others = [key for name in self._lexicon.siblings(synset, rng, _WRONG) for key in self._lexicon.keys_of(name)]
        wrong = [_gloss(self._lexicon.synset(key)) for key in others if self._lexicon.synset(key).topic == synset.topic]
        if rng.random() < 0.5:
            return Draw("", "", with_article(word), (gloss,), (), tuple(wrong[:_WRONG]))
        template = rng.choice(_DEFINED)
        texts = [template.format(word=word, article=with_article(word), gloss=each) for each in (gloss, *wrong)]
        same = [gloss, *(with_article(name.text) for name in synset.words[1:])]
        return Draw("", "", texts[0], tuple(same), (), tuple(texts[1 : 1 + _WRONG]))

    def scene(self, rng: Random) -> Draw | None:
        """A short scene, turned round or told with broader words; against its contradiction and another scene."""
        actor = rng.choice(self._met[_ANIMAL if rng.random() < 0.2 else _PERSON])
        thing = rng.choice(self._met[_ARTEFACT])
        active, turned, denied = rng.choice(_SCENES)
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


def _gloss(synset: Synset) -> str:
    return re.sub(r"\s*\([^)]*\)", "", synset.definition).split(";")[0].strip()
