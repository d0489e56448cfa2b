"""Wordings of questions and answers: words of `lists.toml`, styles, misspellings, sentences around an answer."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from random import Random
from typing import Any

_SEARCHED = 0.45
"""Share of questions as they are typed into a search box: lower-cased, without a question mark."""

_SOUNDS = (("ph", "f"), ("ck", "k"), ("c", "k"), ("y", "i"), ("ie", "y"), ("ou", "u"), ("oo", "u"), ("z", "s"))
_SHORTEST_MISSPELT = 6
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1")

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


def word_list(name: str) -> tuple[str, ...]:
    """The words of a list."""
    return tuple(_lists()["words"][name])


def table(name: str) -> Mapping[str, Any]:
    """A table of the file: its keys with their words."""
    entries: Mapping[str, Any] = _lists()[name]
    return entries


@cache
def _lists() -> Mapping[str, Any]:
    text = resources.files("gradewire_train.texts").joinpath("lists.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def question_style(rng: Random, question: str) -> str:
    """The question as somebody would write it: with its mark, or as it is typed into a search box."""
    bare = question.strip().rstrip("?")
    if rng.random() < _SEARCHED:
        return bare.lower()
    return f"{capitalised(bare)}?"


def answer_style(rng: Random, answer: str) -> str:
    """Now and then with a capital, in capitals, with a full stop, in quotation marks or in small letters."""
    drawn = rng.random()
    if drawn < 0.10:
        return capitalised(answer)
    if drawn < 0.14 and len(answer) < 30:
        return answer.upper()
    if drawn < 0.20:
        return f"{answer}."
    if drawn < 0.22:
        return f'"{answer}"'
    if drawn < 0.28:
        return answer.lower()
    return answer


def capitalised(text: str) -> str:
    """The text beginning with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def with_article(noun: str) -> str:
    """The noun behind "a" or "an"; by its first letter, which is wrong for few words."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def misspelt(rng: Random, text: str) -> str:
    """The text with one word spelt a little otherwise; itself where all words are short.

    A double letter written once, a sound in other letters, two letters exchanged, never the first one.
    """
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= _SHORTEST_MISSPELT and word.isalpha()]
    if not long:
        return text
    at = rng.choice(long)
    words[at] = _slip(rng, words[at])
    return " ".join(words)


def _slip(rng: Random, word: str) -> str:
    ways = [_DOUBLED.sub(r"\1", word, count=1)]
    ways += [word[0] + word[1:].replace(old, new, 1) for old, new in _SOUNDS]
    at = rng.randrange(1, len(word) - 2)
    ways.append(f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}")
    changed = [way for way in ways if way != word]
    return rng.choice(changed) if changed else word


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
