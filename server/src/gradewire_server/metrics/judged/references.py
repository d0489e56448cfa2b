"""Choose references for a judge, decide binary questions by rule, and make up wrong references for the guard."""

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

_MAX_ALIAS_CHARACTERS: Final = 256
_RUN: Final = re.compile(r"[^\W_]+")
_GRAM: Final = 3
_COVERED: Final = 0.5
"""Minimum share of an alias's letter runs that an answer must contain to count as sharing a word with the alias."""
STOP_WORDS: Final = frozenset({
    "a", "an", "the", "and", "or", "of", "in", "on", "at", "to", "for", "from", "by", "with", "as",
    "is", "are", "was", "were", "be", "it", "its", "that", "this",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Closeness:
    """The order of aliases by closeness to an answer.

    Attributes:
        places: The aliases' indices, the closest alias first.
        shared: True if the closest alias shares a word with the answer. Otherwise, the order means nothing.
        share: The largest value over all aliases, 0 to 1. An alias's value is the share of its words (without articles
            and the like) or of its letter runs that the answer contains, whichever is larger.
    """

    places: Sequence[int]
    shared: bool
    share: float


def closest(keys: Sequence[str], prediction: str) -> Closeness:
    """Sort lower-case aliases by closeness to an answer, using each alias's first 256 characters.

    The closer alias is the one of which the prediction contains more. Compare the share of content words first, then
    the share of all words, then the share of three-letter runs (in words with letters beyond ASCII). Runs help in
    languages that inflect words or have no blanks between words.
    """
    lowered = prediction.casefold()
    said = set(split_words(lowered))
    grams = {lowered[at : at + size] for size in range(1, _GRAM + 1) for at in range(len(lowered) - size + 1)}
    ranks = [(*_shares(key[:_MAX_ALIAS_CHARACTERS], said, grams), -place) for place, key in enumerate(keys)]
    places = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)
    word_share, _, gram_share, _ = ranks[places[0]]
    share = max(max(word_share, gram_share) for word_share, _, gram_share, _ in ranks)
    return Closeness(places, shared=word_share > 0 or gram_share >= _COVERED, share=share)


def _shares(key: str, said: set[str], grams: set[str]) -> tuple[float, float, float]:
    words = set(split_words(key))
    content = words - STOP_WORDS or words
    word_share = len(content & said) / len(content)
    if word_share == 1:
        return 1.0, len(words & said) / len(words), 1.0
    own = {gram for run in _RUN.findall(key) if not run.isascii() for gram in _letter_runs(run)}
    gram_share = len(own & grams) / len(own) if own else 0.0
    return word_share, len(words & said) / len(words) if word_share else 0.0, gram_share


def _letter_runs(run: str) -> list[str]:
    if len(run) < _GRAM:
        return [run]
    return [run[at : at + _GRAM] for at in range(len(run) - _GRAM + 1)]


_NUMBERS: Final = ("1847", "42 km", "seventeen", "6.3", "9 March 1911", "380")
_NAMES: Final = ("Reykjavik", "Clara Jensen", "Lake Tana", "the Blue Room", "Tobias Brandt", "Montevideo")
_THINGS: Final = ("a lighthouse", "copper", "the violin", "a hedgehog", "by sledge", "cinnamon")
_KEY_FROM: Final = 0.5
"""Minimum share of a key's words that an answer must contain to count as stating the key."""
_ARTICLES: Final = frozenset({
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "le", "la", "les", "un", "une", "du", "de",
    "el", "los", "las", "una", "del", "il", "lo", "gli", "di",
})  # fmt: skip
"""Articles in other languages. If they counted, any text with "la" would contain half of "la Seine"."""
_WORD: Final = re.compile(r"\w+")
_MAX_KEY_CHARACTERS: Final = 4096

_ENDS: Final = " .,;:!?\"'"
_YES_OR_NO: Final = frozenset({"yes", "no"})
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CountedReferences:
    """Distinct references, most frequent first; equally frequent references keep their order.

    Attributes:
        texts: The first text of each distinct reference.
        counts: The number of occurrences of each reference; all 1 unless `votes`.
        places: The index of each reference's first occurrence.
        votes: True for annotators' votes (see `count_references`), False for aliases, each of which is a right answer.
    """

    texts: tuple[str, ...]
    counts: tuple[int, ...]
    keys: tuple[str, ...]
    places: tuple[int, ...]
    votes: bool

    def kept(self, places: Sequence[int]) -> "CountedReferences":
        """Return only the references at the indices `places`."""
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
    """Count equal references, and decide whether they are annotators' votes or aliases.

    References are votes if a reference occurs twice, word for word. References are also votes if the most common of
    several references is "yes" or "no", or if both "yes" and "no" occur. Other references are aliases, and their counts
    are 1, since lists of aliases may repeat a word in a different case.
    """
    first: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for place, reference in enumerate(references):
        key = reference_key(reference)
        first.setdefault(key, place)
        counts[key] += 1
    ordered = counts.most_common()  # stable: equal counts stay in the order of their first occurrence
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
    """Remove references with less than `share` (0 to 1) of the most frequent reference's count."""
    least = share * counted.counts[0] - _ROUNDING
    return counted.kept([place for place, count in enumerate(counted.counts) if count >= least])


@dataclass(frozen=True, slots=True)
class ChosenReferences:
    """References with single spaces, to show to a judge; `cut` is True if a long reference was cut or omitted."""

    counted: CountedReferences
    cut: bool

    @property
    def alone(self) -> int | None:
        """The index of the only shown alias; None if the references are votes or several aliases are shown."""
        return self.counted.places[0] if len(self.counted.places) == 1 and not self.counted.votes else None


def shown_references(
    references: Sequence[str], kept: CountedReferences, prediction: str, form: ReferenceForm, choice: ShownReferences
) -> ChosenReferences:
    """Return the references to show to a judge, of which `kept` are those that are not rare (see `without_rare`).

    If the form repeats references, return all of them as they were given, unless the closest alias alone is requested.
    """
    if not form.repeat or (choice is ShownReferences.CLOSEST and not kept.votes):
        return choose_shown(kept, prediction, form, choice)
    keys = [reference_key(reference) for reference in references]
    places = [place for place, key in enumerate(keys) if key in kept.keys]
    given = CountedReferences(
        tuple(references[place] for place in places),
        (1,) * len(places),
        tuple(keys[place] for place in places),
        tuple(places),
        votes=False,
    )
    return _within_space(given, range(len(places)), max(form.most, form.most_counted), in_order_given=True)


def choose_shown(
    counted: CountedReferences, prediction: str, form: ReferenceForm, choice: ShownReferences = ShownReferences.CLOSEST
) -> ChosenReferences:
    """Return the references to show to a judge, limited to the form's maximum number and to MAX_WORDS words in total.

    Choose the most frequent votes, or the aliases that are closest to the prediction. With AUTO, choose all aliases if
    the closest alias shares no word with the prediction.
    """
    ranked, most = _ranked(counted, prediction, form, choice)
    return _within_space(counted, ranked, most, in_order_given=form.order is ReferenceOrder.GIVEN)


def _within_space(
    counted: CountedReferences, ranked: Sequence[int], most: int, *, in_order_given: bool
) -> ChosenReferences:
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
    places = sorted(texts, key=counted.places.__getitem__ if in_order_given else None)
    return ChosenReferences(replace(counted.kept(places), texts=tuple(texts[place] for place in places)), cut)


def _ranked(
    counted: CountedReferences, prediction: str, form: ReferenceForm, choice: ShownReferences
) -> tuple[Sequence[int], int]:
    """Return the references' indices in order of preference, and the maximum number to show."""
    if counted.votes:
        return range(len(counted.texts)), form.most_counted
    found = closest(counted.keys, prediction)
    shows_all = choice is ShownReferences.ALL or (choice is ShownReferences.AUTO and not found.shared)
    return found.places, max(form.most, form.most_counted) if shows_all else form.most


def write_references(counted: CountedReferences, form: ReferenceForm, delimiters: Delimiters) -> str:
    """Return all references in the form's template. Neutralise each reference with `delimiters`."""
    template = form.counted if counted.votes else form.plain
    total = sum(counted.counts)
    return form.separator.join(
        template.format(reference=neutralise(text, delimiters), count=count, total=total)
        for text, count in zip(counted.texts, counted.counts, strict=True)
    )


def is_binary(counted: CountedReferences) -> bool:
    """Return True if the most common reference is "yes" or "no"."""
    return counted.keys[0] in {"yes", "no"}


def rule_verdict(question: str, references: Sequence[str], prediction: str) -> bool | None:
    """Return True if a prediction's "yes" or "no" agrees with most references, or False if it does not.

    Return None if the verdict is unclear. The verdict is clear if the most common reference is "yes" or "no", the
    question is a yes-or-no question, and the prediction clearly means "yes" or "no". It is unclear if "yes" and "no"
    are equally frequent among the references.
    """
    if not is_binary(count_references(references)) or not asks_yes_or_no(question):
        return None
    said, expected = leading_verdict(prediction), majority(references)
    return None if said is None or expected is None else said is expected


def majority(references: Sequence[str]) -> bool | None:
    """Return True if most references mean "yes", False if most mean "no", and None for a draw."""
    said = Counter(map(leading_verdict, references))
    return None if said[True] == said[False] else said[True] > said[False]


def says_key(item: Item, share: float) -> bool:
    """Return True if the prediction contains at least half of a reference's words, or half of its letter runs.

    Words of the question do not count, nor do single Latin letters, articles and the like, because every text contains
    such words. If a reference has only such words, the prediction must equal this reference. References with less than
    `share` of the most frequent reference's count are ignored.
    """
    asked = set(_words(item.question))
    keys = without_rare(count_references(item.references), share).keys
    if reference_key(item.prediction) in keys:
        return True
    own = [[word for word in _words(key) if word not in asked] for key in keys]
    # If the question contains all words of every key, as "Left or right?" does, use all words.
    named = [words for words in own if words] or [_words(key) for key in keys]
    telling = [" ".join(word for word in words if not _is_in_every_text(word)) for words in named]
    telling = [key for key in telling if key]
    return bool(telling) and closest(telling, item.prediction).share >= _KEY_FROM


def _is_in_every_text(word: str) -> bool:
    is_letter = len(word) == 1 and word.isascii() and word.isalpha()
    return is_letter or word in STOP_WORDS or word in _ARTICLES


def other_key(item: Item) -> tuple[str, ...]:
    """Return wrong references for this question, as if they belonged to a different question.

    If possible, a wrong reference has the kind of the most frequent reference (number, name or thing), and shares no
    word with the question or the references. For a yes-or-no question, the wrong reference is the opposite verdict.
    Votes are replaced with the same number of wrong references. The prediction has no influence, because an attacker
    may have written it.
    """
    counted = count_references(item.references)
    if is_binary(counted):
        key = "no" if counted.keys[0] == "yes" else "yes"
    else:
        said = {word for text in (item.question, *item.references) for word in _words(text)}
        ordered = _wrong_keys(counted.texts[0], item.question)
        key = next((key for key in ordered if said.isdisjoint(_words(key))), ordered[0])
    return (key,) * len(item.references) if counted.votes else (key,)


def _wrong_keys(reference: str, question: str) -> Sequence[str]:
    has_digit = any(map(str.isdigit, reference))
    fit = _NUMBERS if has_digit else _NAMES if reference[:1].isupper() else _THINGS
    begin = hashlib.blake2b(question.encode(), digest_size=2).digest()[0] % len(fit)
    others = [key for form in (_NAMES, _THINGS, _NUMBERS) if form is not fit for key in form]
    return [*fit[begin:], *fit[:begin], *others]


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:_MAX_KEY_CHARACTERS].casefold())


DEFAULT_SHARE: Final = 0.25
"""Minimum count of a shown reference, as a share of the most frequent reference's count (LAVE, section 4.2)."""


@dataclass(frozen=True, slots=True)
class View:
    """The parts of an item to show to a judge, and the demonstrations to show with it.

    Attributes:
        share: The minimum count of a shown reference, as a share of the most frequent reference's count.
        kind: The name of the demonstration set; "" means that the question determines the set.
        shots: The number of demonstrations to show from the start of the set; None means all.
    """

    caption: bool = False
    share: float = DEFAULT_SHARE
    kind: str = ""
    references: ShownReferences = ShownReferences.CLOSEST
    shots: int | None = None
    image: bool = False
