"""Draw rows about WordNet's nouns, alone and in lists."""

import re
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, any_of, owned, wrapped
from gradewire_train.material import GRADED
from gradewire_train.texts.draw import normal
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.names import person_name
from gradewire_train.texts.wording import capitalised, question_style, with_article
from gradewire_train.texts.wordnet import Synset

_CONCRETE: Final = frozenset({5, 6, 13, 17, 18, 20, 27})
_DEFINED_WORDS: Final = range(5, 22)
_SWAPPABLE: Final = 0.5

_SMALL_WORDS: Final = frozenset({"of", "the", "for", "in", "on", "and"})


class Nouns:
    """The kinds of rows about WordNet's nouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._concrete = [each for each in lexicon.nouns if each.topic in _CONCRETE and each.met]
        self._defined = [each for each in lexicon.nouns if len(each.definition.split()) in _DEFINED_WORDS]

    def frame(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Draw a sentence with a synonym of the reference's noun; a wrong answer has a different noun."""
        synset = rng.choice(self._concrete)
        name = synset.words[0].text
        synonyms = [word.text for word in synset.words[1:] if plain(word.text)]
        others = [
            each
            for each in (*self._lexicon.siblings(synset, rng, 2), rng.choice(self._concrete).words[0].text)
            if plain(each) and self._lexicon.differs(each, synset)
        ]
        said = rng.choice(synonyms) if right and synonyms else name if right else rng.choice(others) if others else ""
        if not said or not (owned(rng, self._lexicon, said) and owned(rng, self._lexicon, name)):
            return None
        template = rng.choice(GRADED["frames"])
        other_template = template if rng.random() < 0.6 else rng.choice(GRADED["frames"])
        reference = template.format(with_article(name)) if rng.random() < 0.6 else name
        if right and reference == template.format(with_article(said)):
            other_template = rng.choice(GRADED["frames"])
        prediction = other_template.format(with_article(said))
        return Drawn(
            question_style(rng, rng.choice(GRADED["frame_questions"])),
            (reference,),
            prediction,
            "same",
            "same" if right else said,
        )

    def precise(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Draw a narrower term than the reference's noun; if `right` is False, draw a broader term or a sibling."""
        synset = rng.choice(self._concrete)
        name = synset.words[0].text
        if right:
            kinds = [self._lexicon.synset(key).words[0].text for key in synset.linked("~")]
            said = rng.choice([each for each in kinds if plain(each)] or [""])
        else:
            broader = [above for key in synset.linked("@")[:1] for above in self._lexicon.synset(key).linked("@")]
            said = self._lexicon.synset(broader[0]).words[0].text if broader else ""
            if rng.random() < 0.5:
                said = next(iter(self._lexicon.siblings(synset, rng, 1)), "")
        if not said or not plain(said) or not all(owned(rng, self._lexicon, each) for each in (said, name)):
            return None
        question = question_style(rng, rng.choice(GRADED["frame_questions"]))
        return Drawn(question, (name,), wrapped(rng, "It is {}", said), "same", "same" if right else said)

    def definition(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Define a term by its reworded gloss. A wrong answer uses another gloss, or denies the right gloss."""
        synset = rng.choice(self._defined)
        name, gloss = synset.words[0].text, synset.gloss
        if not owned(rng, self._lexicon, name) or normal(name) in normal(gloss):
            return None
        if right:
            said = self._reworded(rng, gloss)
            if normal(said) == normal(gloss):
                return None
        else:
            drawn = rng.random()
            siblings = self._lexicon.siblings(synset, rng, 2) if drawn < 0.7 else []
            keys = [
                key
                for each in siblings
                for key in self._lexicon.keys_of(each)
                if self._lexicon.synset(key).topic == synset.topic
            ]
            other = self._lexicon.synset(keys[0]) if keys else rng.choice(self._defined)
            said = other.gloss
            if drawn > 0.9:
                said = f"not {gloss}"
            elif rng.random() < 0.4:
                said = self._reworded(rng, said)
            if _shared(said, gloss) > _SWAPPABLE and drawn <= 0.9:
                return None
        reference = gloss if rng.random() < 0.5 else f"{capitalised(with_article(name))} is {gloss}."
        question = question_style(rng, rng.choice(GRADED["definition_questions"]).format(with_article(name)))
        prediction = rng.choice(GRADED["definition_answers"]).format(said)
        return Drawn(question, (reference,), prediction, "same", "same" if right else "other")

    def _reworded(self, rng: PartRandom, gloss: str) -> str:
        """Replace up to three words in a gloss with synonyms, and vary common phrases."""
        found = gloss.split()
        places = [at for at, word in enumerate(found) if word.isalpha() and len(word) > 3]
        rng.shuffle(places)
        changed = 0
        for at in places:
            other = self._synonym(found[at])
            if other:
                found[at] = other
                changed += 1
            if changed == 3:
                break
        text = " ".join(found)
        text = re.sub(r"\bused for\b", "that serves for", re.sub(r"\bhaving\b", "that has", text))
        return re.sub(r"^(the act of|the state of|an?|the) ", "", text) if rng.random() < 0.5 else text

    def _synonym(self, word: str) -> str:
        keys = sorted(self._lexicon.keys_of(word), key=lambda key: -_met(self._lexicon.synset(key), word))
        if not keys:
            return ""
        best = self._lexicon.synset(keys[0])
        clear = len(keys) == 1 or _met(best, word) >= 3 * max(1, _met(self._lexicon.synset(keys[1]), word))
        others = [each.text for each in best.words if each.text.lower() != word and plain(each.text) and each.met]
        return others[0] if clear and others else ""


def _met(synset: Synset, word: str) -> int:
    return next((each.met for each in synset.words if each.text.lower() == word.lower()), 0)


def _shared(left: str, right: str) -> float:
    first, second = ({word for word in text.split() if len(word) > 3} for text in (left, right))
    return len(first & second) / max(1, min(len(first), len(second)))


class Lists:
    """The kind of rows about lists of names and nouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._nouns = [
            each
            for each in lexicon.decent
            if each.key[0] == "n" and each.met > 3 and each.topic in {5, 6, 13, 20} and plain(each.words[0].text)
        ]

    def members(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """List all members in any order; in a wrong answer, members are missing or one is replaced."""
        size = rng.randrange(2, 6)
        pool = (
            [person_name(rng).usual for _ in range(size + 2)]
            if rng.random() < 0.4
            else [each.words[0].text for each in rng.sample(self._nouns, size + 2)]
        )
        if len(set(pool)) < len(pool):
            return None
        own, said = pool[:size], pool[:size]
        rng.shuffle(said)
        if not right:
            if size > 2 and rng.random() < 0.5:
                said = said[: size - 1 - (rng.random() < 0.3)]
            else:
                said[rng.randrange(size)] = pool[size]
        question = question_style(rng, rng.choice(GRADED["list_questions"]))
        prediction = wrapped(rng, any_of(rng, GRADED["list_statements"]), _joined(rng, said))
        return Drawn(question, (_joined(rng, own),), prediction, "|".join(sorted(own)), "|".join(sorted(said)))


def acronym(rng: PartRandom, *, right: bool) -> Drawn | None:
    """Draw an organisation's name or initials; a wrong answer is a different organisation."""
    name, other = rng.sample(GRADED["organisations"], 2)
    short, other_short = initials(name), initials(other)
    if short == other_short:
        return None
    if rng.random() < 0.4:
        question, reference = rng.choice(GRADED["acronym_questions"]).format(short), name
        said = name if right else other
    else:
        question = rng.choice(GRADED["organisation_questions"])
        reference, said = (
            (name, short if right else other_short) if rng.random() < 0.5 else (short, name if right else other)
        )
    dotted = said == initials(said) and rng.random() < 0.2
    shown = ".".join(said) + "." if dotted else said
    prediction = wrapped(rng, "It is the {}", shown)
    return Drawn(question_style(rng, question), (reference,), prediction, short, short if right else other_short)


def initials(name: str) -> str:
    """Return a name's initials without small words: "NBHS" for "National Bureau of Harbour Safety"."""
    return "".join(word[0] for word in name.split() if word not in _SMALL_WORDS) if " " in name else name


def _joined(rng: PartRandom, items: list[str]) -> str:
    shape = rng.randrange(4)
    if shape == 0 or len(items) == 1:
        return ", ".join(items)
    if shape == 1:
        return "; ".join(items)
    joint = " and " if shape == 2 else " & "
    return f"{', '.join(items[:-1])}{joint}{items[-1]}"
