"""Questions of our own, which hold nothing from users: they tell what a decision server does with several at once.

They are about one state, as long as long items are, and each is as long as those of our metrics: what a server cuts
when it is asked much at once, it cuts of them too. No answer to them is certain, so that what else is asked can be seen
to move them.
"""

from typing import Final

from gradewire_server.judges.decisions.asked import Asked

_LEVELS_CM: Final = " ".join(f"{(day * 37 + day * day * 11) % 313 + 40}.{day * 7 % 10}" for day in range(300))
"""Figures, since they have more tokens than words of the same length."""
_STATE: Final = f"Water levels of a small river, one a day, in centimetres: {_LEVELS_CM}"
_PREFACE: Final = (
    "You look at the log of a gauge that somebody read every day at the same place, in the morning, and wrote down "
    "with one decimal. Some days may be missing, and nobody knows how well it was read. Rely on the log only, even "
    "where you know such rivers, and do not take it for certain what a single day says. Say "
)
_WHAT: Final = (
    ("which season it was for most of the log.", "It was mostly {}", ("spring", "summer", "autumn", "winter")),
    ("whether the level was rising, steady or falling.", "The level was {}", ("rising", "steady", "falling")),
    ("whether the gauge was read carefully.", "The reading was {}", ("careless", "careful")),
    ("what kind of ground the river runs over.", "The river runs over {}", ("sand", "clay", "rock")),
    ("whether a mill upstream holds the water back.", "There is {} upstream", ("no mill", "a mill")),
    ("how much it rained in the hills.", "The rain was {}", ("scarce", "usual", "heavy")),
    ("whether boats could have used the river.", "Boats could {} use it", ("never", "sometimes", "always")),
    ("who is likely to have kept the log.", "It was kept by {}", ("a farmer", "a teacher", "an engineer")),
)
MOST: Final = len(_WHAT)


def own_questions(count: int) -> tuple[Asked, ...]:
    """So many different questions about one state; `count` is 1 to `MOST`."""
    return tuple(
        Asked(_STATE, _PREFACE + what, {label: line.format(label) for label in labels})
        for what, line, labels in _WHAT[:count]
    )
