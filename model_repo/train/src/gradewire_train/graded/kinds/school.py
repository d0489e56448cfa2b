"""Pupils' answers to science questions, and answers to questions of yes or no with reasons."""

from collections.abc import Mapping
from typing import Any

from gradewire_train.graded.data import entries
from gradewire_train.graded.part import PartRandom
from gradewire_train.graded.row import Drawn
from gradewire_train.graded.wording import remarks
from gradewire_train.texts.misspell import misspelt
from gradewire_train.texts.style import capitalised

_LEADS = (
    "I think {}",
    "{}",
    "{}",
    "because {}",
    "It is like this: {}",
    "My answer: {}",
    "we learned that {}",
    "Well, {}",
    "{} I guess",
)
_YES, _NO = (
    ("Yes", "Yes, that is so", "Yes indeed", "Correct"),
    ("No", "No, it is not so", "Not at all", "Certainly not"),
)


def science(rng: PartRandom, *, right: bool) -> Drawn:
    """What is expected, in a pupil's words; wrong: a wrong mechanism, the opposite, or another question's answer."""
    by_question = {entry["question"]: entry for entry in entries("science")}
    asked = rng.choice(tuple(by_question))
    entry = by_question[asked]
    if right:
        forms = [entry["expected"], *entry["right"], *entry["right"]]
        said = forms[rng.randrange(len(forms))]
    elif rng.random() < 0.8:
        said = entry["wrong"][rng.randrange(len(entry["wrong"]))]
    else:
        other = rng.choice([each for each in by_question if each != asked])
        said = by_question[other]["right"][0]
    expected = (entry["expected"], *entry["right"])
    reference = entry["expected"] if rng.random() < 0.7 else expected[rng.randrange(len(expected))]
    told = said[:1].lower() + said[1:] if rng.random() < 0.5 else said
    text = _LEADS[rng.randrange(len(_LEADS))].format(told.removeprefix("because "))
    if rng.random() < 0.15:
        text = misspelt(rng, text)
    question = asked if rng.random() < 0.8 else asked.lower().rstrip("?")
    return Drawn(
        question,
        (reference,),
        text if rng.random() < 0.5 else capitalised(text),
        "expected",
        "expected" if right else "other",
    )


def claim(rng: PartRandom, *, right: bool) -> Drawn:
    """Yes or no, in a word or with its reason, against a reference with a reason; wrong: the opposite."""
    by_question = {entry["question"]: entry for entry in entries("claims")}
    asked = rng.choice(tuple(by_question))
    entry = by_question[asked]
    holds = rng.random() < 0.5
    said = holds if right else not holds
    reference = _claimed(rng, entry, holds=holds, lengthy=True)
    answer = _claimed(rng, entry, holds=said, lengthy=rng.random() < 0.5)
    if rng.random() < 0.2:
        answer = f"{answer} {' '.join(remarks(rng, rng.randrange(1, 4)))}"
    return Drawn(asked, (reference,), answer, str(holds), str(said))


def _claimed(rng: PartRandom, entry: Mapping[str, Any], *, holds: bool, lengthy: bool) -> str:
    word = (_YES if holds else _NO)[rng.randrange(4)]
    short, reason = entry["yes" if holds else "no"]
    shape = rng.randrange(4)
    if not lengthy and shape < 2:
        return f"{word}." if shape else word.lower()
    return (f"{word}, {short}.", f"{word}. {reason}", reason, f"{capitalised(short)}.")[shape]
