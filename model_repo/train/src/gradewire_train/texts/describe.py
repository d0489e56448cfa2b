"""Sentences around an answer, as models that chat write them; "{}" stands for the answer."""

from random import Random

from gradewire_train.texts.style import capitalised

_SENTENCES = (
    "The answer is {}.",
    "It is {}.",
    "It's {}.",
    "That would be {}.",
    "This is {}.",
    "I think it is {}.",
    "I believe the answer is {}.",
    "It appears to be {}.",
    "It looks like {}.",
    "It seems to be {}.",
    "The correct answer is {}.",
    "My answer is {}.",
    "Most likely {}.",
    "Probably {}.",
    "In this case it is {}.",
    "What you are looking for is {}.",
    "You can see that it is {}.",
    "Judging by the picture, it is {}.",
    "As far as I can tell, it is {}.",
    "From what is visible, {} is right.",
    "{} is the answer.",
    "{} is correct.",
    "{} would be my answer.",
    "{}, as far as I know.",
    "{}, I would say.",
    "{}, without any doubt.",
    "{}, of course.",
    "{}. That is all there is to it.",
    "{} is what is asked for here.",
    "{} fits best.",
    "Sure! It is {}.",
    "Good question. It is {}.",
    "Well, it is {}.",
    "According to most sources, it is {}.",
    "According to the records, it was {}.",
    "Historians agree that it was {}.",
    "It is generally known to be {}.",
    "It is usually given as {}.",
    "It was {}.",
    "It must have been {}.",
    "One would say {}.",
    "People say it is {}.",
    "In short, {}.",
    "To be precise, {}.",
    "To answer the question: {}.",
    "The reply is {}.",
    "The short answer is {}.",
    "The right one is {}.",
    "There you have it: {}.",
    "Here it is: {}.",
    "Clearly {}.",
    "Evidently it is {}.",
    "Without question, {}.",
    "I am fairly sure that it is {}.",
    "I am certain it is {}.",
    "As everybody knows, it is {}.",
    "The image shows {}.",
    "In the picture you find {}.",
    "The photograph gives {} as the answer.",
    "The description matches {}.",
    "All signs point to {}.",
    "Everything indicates {}.",
    "Based on the question, it should be {}.",
    "If I remember correctly, it is {}.",
    "Unless I am mistaken, it is {}.",
    "The text states that it is {}.",
)
"""Answer any question; written here."""

_ASIDES = (
    "Let me know if you need more.",
    "This is widely known.",
    "There are many stories about it.",
    "It has been so for a long time.",
    "Many people remember it well.",
    "The scene looks peaceful.",
    "Other details are hard to make out.",
    "It is often mentioned in books.",
    "I hope this helps.",
    "It is a popular topic.",
)
_CONTRASTS = ("It is {}, not {}.", "It is {} rather than {}.", "{}, and certainly not {}.", "{} instead of {}.")
REFUSALS = (
    "I do not know.",
    "I'm not sure.",
    "It is not possible to say.",
    "That cannot be answered.",
    "There is no information about that.",
    "The picture does not show it.",
    "unknown",
    "It is hard to tell.",
)
"""Replies that give no answer."""


def sentence(rng: Random, statement: str) -> str:
    """A sentence with a "{}" for the answer: the question's own statement, or one that fits any question."""
    drawn = f"{statement}." if statement and rng.random() < 0.5 else rng.choice(_SENTENCES)
    if rng.random() < 0.12:
        drawn = f"{drawn} {rng.choice(_ASIDES)}"
    return drawn


def filled(template: str, answer: str) -> str:
    """The sentence with the answer in it, beginning with a capital."""
    return capitalised(template.replace("{}", answer))


def contrast(rng: Random, right: str, wrong: str) -> tuple[str, str]:
    """A sentence that prefers `right` to `wrong`, and the same one with the two exchanged."""
    template = rng.choice(_CONTRASTS)
    return capitalised(template.format(right, wrong)), capitalised(template.format(wrong, right))
