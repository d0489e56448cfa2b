"""Famous people of WordNet: by surname and in full, against others of their kind."""

import re
from random import Random
from typing import TYPE_CHECKING

from gradewire_train.texts.draw import Draw
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.misspell import misspelt
from gradewire_train.texts.words.asking import PERSON

if TYPE_CHECKING:
    from gradewire_train.texts.wordnet import Synset

_PERSON = 18
_WRONG = 3
_GLOSS_WORDS = 12
_ASIDE_WORDS = 5


class People:
    """Draws of instances of people in WordNet."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._people = [
            synset
            for synset in lexicon.decent
            if synset.key[0] == "n" and synset.topic == _PERSON and synset.linked("@i") and len(synset.words) > 1
        ]
        self._by_class: dict[str, list[Synset]] = {}
        for synset in self._people:
            self._by_class.setdefault(synset.linked("@i")[0], []).append(synset)

    def known(self, rng: Random) -> Draw | None:
        """Who it was that WordNet's definition tells: "Einstein", "Albert Einstein", "A. Einstein"."""
        person = rng.choice(self._people)
        gloss = re.sub(r"\([^)]*\)", "", person.definition).split(";")[0].strip()
        gloss = re.sub(r"^(a|an|the) ", "", gloss)
        words = gloss.split()
        surname = min((word.text for word in person.words), key=len)
        if not words or len(words) > _GLOSS_WORDS or surname.lower() in gloss.lower():
            return None
        names = [word.text for word in person.words]
        full = next((name for name in names if " " in name and name.endswith(surname)), None)
        same = list(names)
        if full:
            first, *_ = full.split()
            same += [f"{first[0]}. {surname}", f"{surname}, {full.removesuffix(surname).strip()}", misspelt(rng, full)]
        position = rng.randrange(len(names)) if rng.random() < 0.6 else 0
        others = rng.choices(self._by_class[person.linked("@i")[0]], k=2) + rng.choices(self._people, k=2)
        right = {part for name in names for part in name.lower().split()}
        wrong = []
        for other in others:
            name = other.words[min(position, len(other.words) - 1)].text
            if not right & set(name.lower().split()):
                wrong.append(name)
        question, statement = rng.choice(PERSON)
        answer = names[position]
        looser = (f"{answer}, {gloss}",) if len(words) <= _ASIDE_WORDS else ()
        return Draw(question.format(gloss=gloss), statement, answer, tuple(same), looser, tuple(wrong[:_WRONG]))
