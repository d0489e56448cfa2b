"""What somebody is doing: verbs with their synonyms and forms, against antonyms, siblings and other verbs."""

from random import Random

from lemminflect import getInflection

from gradewire_train.texts.data import word_list
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.lexicon import Lexicon, plain

_WRONG = 3
_MOTION, _CONTACT, _CREATION, _CONSUMPTION, _BODY, _COMPETITION, _TALK, _SOCIAL = 38, 35, 36, 34, 29, 33, 32, 41
_TOPICS = frozenset({_MOTION, _CONTACT, _CREATION, _CONSUMPTION, _BODY, _COMPETITION, _TALK, _SOCIAL})
_DOERS = word_list("doers")
_HOW = word_list("manners")


class Activities:
    """Draws of verbs of WordNet that were met in its tagged texts."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._verbs = [
            synset
            for synset in lexicon.decent
            if synset.key[0] == "v" and synset.topic in _TOPICS and synset.words[0].met and _one(synset.words[0].text)
        ]

    def doing(self, rng: Random) -> Draw | None:
        """What they do: "riding", "rides", "is riding"; wrong: another activity in the same form."""
        verb = rng.choice(self._verbs)
        doer = rng.choice(_DOERS)
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
        looser = (f"{answer} {rng.choice(_HOW)}", f"the {doer} is {_form(names[0], 'VBG')}")
        question = f"what did the {doer} do" if past else f"what is the {doer} doing"
        statement = f"The {doer} {{}}" if past else f"The {doer} is {{}}"
        return Draw(question, statement, answer, tuple(same), looser, tuple(wrong))


def _one(word: str) -> bool:
    return plain(word) and " " not in word


def _form(verb: str, tag: str) -> str:
    forms = getInflection(verb, tag)
    return str(forms[0]) if forms else verb
