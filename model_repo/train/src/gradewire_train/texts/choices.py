"""Draw questions about colours and lists, and questions with the answer "yes" or "no"."""

from random import Random

from gradewire_train.material import ANSWERS, QUESTIONS, WORDS
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.names import person_name

_COLOURS = ANSWERS["colours"]
_TOO_CLOSE = tuple(map(set, ANSWERS["close_colours"]))
_WRONG_COLOURS = 4

_MOST_ITEMS = 4

_WRONG_ANSWERS = 3


def coloured(rng: Random) -> Draw:
    """Ask for one or two colours ("grey", "gray"); looser answers are shades, wrong answers are other colours."""
    subject = rng.choice(WORDS["coloured_things"])
    question, statement = (text.format(subject) for text in rng.choice(QUESTIONS["colour"]))
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
    """Ask for a list of two or three items, in any order; in wrong answers, some or all items are replaced."""
    if rng.random() < 0.3:
        question, pool = "who are the members of the band", [person_name(rng).usual for _ in range(2 * _MOST_ITEMS)]
    else:
        question, pool = rng.choice(tuple(WORDS["items"].items()))
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
    """Ask a question with the answer "yes" or "no", as a word or a sentence; wrong answers say the opposite."""
    subject, state = rng.choice(WORDS["subjects"]), rng.choice(WORDS["states"])
    agreed = rng.random() < 0.5
    right, wrong = (ANSWERS["yes"], ANSWERS["no"]) if agreed else (ANSWERS["no"], ANSWERS["yes"])
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
