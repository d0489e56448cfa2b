"""Sentences around an answer, by what the question asks for: `{p}` is the answer, `{n}` what the question names.

Written for this bench, apart from the templates that SFVE is trained on, of which four turned out to be the same plain
sentence: 156 of the stand-in's 541 samples have one. Without them the figures stay (docs/research/ave.md); they are
kept since the figures rest on this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.agreement.ave_stand_in.questions import QuestionKind

PLAIN: Mapping[QuestionKind, tuple[str, ...]] = {
    "person": ("It was {p}.", "That would be {p}.", "{p} is the one.", "The person is {p}."),
    "date": ("That was {when}.", "It happened {when}.", "The date is {p}.", "It took place {when}."),
    "place": ("The place is {p}.", "That is in {p}.", "You find it in {p}.", "The location is {p}."),
    "count": ("The number is {p}.", "There are {p} of them.", "In all, {p}.", "The count comes to {p}."),
    "amount": ("It comes to {p}.", "The amount is {p}.", "It is {p} altogether.", "The figure is {p}."),
    "measure": ("It is {p}.", "The figure given is {p}.", "It measures {p}.", "That would be {p}."),
    "reason": ("The reason is {p}.", "Because of {p}.", "It is due to {p}.", "{p} is why."),
    "yes_no": ("The answer is {p}.", "I would say {p}.", "My answer here is {p}.", "In short: {p}."),
    "named": ("The {n} {is} {p}.", "{p} {is} the {n}.", "As for the {n}: {p}.", "The {n} would be {p}."),
    "other": ("It is {p}.", "That is {p}.", "The answer is {p}.", "This would be {p}."),
}
WORDY: Mapping[QuestionKind, tuple[str, ...]] = {
    "person": (
        "As far as anybody can tell from what is known, the person being asked about here is {p}.",
        "I looked at what is said about this, and {p} is the name that fits best.",
        "Many names come to mind, but the right person in this case is {p}.",
        "Judging by the details given, you are thinking of {p}.",
    ),
    "date": (
        "If I remember the order of events correctly, this took place {when}.",
        "Going by the usual accounts, the time you are looking for is {p}.",
        "The event in question is commonly dated to {p}.",
        "Looking back at how things went, it came about {when}.",
    ),
    "place": (
        "As far as I can see from the description, the location being asked about is {p}.",
        "On a map you would have to look for {p}.",
        "Judging by the details given, all of this is set in {p}.",
        "The place that matches everything mentioned here is {p}.",
    ),
    "count": (
        "Counting all those that belong to it, one arrives at {p}.",
        "If nothing has been left out, the total number is {p}.",
        "According to what is generally stated, the number asked for here is {p}.",
        "As far as I know, there are {p} altogether.",
    ),
    "amount": (
        "Taking everything together, the amount in question comes to {p}.",
        "According to what is generally stated, it is about {p}.",
        "The sum that is usually quoted for this is {p}.",
        "As far as I know, the figure lies at {p}.",
    ),
    "measure": (
        "According to what is generally stated, the value asked for is {p}.",
        "If one measures it in the usual way, the result is {p}.",
        "As far as I know, {p} is the figure that is given for this.",
        "The value that is usually quoted here is {p}.",
    ),
    "reason": (
        "What lies behind this, as far as it is understood, is {p}.",
        "The explanation that is usually given for it is {p}.",
        "As far as I can tell, it all goes back to {p}.",
        "When you look into it, the cause turns out to be {p}.",
    ),
    "yes_no": (
        "Having thought about the question for a moment, I would answer {p}.",
        "As far as can be said from what is given, the answer here is {p}.",
        "Going by the details that are mentioned, one has to say {p}.",
        "If I had to decide, my answer to this would be {p}.",
    ),
    "named": (
        "As far as I can tell from what is asked, the {n} you are looking for {is} {p}.",
        "Of everything that could be meant, {p} {is} the {n} that fits this description.",
        "Judging by the details given, the {n} in question {is} {p}.",
        "I would say that the {n} we are talking about {is} {p}.",
    ),
    "other": (
        "As far as I can tell from the details given, the right answer here is {p}.",
        "Of everything that could be meant, {p} fits this description best.",
        "What is being asked about in this case is {p}.",
        "I would say that what you are looking for is {p}.",
    ),
}
QUOTED: tuple[str, ...] = (
    'The answer to "{q}" is {p}.',
    'To the question "{q}", my reply is {p}.',
    'When asked "{q}", I would name {p}.',
    'Asked "{q}", one should say {p}.',
)
