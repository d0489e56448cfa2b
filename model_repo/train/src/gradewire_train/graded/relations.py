"""Draw sentences about several persons and things; a wrong answer exchanges a noun, a role or a quality."""

from collections.abc import Sequence
from typing import Final

from gradewire_train.graded.parts import PartRandom
from gradewire_train.graded.wording import Drawn, another_of, any_of, completed, lead, owned, surrounded, two_names
from gradewire_train.material import FLIPS, GRADED, WORDS
from gradewire_train.texts.lexicon import Lexicon, plain
from gradewire_train.texts.names import person_name
from gradewire_train.texts.numbers import in_words
from gradewire_train.texts.wording import capitalised, question_style, with_article
from gradewire_train.texts.wordnet import Synset

_ARTEFACT: Final = 6
_NAMED: Final = frozenset({5, 6, 13, 20})
"""Topics of nouns for lists: animals, artefacts, food, plants."""
_HAVING_PARTS: Final = frozenset({5, 6, 20})
_PERSON: Final = 18
_USUAL: Final = 3
"""Minimum count of a noun or adjective in WordNet's tagged texts."""
_SLOTS: Final = ("who", "what", "where", "when")
_ASKED: Final = {
    "who": "who {past} {what}",
    "what": "what did {who} {base} {where}",
    "where": "where did {who} {base} {what}",
    "when": "when did {who} {base} {what}",
}


