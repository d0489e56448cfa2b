"""Find answers that state a reference's words in a different relation: negated, opposite or exchanged."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gradewire_server.metrics.correctness.roles import SUBORDINATORS, roles_exchanged
from gradewire_server.metrics.correctness.sentences import (
    ALLIES,
    BREAK,
    NEGATORS,
    OPPOSITES,
    PARTICLES,
    SEPARATES,
    VERDICTS,
    Sentence,
    bears_content,
    opposites,
    sentences_of,
)
from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, MAY_NEGATE, NEGATIONS, VOCABULARY, FeatureText

_MOST_REFERENCES: Final = 12
_NAMES: Final = ("negated", "antonym", "exchanged")
_SAME: Final = (0.0, 0.0, 0.0)
_ONLY_EXCHANGED: Final = (0.0, 0.0, 1.0)
_FEW_WORDS: Final = 2
_TURNS: Final = frozenset({"up", "down"})
_DIRECTED: Final = frozenset(
    {"before", "after", "above", "below", "over", "under", "into", "inside", "from", "to", "by"}
)
_MIN_COVERAGE: Final = 0.6
"""Minimum share of a reference's content words that a sentence must state, for the two to be compared."""
_MIN_COVERAGE_OF_QUESTION: Final = 0.5
_MOST_NEW: Final = 5
"""Maximum number of new words beside an antonym, if a sentence has no word of the reference."""
_MOST_REJECTED: Final = 8
"""Maximum number of words from a negation to "but": "not Rome but Paris"."""
_REJECTS: Final = frozenset({"but", "until"})
_ADVERB: Final = re.compile(r"\w{3}ly$")
_FEWER: Final = frozenset({"less", "few"})
"""Words that negate the adjective or noun directly behind them."""
_CANCELS: Final = frozenset(VOCABULARY["words"]["no_negations"].split())
_LIST_OR_CLAUSE: Final = SEPARATES | SUBORDINATORS
_AMOUNTS: Final = frozenset({"more", "less", "most", "least", "many", "few", "here", "there"})
"""Words whose antonyms do not contradict them: "83 or more" means "at least 83"."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A reference beside a sentence of the answer.

    Attributes:
        has: Share of the reference's content words that the sentence has, 0 to 1, and their number.
        changes: 1 or 0 for a difference in negation, an antonym, and exchanged roles.
    """

    has: tuple[float, int]
    changes: tuple[float, float, float] = _SAME

    @property
    def is_same(self) -> bool:
        """True if both state the same, since the changes cancel each other out."""
        return sum(self.changes) % 2 == 0


def relation_features(
    references: Sequence[FeatureText], answer: FeatureText, asked: Collection[str]
) -> dict[str, float]:
    """Compare the relations that the answer states with those that the references state.

    The features compare each reference with the sentences of the answer that have enough of its words. If one of them
    states the same, all are 0, unless another reference has all its words and more in exchanged roles: beside "Maya
    overtook Lena", "Maya was overtaken by Lena" does not state "Maya passed Lena". Changes that cancel each other out
    count as none: "A is older than B" and "B is younger than A", "allowed" and "not forbidden".

    Returns:
        `negated`: 1 if the sentences differ by a negation. `antonym`: 1 if an antonym stands in the place of a
        reference's word. `exchanged`: 1 if two words have exchanged their roles, such as subject and object.
    """
    sentences: list[Sentence] | None = None
    compared: list[_Comparison] = []
    may_negate = MAY_NEGATE.search(answer.raw) is not None or not NEGATORS.isdisjoint(answer.distinct)
    for reference in references[:_MOST_REFERENCES]:
        content = reference.distinct.difference(FUNCTION_WORDS)
        lacking = content.difference(answer.distinct)
        if not _can_be_compared(reference, content, lacking):
            continue
        if not may_negate and not _may_differ(reference, content, answer):
            if not lacking:
                compared.append(_Comparison((1.0, len(content))))
            continue
        wanted = Sentence.shared(reference.raw)
        if not wanted.content:
            continue
        sentences = sentences or list(sentences_of(answer.raw))
        compared.extend(found for said in sentences if (found := _compared(wanted, said, asked)) is not None)
    return dict(zip(_NAMES, _deciding(compared), strict=True))


def _deciding(compared: Sequence[_Comparison]) -> tuple[float, float, float]:
    """Return the changes that decide: none if a reference is stated by more of its words than one with exchanged roles.

    Without a reference that is stated, the first comparison decides.
    """
    stated = max((each.has for each in compared if each.is_same), default=None)
    if stated is None:
        return compared[0].changes if compared else _SAME
    return _ONLY_EXCHANGED if any(each.changes == _ONLY_EXCHANGED and each.has > stated for each in compared) else _SAME


def _can_be_compared(reference: FeatureText, content: Collection[str], lacking: Collection[str]) -> bool:
    only = reference.words[0] if len(reference.words) == 1 else ""
    return len(lacking) <= max(_FEW_WORDS, len(content) / 2) and not (
        only and (only in VERDICTS or not opposites(only))
    )


