"""Draw questions about persons and places in WordNet."""

import re
from collections.abc import Mapping, Sequence
from random import Random

from gradewire_train.material import QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.names import person_name, title
from gradewire_train.texts.wording import misspelt
from gradewire_train.texts.wordnet import Key, Synset

_PERSON_TOPIC = 18
_WRONG_PEOPLE = 3
_GLOSS_WORDS = 12
_ASIDE_WORDS = 5

_LOCATION_TOPIC = 15
_WRONG_PLACES = 4
_MOST_WHOLES = 3
_REALMS = frozenset({"country", "state"})


def _by_class(instances: Sequence[Synset]) -> Mapping[Key, list[Synset]]:
    found: dict[Key, list[Synset]] = {}
    for synset in instances:
        found.setdefault(synset.linked("@i")[0], []).append(synset)
    return found


class People:
    """Draws about persons in WordNet."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._people = [each for each in lexicon.instances(_PERSON_TOPIC) if len(each.words) > 1]
        self._by_class = _by_class(self._people)

    def known(self, rng: Random) -> Draw | None:
        """Ask for the person in a definition. Right answers are "Einstein", "Albert Einstein" and "A. Einstein"."""
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
        question, statement = rng.choice(QUESTIONS["known_person"])
        answer = names[position]
        looser = (f"{answer}, {gloss}",) if len(words) <= _ASIDE_WORDS else ()
        return Draw(question.format(gloss=gloss), statement, answer, tuple(same), looser, tuple(wrong[:_WRONG_PEOPLE]))


class Places:
    """Draws about places in WordNet."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._places = [each for each in lexicon.instances(_LOCATION_TOPIC) if each.linked("#p")]
        self._by_class = _by_class(self._places)

    def located(self, rng: Random) -> Draw | None:
        """Ask for a place. Right answers are "Milan", "Milan, Italy" and "in Milan"; a looser answer is "Italy"."""
        place = rng.choice(self._places)
        chain = self._chain(place)
        names = [word.text for word in place.words]
        full = f"{names[0]}, {chain[-1]}" if chain else names[0]
        others = [other for other in rng.sample(self._places, 3) if self._apart(other, place)]
        others += [
            other for other in rng.choices(self._by_class[place.linked("@i")[0]], k=3) if self._apart(other, place)
        ]
        wide = rng.random() < 0.5
        wrong = [self._written(other, wide=wide) for other in others][:_WRONG_PLACES]
        question, statement = rng.choice(QUESTIONS["place"])
        blanks = {
            "title": title(rng),
            "person": person_name(rng).usual,
            "thing": " ".join(rng.choice(WORDS[part]) for part in ("building_ranks", "buildings")),
        }
        same = [*names[1:], f"in {names[0]}", full.replace(",", "")]
        same += [f"{names[0]}, {part}" for part in chain]
        answer = full if wide else names[0]
        return Draw(question.format(**blanks), statement, answer, (*same, names[0]), tuple(chain), tuple(wrong))

    def _chain(self, place: Synset) -> list[str]:
        wholes = [
            whole.words[0].text
            for whole in self._lexicon.wholes(place.key)
            if _REALMS & {self._lexicon.synset(kind).words[0].text for kind in self._lexicon.ancestors(whole.key)}
        ]
        return wholes[:_MOST_WHOLES]

    def _written(self, place: Synset, *, wide: bool) -> str:
        chain = self._chain(place)
        return f"{place.words[0].text}, {chain[-1]}" if wide and chain else place.words[0].text

    def _apart(self, other: Synset, place: Synset) -> bool:
        around = {place.key, *(whole.key for whole in self._lexicon.wholes(place.key))}
        beyond = {other.key, *(whole.key for whole in self._lexicon.wholes(other.key))}
        shared = {word.text for word in other.words} & {word.text for word in place.words}
        return other.key not in around and place.key not in beyond and not shared
