"""SQuAD 2's figures once more, written from their definition alone; imports nothing of the project.

Definition: Rajpurkar, Jia and Liang 2018, "Know What You Don't Know", section 5.1, and the data set's evaluation. A
text's tokens are its words in lower case, without ASCII punctuation and articles. For a question without an answer,
both figures are 1 if the prediction has no token, otherwise 0.
"""

import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ARTICLES = {"a", "an", "the"}


class Figures(NamedTuple):
    """A prediction's exact match and F1, or their means."""

    exact: float
    f1: float


def tokens(text: str) -> list[str]:
    """Return the tokens of a text whose words are separated by blanks only."""
    bare = "".join(character for character in text.lower() if character not in string.punctuation)
    return [word for word in bare.split() if word not in ARTICLES]


def overlap(said: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the number of pairs of equal tokens, each token in at most one pair."""
    left = list(wanted)
    for token in said:
        if token in left:
            left.remove(token)
    return len(wanted) - len(left)


def figures_of(prediction: str, answers: Sequence[str]) -> Figures:
    """Return a prediction's figures. Without answers, the question has no answer."""
    said = tokens(prediction)
    if not answers:
        return Figures(float(not said), float(not said))
    exact = f1 = 0.0
    for wanted in map(tokens, answers):
        exact = max(exact, float(said == wanted))
        if common := overlap(said, wanted):
            f1 = max(f1, 2 * common / (len(said) + len(wanted)))
    return Figures(exact, f1)


def means(rows: Iterable[tuple[str, Sequence[str]]]) -> Figures:
    """Return the mean figures of (prediction, answers)."""
    found = [figures_of(prediction, answers) for prediction, answers in rows]
    return Figures(*(sum(column) / len(found) for column in zip(*found, strict=True)))
