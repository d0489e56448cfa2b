"""Whether an example teaches what it should."""

from gradewire_models.train.examples import Example
from gradewire_models.train.texts.draw import normal


def sound(example: Example) -> bool:
    """Whether there is something to learn: a positive in other words, and negatives, none of which equals either."""
    return bool(example.negatives) and not contradiction(example)


def contradiction(example: Example) -> str:
    """What in an example would teach nothing, or the opposite of what it should; "" where nothing does.

    Texts are compared as `normal` has them: a negative that differs in case, accents, articles or punctuation only is
    the right answer.
    """
    if not all(each.strip() for each in example.answers):
        return "anchor, positive and negatives should not be blank"
    if example.anchor == example.positive:
        return "anchor and positive are the same text, from which nothing is learnt"
    right = {normal(example.anchor), normal(example.positive)}
    for negative in example.negatives:
        if normal(negative) in right:
            return f"the negative {negative[:40]!r} is the anchor or the positive but for case, articles or punctuation"
    return ""