def _may_differ(reference: FeatureText, content: Collection[str], answer: FeatureText) -> bool:
    """Return False if a comparison is sure to find no change; most references are names that answers repeat."""
    both = reference.distinct | answer.distinct
    return (
        len(content) > _FEW_WORDS
        or not NEGATORS.isdisjoint(reference.distinct)
        or any(not opposites(word).isdisjoint(answer.distinct) for word in reference.distinct - answer.distinct)
        or not both.isdisjoint(_TURNS)
        or not _DIRECTED.isdisjoint(reference.distinct)
    )


def states(wanted: Sentence, said: Sentence) -> bool | None:
    """Return True if a sentence states another one, False if it states the opposite, None if neither is clear."""
    compared = _compared(wanted, said, frozenset(), _MIN_COVERAGE_OF_QUESTION)
    if compared is None or not compared.is_same:
        return None if compared is None else False
    lacks = sum(word not in said.words for word in wanted.content) > sum(compared.changes) + said.stands_in(wanted)
    adds = not wanted.words.issuperset(said.content)
    return None if lacks and adds else True


def _compared(
    wanted: Sentence, said: Sentence, asked: Collection[str], least: float = _MIN_COVERAGE
) -> _Comparison | None:
    """Compare a reference with a sentence; None if the sentence has too few of its words."""
    shared = [word for word in wanted.content if word in said.words]
    lacking = [word for word in wanted.content if word not in said.words]
    if len(lacking) > max(2, len(wanted.content) / 2):
        return None
    antonyms = _antonyms(wanted, said, lacking)
    stated = len(shared) + len(antonyms) + said.stands_in(wanted)
    if stated < least * len(wanted.content) or not (shared or antonyms):
        return None
    if not shared and len([word for word in said.content if word not in asked]) > _MOST_NEW:
        return None
    exchanged = roles_exchanged(wanted, said, shared, antonyms)
    if "than" in wanted.words and antonyms and wanted.content[0] not in said.words:
        return None
    ours, theirs = frozenset(shared).union(antonyms), frozenset(shared).union(antonyms.values())
    negated = NEGATORS.isdisjoint(asked) and (_negations(wanted, ours, asked) + _negations(said, theirs, asked)) % 2
    changes = float(negated), float(len(antonyms) % 2), float(exchanged)
    return _Comparison((len(shared) / len(wanted.content), len(shared)), changes)


def _antonyms(wanted: Sentence, said: Sentence, lacking: Sequence[str]) -> dict[str, str]:
    """Return the reference's words that the answer replaces by an antonym, with the antonym."""
    others = said.words.difference(wanted.words, *(ALLIES.get(word, ()) for word in wanted.words))
    found = {
        word: min(here)
        for word in lacking
        if word not in PARTICLES and word not in _AMOUNTS and (here := opposites(word).intersection(others))
    }
    for one, other in pairwise(wanted.tokens):
        if one in said.words and (one, other) not in said.pairs:
            others_here = opposites(one).difference(wanted.words)
            found.update((one, each) for each in sorted(others_here) if (each, other) in said.pairs)
    if not others.isdisjoint(PARTICLES):
        found.update(tuple(_particles(wanted, said, others, found)))
    return found


def _particles(
    wanted: Sentence, said: Sentence, others: Collection[str], found: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield small words in whose place the answer has their opposite."""
    for place, word in enumerate(wanted.tokens):
        if word in PARTICLES and word not in said.words and wanted.tokens[max(0, place - 1)] not in found:
            for other in sorted(OPPOSITES.get(word, frozenset()).intersection(others)):
                there = said.places[other]
                before = wanted.tokens[max(0, place - 1) : place] == said.tokens[max(0, there - 1) : there]
                behind = wanted.tokens[place + 1 : place + 2] == said.tokens[there + 1 : there + 2]
                if (before and place) or (behind and place + 1 < len(wanted.tokens)):
                    yield word, other


def _negations(sentence: Sentence, known: Collection[str], asked: Collection[str]) -> int:
    """Return the number of negations of known words; not those that only reject something else."""
    found, tokens = 0, sentence.tokens
    last = max((place for place, word in enumerate(tokens) if word in known), default=-1)
    for place, word in enumerate(tokens[:last]):
        if (word not in NEGATORS and word not in _FEWER) or word in asked:
            continue
        after = tokens[place + 1 : last + 1]
        rejects = word in NEGATIONS and not _REJECTS.isdisjoint(tokens[place + 1 : place + _MOST_REJECTED])
        if after[0] in _CANCELS or rejects:
            continue
        if word in _FEWER and (after[0] not in known or tokens[max(0, place - 1)] == "at" or after[0].isdigit()):
            continue
        behind = [other for other in after if other == BREAK or (bears_content(other) and not _ADVERB.search(other))]
        skips = behind[:1] != ["same"] and behind[:1] != [BREAK]
        first = next((other for other in behind[: 1 + skips] if other in known), "")
        if first and (word in _FEWER or _LIST_OR_CLAUSE.isdisjoint(tokens[sentence.places[first] : place])):
            found += 1
    return found
