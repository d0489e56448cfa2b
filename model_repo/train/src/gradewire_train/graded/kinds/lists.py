"""Lists with a member exchanged or left out, in another order; partial answers; acronyms and what they stand for."""

from typing import Final

from gradewire_train.graded.data import words
from gradewire_train.graded.part import PartRandom
from gradewire_train.graded.row import Drawn
from gradewire_train.graded.wording import wrapped
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.style import question_style
from gradewire_train.texts.values.names import person_name

_ASKED: Final = (
    "which of them were there",
    "name all that belong to it",
    "what does it consist of",
    "who took part",
    "what was on the list",
    "which ones are meant",
    "list the parts",
    "what are the components",
    "name the members",
    "which are the main ones",
    "what three things are needed",
    "who are they",
)
_STATEMENTS: Final = (
    "They are {}",
    "It consists of {}",
    "The list has {}",
    "These were {}",
    "There are {}",
    "I would name {}",
)
_MEANT: Final = (
    "what does {} stand for",
    "full name of {}",
    "{} is short for what",
    "what is {}",
    "what is the meaning of {}",
    "expand {}",
)
_CALLED: Final = (
    "which body oversees it",
    "who published the report",
    "which organisation is it",
    "who runs the programme",
    "what was used",
    "which institution is meant",
    "who is in charge of it",
    "what is it called",
)
_SMALL_WORDS: Final = frozenset({"of", "the", "for", "in", "on", "and"})


class Lists:
    """Kinds over lists of names and nouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._nouns = [
            each
            for each in lexicon.decent
            if each.key[0] == "n" and each.met > 3 and each.topic in {5, 6, 13, 20} and plain(each.words[0].text)
        ]

    def members(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """All members in any order; wrong: one is missing, or another one stands in its place."""
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
        question = question_style(rng, rng.choice(_ASKED))
        prediction = wrapped(rng, _STATEMENTS[rng.randrange(len(_STATEMENTS))], _joined(rng, said))
        return Drawn(question, (_joined(rng, own),), prediction, "|".join(sorted(own)), "|".join(sorted(said)))


def acronym(rng: PartRandom, *, right: bool) -> Drawn | None:
    """An organisation by its name or by the name's initials; wrong: another one's."""
    name, other = rng.sample(words("organisations"), 2)
    short, other_short = initials(name), initials(other)
    if short == other_short:
        return None
    if rng.random() < 0.4:
        question, reference = rng.choice(_MEANT).format(short), name
        said = name if right else other
    else:
        question = rng.choice(_CALLED)
        reference, said = (
            (name, short if right else other_short) if rng.random() < 0.5 else (short, name if right else other)
        )
    dotted = said == initials(said) and rng.random() < 0.2
    shown = ".".join(said) + "." if dotted else said
    prediction = wrapped(rng, "It is the {}", shown)
    return Drawn(question_style(rng, question), (reference,), prediction, short, short if right else other_short)


def initials(name: str) -> str:
    """First letters of the words that count: "NBHS" of "National Bureau of Harbour Safety"."""
    return "".join(word[0] for word in name.split() if word not in _SMALL_WORDS) if " " in name else name


def _joined(rng: PartRandom, items: list[str]) -> str:
    shape = rng.randrange(4)
    if shape == 0 or len(items) == 1:
        return ", ".join(items)
    if shape == 1:
        return "; ".join(items)
    joint = " and " if shape == 2 else " & "
    return f"{', '.join(items[:-1])}{joint}{items[-1]}"
