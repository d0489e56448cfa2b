"""Whether an example teaches what it should."""

from gradewire_models.train.examples import Example
from gradewire_models.train.texts.draw import normal


def sound(example: Example) -> bool:
    """Whether there is something to learn: a positive in other words, and negatives, none of which equals either."""
    right = {normal(example.anchor), normal(example.positive)}
    against = {normal(each) for each in example.negatives}
    return example.anchor != example.positive and bool(against) and not right & against