class Relations:
    """The kinds of rows about persons, things and their qualities and parts."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        met = [each for each in lexicon.nouns if each.words[0].met >= _USUAL]
        self._things = [each for each in met if each.topic == _ARTEFACT]
        self._persons = [each for each in met if each.topic == _PERSON]
        self._named = [each for each in met if each.topic in _NAMED]
        self._wholes = [each for each in met if each.topic in _HAVING_PARTS and self._parts(each)]
        self._qualities = [
            each
            for each in lexicon.decent
            if each.key[0] == "a" and each.words[0].met >= _USUAL and plain(each.words[0].text)
            and any(map(plain, lexicon.antonyms(each)))
        ]  # fmt: skip

    def converse(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """State a relation from the other side, "bought from" for "sold to"; a wrong answer exchanges the two."""
        drawn = rng.random()
        table = "persons" if drawn < 0.5 else "things" if drawn < 0.75 else "companies"
        pair = self._two(rng, table)
        thing = self._noun(rng, self._things)
        if pair is None or thing is None:
            return None
        if table == "persons" and rng.random() < 0.15:
            return _mutual(rng, *pair, right=right)
        first, second = pair
        forms = rng.choice(FLIPS[f"converses_of_{table}"])
        own = [completed(form, a=first, b=second, thing=thing) for form in forms[:2]]
        turned = [completed(form, a=second, b=first, thing=thing) for form in forms[:2]]
        side = rng.randrange(2)
        names = [f"the {each}" if table == "things" else each for each in pair]
        by_role = rng.random() < 0.6
        if by_role:
            asked = completed(forms[2 + side], thing=thing)
            if rng.random() < 0.5:
                shuffled = rng.sample(range(2), 2)
                asked = f"{asked}, {names[shuffled[0]]} or {names[shuffled[1]]}"
        else:
            asked = completed(rng.choice(FLIPS["relation_questions"]), a=names[0], b=names[1])
        reference = names[side] if by_role and rng.random() < 0.7 else f"{capitalised(own[side])}."
        if by_role and rng.random() < 0.15:
            answer = names[side if right else 1 - side]
        else:
            form = 1 - side if rng.random() < 0.7 else side
            answer = capitalised(lead(rng).format((own if right else turned)[form]))
        said = own[0] if right else turned[0]
        return Drawn(question_style(rng, asked), (reference,), surrounded(rng, answer), own[0], said)

    def _two(self, rng: PartRandom, table: str) -> tuple[str, str] | None:
        if table == "companies":
            first, second = rng.sample(GRADED["companies"], 2)
            return first, second
        if table == "persons":
            return two_names(rng)
        things = [self._noun(rng, self._things) for _ in range(2)]
        if things[0] is None or things[1] is None or things[1] in self._lexicon.mates(things[0]):
            return None
        return things[0], things[1]

    def _noun(self, rng: PartRandom, synsets: Sequence[Synset]) -> str | None:
        name = rng.choice(synsets).words[0].text
        return name if owned(rng, self._lexicon, name) else None

    def noun_exchanged(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Say who did what, where and when in another order; a wrong answer exchanges one of the four."""
        who, what = self._agents(rng), self._objects(rng)
        if who is None or what is None:
            return None
        group = FLIPS["times"][rng.randrange(len(FLIPS["times"]))]
        at = rng.sample(range(len(group)), 2)
        spots = rng.sample(FLIPS["spots"], 2)
        past, base, part = rng.choice(FLIPS["deeds_with"]).split("|")
        deed = {"past": past, "base": base, "part": part}
        told = {"who": who[0], "what": what[0], "where": spots[0], "when": group[at[0]]}
        other = {"who": who[1], "what": what[2], "where": spots[1], "when": group[at[1]]}
        slot = any_of(rng, _SLOTS)
        says = dict(told)
        if not right:
            says[slot] = other[slot]
        elif rng.random() < 0.5:
            says["what"] = what[1]
        by_slot = rng.random() < 0.5
        asked = completed(_ASKED[slot], **told, **deed) if by_slot else rng.choice(FLIPS["event_questions"])
        first = rng.choice(FLIPS["event_forms"])
        second = another_of(rng, FLIPS["event_forms"], first)
        reference = f"{capitalised(completed(first, **told, **deed))}."
        if by_slot and rng.random() < 0.5:
            reference = told[slot]
        answer = capitalised(lead(rng).format(completed(second, **says, **deed)))
        if by_slot and rng.random() < 0.2:
            answer = says[slot]
        return Drawn(
            question_style(rng, asked), (reference,), surrounded(rng, answer), "same", "same" if right else says[slot]
        )

    def _agents(self, rng: PartRandom) -> tuple[str, str] | None:
        """Return two names, or two persons by what they do."""
        if rng.random() < 0.6:
            return two_names(rng)
        synset = rng.choice(self._persons)
        found = [synset.words[0].text, *self._lexicon.siblings(synset, rng, 1)]
        if len(found) < 2 or not plain(found[1]) or not all(owned(rng, self._lexicon, each) for each in found):
            return None
        return f"the {found[0]}", f"the {found[1]}"

    def _objects(self, rng: PartRandom) -> tuple[str, str, str] | None:
        """Return a noun, its synonym or itself, and another noun of the same kind."""
        synset = rng.choice(self._things)
        name = synset.words[0].text
        synonyms = [word.text for word in synset.words[1:] if word.met and plain(word.text)]
        siblings = [each for each in self._lexicon.siblings(synset, rng, 2) if plain(each)]
        if not siblings:
            return None
        found = (name, any_of(rng, synonyms) if synonyms else name, siblings[0])
        if not all(owned(rng, self._lexicon, each) for each in found):
            return None
        first, second, other = (with_article(each) for each in found)
        return first, second, other

    def opposite(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Name a quality or deed, or the opposite of its opposite; a wrong answer names the opposite."""
        drawn = rng.random()
        if drawn < 0.25:
            return _opposite_deed(rng, right=right)
        words = FLIPS["opposite"]
        if drawn < 0.65:
            word, synonym, against = rng.choice(words["complements"])
            same, turned = [word, synonym], words["turned_forms"]
            synonym_of = word
        else:
            synset = rng.choice(self._qualities)
            word, against = synset.words[0].text, next(filter(plain, self._lexicon.antonyms(synset)))
            same = [word, *(each.text for each in synset.words[1:] if each.met and plain(each.text))]
            if not all(owned(rng, self._lexicon, each) for each in (*same, against)):
                return None
            turned, synonym_of = words["contrary_forms"], word
        meant, other = (word, against) if rng.random() < 0.5 else (against, word)
        named, contrary = (meant, other) if right else (other, meant)
        if rng.random() < 0.5:
            said = rng.choice(turned).format(contrary)
        else:
            said = any_of(rng, same) if named == synonym_of else named
        pair = rng.sample(range(2), 2)
        texts = {"first": (word, against)[pair[0]], "second": (word, against)[pair[1]]}
        thing = rng.choice(WORDS["described_things"])
        question = question_style(rng, completed(rng.choice(words["quality_questions"]), thing=thing, **texts))
        text = capitalised(rng.choice(words["quality_forms"]).format(said))
        answer = surrounded(rng, text if rng.random() < 0.3 else f"{text}.")
        reference = meant if rng.random() < 0.7 else f"The {thing} is {meant}."
        return Drawn(question, (reference,), answer, meant, meant if right else other)

    def part_of(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """Name a whole or a part of it; a wrong answer names the part for the whole, or the whole for the part."""
        words = FLIPS["part_of"]
        whole, part = rng.choice(words["pairs"])
        if rng.random() < 0.5:
            synset = rng.choice(self._wholes)
            whole, part = synset.words[0].text, any_of(rng, self._parts(synset))
            if not all(owned(rng, self._lexicon, each) for each in (whole, part)):
                return None
        meant = "whole" if rng.random() < 0.5 else "part"
        said = meant if right else "part" if meant == "whole" else "whole"
        who = person_name(rng).usual
        asked, statement = (completed(text, who=who) for text in rng.choice(words["deeds"]))
        plainly = f"the {whole}" if meant == "whole" else f"the {part} of the {whole}"
        phrase = completed(rng.choice(words[meant]), whole=whole, part=part) if rng.random() < 0.4 else plainly
        reference = phrase if rng.random() < 0.6 else f"{capitalised(statement.replace('{}', phrase))}."
        answer = completed(rng.choice(words[said]), whole=whole, part=part)
        if rng.random() < 0.7:
            answer = f"{capitalised(statement.replace('{}', answer))}."
        return Drawn(question_style(rng, asked), (reference,), surrounded(rng, answer), meant, said)

    def _parts(self, whole: Synset) -> list[str]:
        parts = [self._lexicon.synset(key).words[0] for key in whole.linked("%p")]
        name = whole.words[0].text
        return [each.text for each in parts if each.met and plain(each.text) and each.text not in name]

    def members(self, rng: PartRandom, *, right: bool) -> Drawn | None:
        """List all members in any order; in a wrong answer one is missing, exchanged, excluded or too many."""
        size = rng.randrange(2, 5)
        pool = self._pool(rng, size + 1)
        if pool is None:
            return None
        own, outsider = pool[:size], pool[size]
        said, excluded = list(own), ""
        drawn = rng.random()
        if right:
            excluded = outsider if drawn < 0.25 else ""
        elif drawn < 0.25:
            excluded = said.pop(rng.randrange(size))
        elif drawn < 0.5:
            said.pop(rng.randrange(size))
        elif drawn < 0.75:
            said[rng.randrange(size)] = outsider
        else:
            said.append(outsider)
        rng.shuffle(said)
        words = FLIPS["members"]
        asked = rng.choice(words["questions" if rng.random() < 0.6 else "open_questions"])
        answer = _joined(rng, said)
        if excluded:
            answer = rng.choice(words["without"]).format(answer, excluded)
        form = rng.choice(words["forms"])
        answer = answer if answer.startswith("- ") else capitalised(form.format(answer))
        question = question_style(rng, completed(asked, count=in_words(size)))
        return Drawn(
            question, (_joined(rng, own),), surrounded(rng, answer), "|".join(sorted(own)), "|".join(sorted(said))
        )

    def _pool(self, rng: PartRandom, size: int) -> list[str] | None:
        """Return distinct names, or nouns of one kind."""
        if rng.random() < 0.4:
            pool = [person_name(rng).usual for _ in range(size)]
        else:
            synset = rng.choice(self._named)
            pool = [synset.words[0].text, *self._lexicon.siblings(synset, rng, size - 1)]
            if not all(plain(each) and owned(rng, self._lexicon, each) for each in pool):
                return None
        # No member's name may be part of another's, or a list could seem to have it.
        clear = all(one == other or one not in other for one in pool for other in pool)
        return pool if clear and len(set(pool)) == size else None


def _mutual(rng: PartRandom, first: str, second: str, *, right: bool) -> Drawn | None:
    """State a relation that holds in both directions the other way round; a wrong answer names a third person."""
    third = person_name(rng).usual
    if {*third.split()} & {*first.split(), *second.split()}:
        return None
    form = rng.choice(FLIPS["mutual"])
    same, other = (second, first), ((second, third), (third, first))[rng.randrange(2)]
    said, against = same if right else other
    answer = capitalised(lead(rng).format(completed(form, a=said, b=against)))
    asked = completed(rng.choice(FLIPS["relation_questions"]), a=first, b=second)
    reference = capitalised(completed(form, a=first, b=second))
    return Drawn(
        question_style(rng, asked), (f"{reference}.",), surrounded(rng, answer), "same", "same" if right else "third"
    )


def _opposite_deed(rng: PartRandom, *, right: bool) -> Drawn:
    verb, synonym, against = rng.choice(FLIPS["opposite"]["verbs"])
    own, others = [verb, synonym], [against]
    if rng.random() < 0.5:
        own, others = others, own
    said = any_of(rng, own if right else others)
    who = person_name(rng).usual
    asked = completed(rng.choice(FLIPS["opposite"]["verb_questions"]), who=who)
    answer = surrounded(rng, capitalised(lead(rng).format(f"{who} {said}")))
    reference = f"{who} {own[0]}."
    return Drawn(question_style(rng, asked), (reference,), answer, own[0], own[0] if right else others[0])


def _joined(rng: PartRandom, items: Sequence[str]) -> str:
    shape = rng.randrange(6)
    if len(items) == 1:
        return items[0]
    front, last = ", ".join(items[:-1]), items[-1]
    return (
        ", ".join(items),
        "; ".join(items),
        f"{front} and {last}",
        f"{front} as well as {last}",
        f"{front}, together with {last}",
        "\n".join(f"- {item}" for item in items) if len(items) > 2 else f"both {front} and {last}",
    )[shape]
