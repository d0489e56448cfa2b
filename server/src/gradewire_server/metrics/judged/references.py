"""References of a judge: counted, the closest first; binary questions; and the key of another question, as a guard."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gradewire_proto.choices import ShownReferences
from gradewire_server.domain.items import Item
from gradewire_server.metrics.prompts.neutralise import MAX_CHARACTERS, Delimiters, cut_to_words, neutralise
from gradewire_server.metrics.prompts.prompt_file import ReferenceForm, ReferenceOrder
from gradewire_server.metrics.text.words import MAX_WORDS, split_words
from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict

_MOST_CHARACTERS: Final = 256
"""Characters of an alias that are compared: a request may bring a thousand long ones."""
_RUN: Final = re.compile(r"[^\W_]+")
_GRAM: Final = 3
_COVERED: Final = 0.5
"""Share of an alias' runs of letters from which it has a word in common with an answer, but for endings."""
STOP_WORDS: Final = frozenset({
    "a", "an", "the", "and", "or", "of", "in", "on", "at", "to", "for", "from", "by", "with", "as",
    "is", "are", "was", "were", "be", "it", "its", "that", "this",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Closeness:
    """Places of aliases by how close they are to an answer, the closest first.

    Attributes:
        shared: Whether the closest one has a word in common with the answer; where none has, their order says nothing.
        share: The largest share of an alias that is in the answer, 0 to 1: of its words without articles and the like,
            or of runs of three letters of its words with letters beyond ASCII.
    """

    places: Sequence[int]
    shared: bool
    share: float


def closest(keys: Sequence[str], prediction: str) -> Closeness:
    """Sort aliases, in lower case, by how close they are to an answer; their first 256 characters count.

    Closer is that of whose words, without articles and the like, a larger share is in the prediction; of equal ones
    that of all of whose words a larger share is, then that with the larger share of runs of three letters, counted in
    words with letters beyond ASCII: they may have endings, or no blanks between them.
    """
    lowered = prediction.casefold()
    said = set(split_words(lowered))
    grams = {lowered[at : at + size] for size in range(1, _GRAM + 1) for at in range(len(lowered) - size + 1)}
    ranks = [(*_shares(key[:_MOST_CHARACTERS], said, grams), -place) for place, key in enumerate(keys)]
    places = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    told, _, covered, _ = ranks[places[0]]
    share = max(max(told, covered) for told, _, covered, _ in ranks)
    return Closeness(places, shared=told > 0 or covered >= _COVERED, share=share)


def _shares(key: str, said: set[str], grams: set[str]) -> tuple[float, float, float]:
    words = set(split_words(key))
    telling = words - STOP_WORDS or words
    told = len(telling & said) / len(telling)
    if told == 1:
        return 1.0, len(words & said) / len(words), 1.0
    own = {gram for run in _RUN.findall(key) if not run.isascii() for gram in _grams(run)}
    covered = len(own & grams) / len(own) if own else 0.0
    return told, len(words & said) / len(words) if told else 0.0, covered


def _grams(run: str) -> list[str]:
    """Return runs of three letters; a shorter word is one itself."""
    if len(run) < _GRAM:
        return [run]
    return [run[at : at + _GRAM] for at in range(len(run) - _GRAM + 1)]


_NUMBERS: Final = ("1847", "42 km", "seventeen", "6.3", "9 March 1911", "380")
_NAMES: Final = ("Reykjavik", "Clara Jensen", "Lake Tana", "the Blue Room", "Tobias Brandt", "Montevideo")
_THINGS: Final = ("a lighthouse", "copper", "the violin", "a hedgehog", "by sledge", "cinnamon")
_KEY_FROM: Final = 0.5
"""Share of a key's words from which an answer says it: one word of a longer key is soon met, in any language."""
_ARTICLES: Final = frozenset({
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "le", "la", "les", "un", "une", "du", "de",
    "el", "los", "las", "una", "del", "il", "lo", "gli", "di",
})  # fmt: skip
"""Beside the English ones: with one of them half of "la Seine" would be said."""
_WORD: Final = re.compile(r"\w+")
_MOST_KEY_CHARACTERS: Final = 4096
"""Of a text whose words are looked at: a request may bring a thousand long ones."""

_ENDS: Final = " .,;:!?\"'"
_YES_OR_NO: Final = frozenset({"yes", "no"})
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CountedReferences:
    """Distinct references, most frequent first, else in the order in which they came.

    Attributes:
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

    def kept(self, places: Sequence[int]) -> "CountedReferences":
        """Return those at `places`."""
        return CountedReferences(
            tuple(self.texts[place] for place in places),
            tuple(self.counts[place] for place in places),
            tuple(self.keys[place] for place in places),
            tuple(self.places[place] for place in places),
            self.votes,
        )


def reference_key(text: str) -> str:
    """Return the key that equal references share: lower case, single spaces, no punctuation at the ends."""
    lowered = " ".join(text.casefold().split())
    return lowered.strip(_ENDS) or lowered


def count_references(references: Sequence[str]) -> CountedReferences:
    """Count equal references.

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
    return CountedReferences(
        tuple(references[place] for place in places), tuple(count for _, count in ordered), keys, places, votes
    )


def _yes_or_no(ordered: Sequence[tuple[str, int]]) -> bool:
    key, count = ordered[0]
    if key in _YES_OR_NO:
        return len(ordered) > 1 or count > 1
    return {True, False} <= {leading_verdict(key) for key, _ in ordered}


def without_rare(counted: CountedReferences, share: float) -> CountedReferences:
    """Leave out what was given less often than `share` (0 to 1) of the most frequent reference's count."""
    least = share * counted.counts[0] - _ROUNDING
    return counted.kept([place for place, count in enumerate(counted.counts) if count >= least])


@dataclass(frozen=True, slots=True)
class ChosenReferences:
    """References that a judge is shown, their texts with single spaces, and whether something of them is cut."""

    counted: CountedReferences
    cut: bool

    @property
    def alone(self) -> int | None:
        """Return where the alias stands that is shown alone; None for votes, and where several are shown."""
        return self.counted.places[0] if len(self.counted.places) == 1 and not self.counted.votes else None


def choose_shown(
    counted: CountedReferences, prediction: str, form: ReferenceForm, choice: ShownReferences = ShownReferences.CLOSEST
) -> ChosenReferences:
    """Return the references that a judge is shown: as many as the form says, in as many words as a prediction may have.

    Of votes the most frequent are shown. Of aliases those are that are closest to the prediction, in their order: any
    one of them will do for an answer to be right, so those that have nothing in common with it tell a judge least. With
    AUTO all are shown where the closest has no word in common with the prediction.
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
    return ChosenReferences(replace(counted.kept(places), texts=tuple(texts[place] for place in places)), cut)


def _ranked(
    counted: CountedReferences, prediction: str, form: ReferenceForm, choice: ShownReferences
) -> tuple[Sequence[int], int]:
    """Return places of the references, the ones to be shown first, and how many of them."""
    if counted.votes:
        return range(len(counted.texts)), form.most_counted
    found = closest(counted.keys, prediction)
    shows_all = choice is ShownReferences.ALL or (choice is ShownReferences.AUTO and not found.shared)
    return found.places, max(form.most, form.most_counted) if shows_all else form.most


def write_references(counted: CountedReferences, form: ReferenceForm, delimiters: Delimiters) -> str:
    """Return references in one line; `delimiters` as in `neutralise`."""
    template = form.counted if counted.votes else form.plain
    total = sum(counted.counts)
    return form.separator.join(
        template.format(reference=neutralise(text, delimiters), count=count, total=total)
        for text, count in zip(counted.texts, counted.counts, strict=True)
    )


def is_binary(counted: CountedReferences) -> bool:
    """Return whether the most common reference is yes or no; `counted` as `count_references` gives it."""
    return counted.keys[0] in {"yes", "no"}


def rule_verdict(question: str, references: Sequence[str], prediction: str) -> bool | None:
    """Return whether the yes or no that a prediction says is that of most references; None for the judge to decide.

    None where the most common reference is neither, the question asks for something else ("Who wrote it?" of a band
    named Yes), the prediction says neither beyond doubt, or as many references say the one as the other.
    """
    if not is_binary(count_references(references)) or not asks_yes_or_no(question):
        return None
    said, expected = leading_verdict(prediction), majority(references)
    return None if said is None or expected is None else said is expected


def majority(references: Sequence[str]) -> bool | None:
    """Return True for yes, False for no; None where as many references say the one as the other."""
    said = Counter(map(leading_verdict, references))
    return None if said[True] == said[False] else said[True] > said[False]


def says_key(item: Item, share: float) -> bool:
    """Return whether the prediction has half of a reference's words, or of its letters, that the question has not.

    Latin letters that stand alone, articles and the like do not count, for they stand in every text: of a reference
    that is nothing else, only an answer that is the reference and no more says it. References rarer than `share` of the
    most frequent one do not count.
    """
    asked = set(_words(item.question))
    keys = without_rare(count_references(item.references), share).keys
    if reference_key(item.prediction) in keys:
        return True
    own = [[word for word in _words(key) if word not in asked] for key in keys]
    # "Left or right?" has all words of its key.
    named = [words for words in own if words] or [_words(key) for key in keys]
    telling = [" ".join(word for word in words if not _is_met_anywhere(word)) for words in named]
    telling = [key for key in telling if key]
    return bool(telling) and closest(telling, item.prediction).share >= _KEY_FROM


def _is_met_anywhere(word: str) -> bool:
    is_letter = len(word) == 1 and word.isascii() and word.isalpha()
    return is_letter or word in STOP_WORDS or word in _ARTICLES


def other_key(item: Item) -> tuple[str, ...]:
    """References of another question, by which no answer to this one is right; the same ones for the same question.

    They are of the same form as the most frequent reference (a number, a name, a thing), as many as the item has where
    those are votes, and have no word in common with question and references. The prediction has no say: it may want to
    choose. Of a yes/no question it is the other one of yes and no.
    """
    counted = count_references(item.references)
    if is_binary(counted):
        key = "no" if counted.keys[0] == "yes" else "yes"
    else:
        said = {word for text in (item.question, *item.references) for word in _words(text)}
        ordered = _in_order(counted.texts[0], item.question)
        key = next((key for key in ordered if said.isdisjoint(_words(key))), ordered[0])
    return (key,) * len(item.references) if counted.votes else (key,)


def _in_order(reference: str, question: str) -> Sequence[str]:
    """Return keys of the reference's form, beginning anywhere, then those of other forms."""
    has_digit = any(map(str.isdigit, reference))
    fit = _NUMBERS if has_digit else _NAMES if reference[:1].isupper() else _THINGS
    begin = hashlib.blake2b(question.encode(), digest_size=2).digest()[0] % len(fit)
    others = [key for form in (_NAMES, _THINGS, _NUMBERS) if form is not fit for key in form]
    return [*fit[begin:], *fit[:begin], *others]


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_KEY_CHARACTERS].casefold())


DEFAULT_SHARE: Final = 0.25
"""References rarer than this share of the most frequent one are not shown (LAVE, section 4.2)."""


@dataclass(frozen=True, slots=True)
class View:
    """What of an item a judge is shown, and beside which demonstrations.

    Attributes:
        share: References rarer than this share of the most frequent one are not shown.
        kind: Kind of question to take the demonstrations of; "" finds out.
        shots: Demonstrations that are shown, the first ones of their set; None for all.
    """

    caption: bool = False
    share: float = DEFAULT_SHARE
    kind: str = ""
    references: ShownReferences = ShownReferences.CLOSEST
    shots: int | None = None
    image: bool = False
