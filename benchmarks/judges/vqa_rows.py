"""64 short rows as in visual question answering: ten annotators, answers of a word or a few; made up, and ours."""

from collections.abc import Iterator
from typing import Final

from gradewire_server.domain.items import Item

# Question, what annotators say (answer x how many), predictions: right, verbose, near, wrong.
_QUESTIONS: Final = (
    ("What colour is the bus?", "red 8, maroon 2", "red", "It is a red bus.", "reddish brown", "blue"),
    ("How many dogs are there?", "2 7, two 2, 3 1", "two", "There are 2 dogs in it.", "a few", "five"),
    ("What is the man holding?", "umbrella 9, parasol 1", "umbrella", "He holds an open umbrella.", "a stick", "phone"),
    ("What sport is this?", "tennis 10", "tennis", "They are playing tennis.", "a racket sport", "golf"),
    ("What is on the plate?", "pizza 6, slice of pizza 4", "pizza", "A slice of pizza.", "italian food", "salad"),
    ("Where is the cat sitting?", "windowsill 5, window 4, sill 1", "on the sill", "By the window.", "indoors", "sofa"),
    ("What animal is in the field?", "cow 8, cattle 2", "cow", "A brown cow is grazing.", "farm animal", "horse"),
    ("What time does the clock show?", "10:10 7, ten past ten 3", "10:10", "Ten past ten.", "about ten", "3:45"),
    ("What room is this?", "kitchen 10", "kitchen", "This looks like a kitchen.", "a room with a stove", "bathroom"),
    ("What is the weather like?", "rainy 6, wet 2, cloudy 2", "rainy", "It seems to be raining.", "bad", "sunny"),
    ("What brand is the laptop?", "dell 9, hp 1", "dell", "It says Dell on the lid.", "not an apple", "apple"),
    ("What is the woman wearing on her head?", "hat 7, straw hat 3", "hat", "She wears a hat.", "headwear", "helmet"),
    ("What fruit is in the bowl?", "bananas 6, banana 4", "bananas", "Some ripe bananas.", "yellow fruit", "apples"),
    ("What is the boy riding?", "skateboard 10", "skateboard", "He rides a skateboard.", "a board", "bicycle"),
    ("What material is the bench?", "wood 8, wooden 2", "wood", "It is made of wood.", "planks", "metal"),
    ("What does the sign say?", "stop 10", "stop", "The sign says stop.", "a warning", "yield"),
)


def vqa_items() -> Iterator[Item]:
    """The rows, the four answers to a question apart from each other."""
    for answer in range(4):
        for question, said, *predictions in _QUESTIONS:
            counted = (each.rpartition(" ") for each in said.split(", "))
            references = tuple(text for text, _, count in counted for _ in range(int(count)))
            yield Item(f"{question} {answer + 1}", question, references, predictions[answer])
