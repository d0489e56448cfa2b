"""English words for numbers, and what they multiply."""

from typing import Final

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_ORDINALS: Final = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"

SMALL: Final = {word: value for value, word in enumerate(_SMALL.split())}
"""Zero to nineteen."""
TENS: Final = {**{word: 10 * value for value, word in enumerate(_TENS.split(), 2)}, "fourty": 40}
"""Twenty to ninety."""
SCALES: Final = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15,
    "dozen": 12.0, "lakh": 1e5, "crore": 1e7, "lac": 1e5,
    **{f"{word}s": value for word, value in (("million", 1e6), ("billion", 1e9), ("trillion", 1e12), ("crore", 1e7),
                                             ("lakh", 1e5))},
}  # fmt: skip
"""What a number before it is multiplied by."""
SHORT_SCALES: Final = {
    "k": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "mln": 1e6, "mm": 1e6, "b": 1e9, "bn": 1e9, "bln": 1e9, "tn": 1e12,
    "trn": 1e12,
}  # fmt: skip
"""Behind an amount of money; "m" and "b" are units elsewhere."""
PLAIN_SCALES: Final = {"k": 1e3, "bn": 1e9, "mn": 1e6, "mln": 1e6}
"""Behind any number."""
TIMES: Final = {"once": 1.0, "twice": 2.0, "thrice": 3.0, "none": 0.0, "nil": 0.0}
"""Words that are a number by themselves."""
ORDINALS: Final = {
    **{word: value for value, word in enumerate(_ORDINALS.split())},
    **{f"{word[:-1]}ieth": value for word, value in TENS.items()},
    "hundredth": 100,
    "thousandth": 1000,
    "millionth": 1_000_000,
}
"""Zeroth to millionth; tens and what follows them are two words."""
PARTS: Final = {
    "half": 2, "halves": 2, "quarter": 4, "quarters": 4,
    **{word: value for word, value in ORDINALS.items() if value > 2},
    **{f"{word}s": value for word, value in ORDINALS.items() if value > 2},
}  # fmt: skip
"""Names of fractions to their denominators: "two thirds", "a quarter"."""
ORDINAL_ENDINGS: Final = frozenset({"st", "nd", "rd", "th"})
"""Behind the digits of an ordinal."""
