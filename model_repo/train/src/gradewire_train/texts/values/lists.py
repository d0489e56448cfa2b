"""Lists: in another order, joined otherwise, against one with an item exchanged or left out."""

from random import Random

from gradewire_train.texts.data import table
from gradewire_train.texts.draw import Draw
from gradewire_train.texts.values.names import person_name

_KINDS = table("items")
_LONGEST = 4


def listed(rng: Random) -> Draw:
    """Two to four items: other orders and joints; looser: introduced by a sentence; wrong: one exchanged, or all."""
    if rng.random() < 0.3:
        question, pool = "who are the members of the band", [person_name(rng).usual for _ in range(2 * _LONGEST)]
    else:
        question, pool = rng.choice(tuple(_KINDS.items()))
    size = rng.randrange(2, _LONGEST)
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
