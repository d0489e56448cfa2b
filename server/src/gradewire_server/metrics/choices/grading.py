"""Choices compared with references: the part of choice_match that `correctness` and `auto` use too."""

import re
from dataclasses import dataclass
from typing import Final

from gradewire_proto.parts import ChoiceMatchParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status, quoted
from gradewire_server.metrics.choices.chosen import Choice, find_choice
from gradewire_server.metrics.choices.forms import pattern
from gradewire_server.metrics.choices.options import Options, any_letters, find_letters, find_options
from gradewire_server.metrics.choices.references import Wanted, wanted_of

LETTER: Final = re.compile(r"\s*[(\[]?([A-Za-z])[)\]]?[.:]?\s*")
_NO_OPTIONS: Final = Failure(
    Status.INVALID_INPUT,
    'question: contains no options such as "A) red B) blue", and no reference is a single letter. Give the options\' '
    "texts in `choices`",
)


@dataclass(frozen=True, slots=True)
class Graded:
    """An answer's choice, compared with the right options.

    Attributes:
        right: True if the answer chooses what a reference names.
        reference: The reference that the choice is compared with: the first matching one, otherwise the first one.
    """

    options: Options
    choice: Choice
    wanted: Wanted
    right: bool
    reference: int

    @property
    def result(self) -> MetricResult:
        """The result of choice_match, without warnings."""
        return MetricResult(float(self.right), matched_reference=self.reference, parts=self.parts, correct=self.right)

    @property
    def parts(self) -> ChoiceMatchParts:
        """The result's parts."""
        labels = self.options.labels
        place = self.wanted.places.index(self.reference)
        return ChoiceMatchParts(
            options=len(labels) if self.options.are_known else 0,
            chosen=tuple(labels[option] for option in self.choice.options),
            expected=tuple(labels[option] for option in sorted(self.wanted.sets[place])),
            by=self.choice.by,
            reason=self.choice.reason,
        )


def grade_item(item: Item) -> Graded | Failure:
    """Grade an item by its choice; return a failure if there are no options, or if a reference names none."""
    options = find_options(item.question, item.choices)
    if options is None:
        if not any(LETTER.fullmatch(reference) for reference in item.references):
            return _NO_OPTIONS
        options = any_letters(item.question)
    graded = grade_choice(item, options)
    if isinstance(graded, Graded) and not graded.right and graded.wanted.unnamed:
        return _unnamed(item, options, graded.wanted.unnamed[0])
    return graded


def grade_choice(item: Item, options: Options) -> Graded | Failure:
    """Compare an answer's choice with the options that the references name; return a failure if they name none."""
    wanted = wanted_of(item.references, options)
    if not wanted.sets:
        return _unnamed(item, options, 0)
    choice = find_choice(item.prediction, options, several=wanted.several)
    chosen = frozenset(choice.options)
    right = [place for place, each in zip(wanted.places, wanted.sets, strict=True) if each == chosen]
    is_right = bool(right) and not choice.reason
    return Graded(options, choice, wanted, is_right, right[0] if is_right else wanted.places[0])


def _unnamed(item: Item, options: Options, place: int) -> Failure:
    labels = options.labels
    known = f"{labels[0]} to {labels[-1]}"
    return Failure(
        Status.INVALID_INPUT,
        f"references[{place}]: {quoted(item.references[place])} names none of the options {known}. Give a letter or "
        "an option's text",
    )


_ASKS_FOR_OPTION: Final = re.compile(
    r"(?<!\w)(?:which|what|who|choose|select|pick|option|options|answer|welche\w{0,2}|was|wer|wähle\w{0,2}|quel\w{0,3}|lequel|laquelle|qui|"
    r"choisis\w{0,3}|cuál\w{0,2}|qué|quién|elige|elija|selecciona)(?!\w)|哪|下列|选|谁|什么",
    re.IGNORECASE,
)


def clear_choice(item: Item) -> Graded | None:
    """Return the graded choice if the item is clearly a multiple-choice question; see `choice_of`."""
    options = find_options(item.question, item.choices)
    if options is None:
        if not all(LETTER.fullmatch(reference) for reference in item.references):
            return None
        options = find_letters(item.question)
    if options is None or (options.kind == "number" and not item.choices and not _asks_for_option(options)):
        return None
    graded = grade_choice(item, options)
    return None if isinstance(graded, Failure) or graded.wanted.unnamed else graded


def _asks_for_option(options: Options) -> bool:
    """Return True if numbered lines in a question are options, and not steps or statements to count."""
    return (
        _ASKS_FOR_OPTION.search(options.stem) is not None and pattern("question", "count").search(options.stem) is None
    )
