"""Draws over colours, lists, and yes and no."""

from random import Random

from gradewire_train.texts.draw import Draw
from gradewire_train.texts.values.names import person_name
from gradewire_train.texts.wording import table, word_list

_COLOURS = {
    "red": (("reddish", "the colour red"), ("dark red", "crimson", "scarlet", "bright red", "maroon")),
    "blue": (("bluish", "the colour blue"), ("navy", "light blue", "dark blue", "sky blue", "royal blue")),
    "green": (("greenish", "the colour green"), ("dark green", "olive", "light green", "emerald", "lime green")),
    "yellow": (("yellowish", "the colour yellow"), ("bright yellow", "lemon yellow", "golden yellow", "pale yellow")),
    "white": (("whitish", "the colour white"), ("off-white", "ivory", "cream white", "snow white")),
    "black": (("blackish", "the colour black"), ("jet black", "pitch black", "dark black", "ebony")),
    "grey": (("gray", "greyish", "grayish"), ("light grey", "dark gray", "ash grey", "slate gray")),
    "brown": (("brownish", "the colour brown"), ("dark brown", "chestnut", "light brown", "chocolate brown")),
    "pink": (("pinkish", "the colour pink"), ("light pink", "rose pink", "hot pink", "pale pink")),
    "orange": (("orangish", "the colour orange"), ("dark orange", "bright orange", "tangerine orange")),
    "purple": (("purplish", "violet"), ("dark purple", "lavender", "light purple", "plum purple")),
    "beige": (("tan", "sand-coloured"), ("light beige", "dark beige")),
    "silver": (("silvery", "silver-coloured"), ("shiny silver", "metallic silver")),
    "gold": (("golden", "gold-coloured"), ("shiny gold", "metallic gold")),
    "turquoise": (("teal", "aqua"), ("light turquoise", "dark turquoise")),
}
_TOO_CLOSE = (
    {"gold", "yellow"}, {"silver", "grey"}, {"beige", "brown"}, {"turquoise", "blue"}, {"turquoise", "green"},
    {"pink", "red"}, {"beige", "white"}, {"beige", "yellow"}, {"pink", "purple"}, {"orange", "red"}, {"gold", "orange"},
    {"white", "silver"}, {"beige", "gold"},
)  # fmt: skip
_COLOURED = word_list("coloured_things")
_COLOUR_ASKED = (
    ("what color is the {}", "The {} is {{}}"),
    ("what colour is the {}", "The colour of the {} is {{}}"),
    ("which color is the {}", "The {} has the color {{}}"),
    ("what is the color of the {}", "The color of the {} is {{}}"),
    ("the {} is what color", "The {} is {{}} in color"),
    ("what color does the {} have", "It is a {{}} {}"),
)
_WRONG_COLOURS = 4

_LISTS = table("items")
_MOST_ITEMS = 4

_YES = (
    "yes", "yeah", "yep", "true", "correct", "that is right", "it is", "of course", "definitely", "certainly", "sure",
    "affirmative", "indeed", "absolutely", "that is correct", "y",
)  # fmt: skip
_NO = (
    "no", "nope", "false", "not at all", "it is not", "certainly not", "definitely not", "incorrect", "never", "no way",
    "negative", "that is not the case", "that is wrong", "it isn't", "absolutely not", "n",
)  # fmt: skip
_YES_NO_SUBJECTS = word_list("subjects")
_STATES = (
    "open", "asleep", "wet", "old", "moving", "empty", "parked", "outside", "alone", "dirty", "wearing a hat",
    "facing the camera", "made of wood", "behind the fence", "in the shade", "full", "for sale", "happy", "on the left",
)  # fmt: skip
_WRONG_ANSWERS = 3


def coloured(rng: Random) -> Draw:
    """One colour, or two: "grey", "gray"; looser: a shade; wrong: colours that nobody takes for it."""
    subject = rng.choice(_COLOURED)
    question, statement = (text.format(subject) for text in rng.choice(_COLOUR_ASKED))
    name = rng.choice(tuple(_COLOURS))
    others = [other for other in _COLOURS if other != name and {name, other} not in _TOO_CLOSE]
    drawn = rng.sample(others, _WRONG_COLOURS)
    same, shades = _COLOURS[name]
    if rng.random() < 0.25:
        return _two(rng, question, statement, name, others)
    if rng.random() < 0.25:
        drawn[0] = f"{rng.choice(('dark', 'light', 'bright'))} {drawn[0]}"
    looser = (*shades, f"mostly {name}", f"{name} {subject}", f"it is {name}", f"the {subject} is {name}")
    return Draw(question, statement, name, (*same, f"the color {name}"), looser, tuple(drawn))


def _two(rng: Random, question: str, statement: str, name: str, others: list[str]) -> Draw:
    second = rng.choice(others)
    rest = rng.sample([other for other in others if other != second and {second, other} not in _TOO_CLOSE], 3)
    both = (f"{second} and {name}", f"{name} & {second}", f"{name}, {second}", f"{second}, {name}")
    wrong = (f"{name} and {rest[0]}", f"{rest[1]} and {rest[2]}", rest[0])
    return Draw(question, statement, f"{name} and {second}", both, (f"{name}/{second}",), wrong)


def listed(rng: Random) -> Draw:
    """Two to four items: other orders and joints; looser: introduced by a sentence; wrong: one exchanged, or all."""
    if rng.random() < 0.3:
        question, pool = "who are the members of the band", [person_name(rng).usual for _ in range(2 * _MOST_ITEMS)]
    else:
        question, pool = rng.choice(tuple(_LISTS.items()))
    size = rng.randrange(2, _MOST_ITEMS)
    drawn = rng.sample(pool, size + size)
    items, others = drawn[:size], drawn[size:]
    turned = items[1:] + items[:1]
    exchanged = [others[0], *items[1:]]
    rng.shuffle(exchanged)
    same = (_joined(turned), ", ".join(items), " & ".join(turned), "; ".join(items), " ".join(items), ", ".join(turned))
    wrong = (_joined(exchanged), _joined(others), ", ".join(others))
    return Draw(question, "The answer is {}", _joined(items), same, (f"{_joined(items)} among others",), wrong)


def _joined(items: list[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"


def answered(rng: Random) -> Draw:
    """Yes or no: the bare word, other words for it, a sentence that says it; wrong: the other one likewise."""
    subject, state = rng.choice(_YES_NO_SUBJECTS), rng.choice(_STATES)
    agreed = rng.random() < 0.5
    right, wrong = (_YES, _NO) if agreed else (_NO, _YES)
    says = f"the {subject} is {state}"
    denies = f"the {subject} is not {state}"
    same, other = (says, denies) if agreed else (denies, says)
    verb, verb_not = ("is", "is not") if agreed else ("is not", "is")
    forms = rng.sample(right, 5)
    sentences = (
        same,
        f"{right[0]}, {same}",
        f"{right[0]}, it {verb}",
        f"{right[0]}, I think so" if agreed else "I do not think so",
    )
    against = [*rng.sample(wrong, 2), other, f"{wrong[0]}, {other}", f"{wrong[0]}, it {verb_not}", wrong[0]]
    question = f"is the {subject} {state}"
    if rng.random() < 0.2:
        question = f"can you see that {says}"
    answer = right[0] if rng.random() < 0.8 else rng.choice(forms)
    return Draw(
        question, "The answer is {}", answer, (*forms, right[0]), sentences, tuple(rng.sample(against, _WRONG_ANSWERS))
    )
