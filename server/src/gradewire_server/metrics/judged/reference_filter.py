"""Which references a judge is shown, and how often each was given.

Source: Mañas, Krojer and Agrawal 2024, "Improving Automatic VQA Evaluation Using Large Language Models" (LAVE), section
4.2: answers given by less than a quarter of the most frequent one's annotators are left out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gradewire_server.metrics.judged.neutralise import MAX_CHARACTERS, Delimiters, cut_to_words, neutralise
from gradewire_server.metrics.judged.prompts import ReferenceForm, ReferenceOrder
from gradewire_server.metrics.judged.reference_closeness import closest
from gradewire_server.metrics.text.word_split import MAX_WORDS
from gradewire_server.metrics.text.yes_no import leading_verdict

_ENDS: Final = " .,;:!?\"'"
_YES_OR_NO: Final = frozenset({"yes", "no"})
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Counted:
    """Distinct references, most frequent first, else in the order in which they came.

    Attributes:
        texts: As first written.
        counts: How often each was given; all 1 unless `votes`.
        keys: What made them equal: lower case, single spaces, no punctuation at the ends.
        places: Where each stood first among the references.
        votes: Whether they are annotators' votes, see `count_references`; else aliases, any of which will do.
    """

    texts: tuple[str, ...]
    counts: tuple[int, ...]
    keys: tuple[str, ...]
    places: tuple[int, ...]
    votes: bool

    def kept(self, places: Sequence[int]) -> "Counted":
        """Those at `places`."""
        return Counted(
            tuple(self.texts[place] for place in places),
            tuple(self.counts[place] for place in places),
            tuple(self.keys[place] for place in places),
            tuple(self.places[place] for place in places),
            self.votes,
        )


def reference_key(text: str) -> str:
    """The key that equal references share: lower case, single spaces, no punctuation at the ends."""
    lowered = " ".join(text.casefold().split())
    return lowered.strip(_ENDS) or lowered


def count_references(references: Sequence[str]) -> Counted:
    """Counts equal references.

    They are votes where a text was given more than once, word for word, as annotators do; and wherever yes or no is the
    most common one, or some say yes and others no: then one of them alone would hide what the others say. Else they are
    aliases: such lists hold the same words in another case, and their counts say nothing.
    """
    first: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for place, reference in enumerate(references):
        key = reference_key(reference)
        first.setdefault(key, place)
        counts[key] += 1
    ordered = counts.most_common()  # stable: equal counts stay in the order of their first coming
    votes = len({" ".join(reference.split()) for reference in references}) < len(references) or _yes_or_no(ordered)
    if not votes:
        ordered = [(key, 1) for key in first]
    keys = tuple(key for key, _ in ordered)
    places = tuple(first[key] for key in keys)
    return Counted(
        tuple(references[place] for place in places), tuple(count for _, count in ordered), keys, places, votes
    )


def _yes_or_no(ordered: Sequence[tuple[str, int]]) -> bool:
    key, count = ordered[0]
    if key in _YES_OR_NO:
        return len(ordered) > 1 or count > 1
    return {True, False} <= {leading_verdict(key) for key, _ in ordered}


def without_rare(counted: Counted, share: float) -> Counted:
    """Leaves out what was given less often than `share` (0 to 1) of the most frequent reference's count."""
    least = share * counted.counts[0] - _ROUNDING
    return counted.kept([place for place, count in enumerate(counted.counts) if count >= least])


class ReferenceChoice(StrEnum):
    """Which of several aliases a judge is shown; of votes it is shown all, whatever is chosen."""

    CLOSEST = "closest"
    ALL = "all"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Shown:
    """References that a judge is shown.

    Attributes:
        counted: Which, their texts with single spaces.
        cut: Something of those that there was a place for is left out.
    """

    counted: Counted
    cut: bool

    @property
    def alone(self) -> int | None:
        """Where the alias stands that is shown alone; None for votes, and where several are shown."""
        return self.counted.places[0] if len(self.counted.places) == 1 and not self.counted.votes else None


def choose_shown(
    counted: Counted, prediction: str, form: ReferenceForm, choice: ReferenceChoice = ReferenceChoice.CLOSEST
) -> Shown:
    """References that a judge is shown: as many as the form says, together with as many words as a prediction may have.

    Of votes the most frequent are shown. Of aliases those are that are closest to the prediction, in their order: any
    one of them will do for an answer to be right, so those that have nothing in common with it tell a judge least.

    Args:
        counted: The references.
        prediction: As it is shown.
        form: Says how many votes, and how many aliases where the closest are shown; of all that may be shown there are
            as many as of votes.
        choice: Of aliases: the closest; all; or (auto) the closest where it has a word in common with the prediction,
            else all, for then nothing says which is the closest.
    """
    ranked, most = _ranked(counted, prediction, form, choice)
    room_words, room_characters = MAX_WORDS, MAX_CHARACTERS
    texts: dict[int, str] = {}
    cut = False
    for place in ranked[:most]:
        text, shortened = cut_to_words(counted.texts[place], MAX_WORDS)
        words = text.count(" ") + 1
        if texts and (words > room_words or len(text) > room_characters):
            cut = True
            continue
        room_words -= words
        room_characters -= len(text)
        cut |= shortened
        texts[place] = text
    places = sorted(texts, key=counted.places.__getitem__ if form.order is ReferenceOrder.GIVEN else None)
    return Shown(replace(counted.kept(places), texts=tuple(texts[place] for place in places)), cut)


def _ranked(
    counted: Counted, prediction: str, form: ReferenceForm, choice: ReferenceChoice
) -> tuple[Sequence[int], int]:
    """Places of the references, the ones to be shown first, and how many of them."""
    if counted.votes:
        return range(len(counted.texts)), form.most_counted
    found = closest(counted.keys, prediction)
    shows_all = choice is ReferenceChoice.ALL or (choice is ReferenceChoice.AUTO and not found.shared)
    return found.places, max(form.most, form.most_counted) if shows_all else form.most


def write_references(counted: Counted, form: ReferenceForm, delimiters: Delimiters) -> str:
    """References in one line; `delimiters` as in `neutralise`."""
    template = form.counted if counted.votes else form.plain
    total = sum(counted.counts)
    return form.separator.join(
        template.format(reference=neutralise(text, delimiters), count=count, total=total)
        for text, count in zip(counted.texts, counted.counts, strict=True)
    )
