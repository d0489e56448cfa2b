"""Draw questions about the names of invented persons and the titles of invented works."""

from dataclasses import dataclass
from random import Random

from gradewire_train.material import QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.wording import misspelt

_TITLE_THINGS, _TITLE_OF = WORDS["title_things"], WORDS["title_of"]
_WRONG_TITLES = 4
_TITLE_SHAPES = 5

_NICKNAMES = WORDS["nicknames"]
_HONOURS = WORDS["honours"]
_LAST_NAMES = WORDS["last_names"]
_SUBTITLES = WORDS["subtitles"]
_STRANGERS = 3
_SURNAME_ALONE = 0.4


def title(rng: Random) -> str:
    """Return an invented title: "The Silent Harbour"."""
    quality, thing, other = rng.choice(WORDS["title_qualities"]), rng.choice(_TITLE_THINGS), rng.choice(_TITLE_THINGS)
    shape = rng.randrange(_TITLE_SHAPES)
    if shape == 0:
        return f"The {quality.title()} {thing.title()}"
    if shape == 1:
        return f"{quality.title()} {thing.title()}"
    if shape == 2:
        return f"The {thing.title()} of {rng.choice(_TITLE_OF).title()}"
    if shape == 3:
        return f"The {thing.title()}'s {other.title()}"
    return f"The {thing.title()} and the {other.title()}"


def titled(rng: Random) -> Draw:
    """Ask for a title, with or without an article, subtitle or quotation marks."""
    who = person_name(rng).usual
    answer = title(rng)
    question, statement = rng.choice(QUESTIONS["title"])
    words = answer.split()
    own = [word for word in words if word[:1].isupper() and word not in {"The", "A"}]
    wrong = [title(rng) for _ in range(_WRONG_TITLES)]
    wrong[0] = answer.replace(
        own[-1], rng.choice([thing for thing in _TITLE_THINGS if thing != own[-1].lower()]).title()
    )
    if rng.random() < 0.3:
        wrong[1] = f"{answer} {rng.choice(('2', '3', 'II', 'III'))}"
    same = [answer.removeprefix("The "), f'"{answer}"', answer.lower(), answer.replace(" and ", " & ")]
    looser = [f"{answer}: {rng.choice(_SUBTITLES)}", f"{answer} ({rng.randrange(1930, 2024)})"]
    statement = statement.replace("{who}", who)
    return Draw(question.replace("{who}", who), statement, answer, tuple(same), tuple(looser), tuple(wrong))


@dataclass(frozen=True, slots=True)
class Name:
    """A person's name."""

    first: str
    middle: str
    last: str

    @property
    def usual(self) -> str:
        """The first name and the surname."""
        return f"{self.first} {self.last}"


def person_name(rng: Random) -> Name:
    """Return a first, a middle and a last name."""
    first, middle = rng.sample([*_NICKNAMES, *WORDS["first_names"]], 2)
    return Name(first, middle, rng.choice(_LAST_NAMES))


def named(rng: Random) -> Draw:
    """Ask for a person, whose name can have several forms; a wrong name shares at most one part with the right name."""
    name = person_name(rng)
    question, statement = rng.choice(QUESTIONS["name"])
    blanks = {
        "first": person_name(rng).first,
        "title": title(rng),
        "thing": rng.choice(WORDS["inventions"]),
        "year": rng.randrange(1880, 2024),
    }
    short = rng.random() < _SURNAME_ALONE
    forms = [*_forms(rng, name), *(_short_forms(rng, name) if short else ())]
    answer = name.usual if rng.random() < 0.6 else rng.choice(forms)
    wrong = [other for other in _others(rng, name) if not (short and other.endswith(name.last))]
    if short and answer in {name.last, forms[-2]}:
        wrong = [each.split()[-1] for each in wrong]
    job, origin = rng.choice(WORDS["jobs"]), rng.choice(WORDS["nationalities"])
    told = {"job": job, "origin": origin, "nickname": rng.choice(tuple(_NICKNAMES.values()))}
    looser = tuple(form.format(name=name, **told) for form in WORDS["introductions"])
    stated = statement.format("{}", **blanks)
    return Draw(question.format(**blanks), stated, answer, (*forms, name.usual), looser, tuple(wrong))


def _forms(rng: Random, name: Name) -> list[str]:
    first, middle, last = name.first, name.middle, name.last
    forms = [
        f"{first} {middle} {last}",
        f"{first} {middle} {last}",
        f"{first} {middle[0]}. {last}",
        f"{first[0]}. {last}",
        f"{first[0]}. {middle[0]}. {last}",
        f"{last}, {first}",
        f"{rng.choice(_HONOURS)} {first} {last}",
        f"{first} {last} {rng.choice(('Jr.', 'III', 'Sr.'))}",
        misspelt(rng, name.usual),
        f"{first} {rng.choice(_LAST_NAMES)}-{last}",
        f"{rng.choice(_HONOURS)} {first[0]}. {middle[0]}. {last}",
    ]
    if first in _NICKNAMES:
        nickname = _NICKNAMES[first]
        forms += [f"{nickname} {last}", f'{first} "{nickname}" {last}', f"{nickname} {last}"]
    return forms


def _short_forms(rng: Random, name: Name) -> tuple[str, ...]:
    return (name.last, name.last, f"{rng.choice(_HONOURS)} {name.last}", name.last)


def _others(rng: Random, name: Name) -> list[str]:
    others = [person_name(rng) for _ in range(_STRANGERS)]
    wrong = [other.usual for other in others if other.last != name.last]
    stranger = others[0]
    if stranger.first[0] not in {name.first[0], name.middle[0], _NICKNAMES.get(name.first, "-")[0]}:
        wrong.append(f"{stranger.first} {name.last}")
    if stranger.last != name.last:
        wrong.append(f"{name.first} {stranger.last}")
    rng.shuffle(wrong)
    return wrong
