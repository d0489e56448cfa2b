"""Yes and no in many words."""

from random import Random

from gradewire_train.texts.data import word_list
from gradewire_train.texts.draw import Draw

_YES = (
    "yes", "yeah", "yep", "true", "correct", "that is right", "it is", "of course", "definitely", "certainly", "sure",
    "affirmative", "indeed", "absolutely", "that is correct", "y",
)  # fmt: skip
_NO = (
    "no", "nope", "false", "not at all", "it is not", "certainly not", "definitely not", "incorrect", "never", "no way",
    "negative", "that is not the case", "that is wrong", "it isn't", "absolutely not", "n",
)  # fmt: skip
_SUBJECTS = word_list("subjects")
_STATES = (
    "open", "asleep", "wet", "old", "moving", "empty", "parked", "outside", "alone", "dirty", "wearing a hat",
    "facing the camera", "made of wood", "behind the fence", "in the shade", "full", "for sale", "happy", "on the left",
)  # fmt: skip
_WRONG = 3


def answered(rng: Random) -> Draw:
    """Yes or no: the bare word, other words for it, a sentence that says it; wrong: the other one likewise."""
    subject, state = rng.choice(_SUBJECTS), rng.choice(_STATES)
    agreed = rng.random() < 0.5
    right, wrong = (_YES, _NO) if agreed else (_NO, _YES)
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
    return Draw(question, "The answer is {}", answer, (*forms, right[0]), sentences, tuple(rng.sample(against, _WRONG)))
