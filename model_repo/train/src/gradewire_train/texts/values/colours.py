"""Colours: other names and shades, against other colours; two colours in any order."""

from random import Random

from gradewire_train.texts.data import word_list
from gradewire_train.texts.draw import Draw

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
_SUBJECTS = word_list("coloured_things")
_ASKED = (
    ("what color is the {}", "The {} is {{}}"),
    ("what colour is the {}", "The colour of the {} is {{}}"),
    ("which color is the {}", "The {} has the color {{}}"),
    ("what is the color of the {}", "The color of the {} is {{}}"),
    ("the {} is what color", "The {} is {{}} in color"),
    ("what color does the {} have", "It is a {{}} {}"),
)
_WRONG = 4


def coloured(rng: Random) -> Draw:
    """One colour, or two: "grey", "gray"; looser: a shade; wrong: colours that nobody takes for it."""
    subject = rng.choice(_SUBJECTS)
    question, statement = (text.format(subject) for text in rng.choice(_ASKED))
    name = rng.choice(tuple(_COLOURS))
    others = [other for other in _COLOURS if other != name and {name, other} not in _TOO_CLOSE]
    drawn = rng.sample(others, _WRONG)
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
