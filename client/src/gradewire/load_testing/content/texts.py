"""Texts of made-up answers to questions about pictures: common words, so that they have as many tokens as real ones."""

import random
from typing import Final

_COLOURS: Final = [
    "red",
    "blue",
    "green",
    "yellow",
    "black",
    "white",
    "brown",
    "orange",
    "purple",
    "grey",
    "pink",
    "golden",
]
_LOOKS: Final = [
    "large",
    "small",
    "old",
    "new",
    "wooden",
    "plastic",
    "shiny",
    "broken",
    "round",
    "square",
    "tall",
    "narrow",
    "empty",
    "full",
    "wet",
    "dry",
    "dark",
    "bright",
    "soft",
    "striped",
    "dirty",
    "clean",
    "heavy",
    "thin",
    "wide",
    "painted",
]
_THINGS: Final = [
    "dog",
    "cat",
    "horse",
    "bird",
    "table",
    "chair",
    "bottle",
    "bowl",
    "plate",
    "bench",
    "bicycle",
    "bus",
    "train",
    "truck",
    "boat",
    "umbrella",
    "suitcase",
    "kite",
    "surfboard",
    "skateboard",
    "racket",
    "cup",
    "fork",
    "knife",
    "spoon",
    "banana",
    "apple",
    "sandwich",
    "cake",
    "pizza",
    "carrot",
    "clock",
    "vase",
    "book",
    "lamp",
    "mirror",
    "window",
    "door",
    "fence",
    "bridge",
    "tree",
    "flower",
    "rock",
    "river",
    "beach",
    "mountain",
    "field",
    "street",
    "sign",
    "fountain",
    "statue",
]
_PLACES: Final = [
    "beside",
    "behind",
    "under",
    "above",
    "near",
    "inside",
    "outside",
    "across",
    "below",
    "against",
    "around",
    "between",
]
_DOES: Final = ["stands", "lies", "rests", "sits", "leans", "waits", "hangs", "moves", "turns", "shines"]
_ASKED: Final = (
    ("what colour is the {}?", _COLOURS),
    ("what is next to the {}?", _THINGS),
    ("how does the {} look?", _LOOKS),
    ("where is the {}?", _PLACES),
)

QUESTIONS: Final = tuple(
    (asked.format(thing), answers[place % len(answers)])
    for asked, answers in _ASKED
    for place, thing in enumerate(_THINGS)
)
"""Questions with their references: few, as a test set has, so references are soon in the cache."""


def short_answer(source: random.Random, words: int) -> str:
    """Up to 6 words that begin with a number: of three words there are 600 000 different ones, of others far more."""
    colour, look, thing = source.choice(_COLOURS), source.choice(_LOOKS), source.choice(_THINGS)
    number, other, place = str(source.randint(2, 999)), source.choice(_THINGS), source.choice(_PLACES)
    parts = [number, colour, thing] if words <= 3 else [number, look, colour, thing]
    return " ".join([*parts, place, other][:words])


def verbose_answer(source: random.Random, words: int, reference: str) -> str:
    """So many words in sentences, one of them the reference."""
    made: list[str] = []
    while len(made) < words:
        sentence = ["The", source.choice(_COLOURS), source.choice(_LOOKS), source.choice(_THINGS), source.choice(_DOES)]
        sentence += [source.choice(_PLACES), "the", source.choice(_LOOKS), source.choice(_THINGS)]
        sentence[-1] += "."
        made += sentence
    made = made[:words]
    made[source.randrange(words)] = reference
    return " ".join(made)
