"""What the tests grade, whichever framework asks."""

from gradewire import Item

ITEMS = (
    Item(question="What sleeps on the sill?", references=["cat", "a cat"], prediction="It is a small cat."),
    Item(question="What barks at night?", references=["dog"], prediction="That was the neighbour's goldfish."),
    Item(question="What swims in the pond?", references=["carp"], prediction=""),
)
"""One that is right, one that `correctness` calls wrong and is not sure, and one with neither answer nor score."""

ANSWERS = {item.question: item.prediction for item in ITEMS}

COMPLETION = "<think>A dog?</think> No, it is not a dog. The answer is **a cat**."
"""A completion of a reasoning model. With "a cat", `exact_match` gives 1 for its final answer and 0 for the whole."""
