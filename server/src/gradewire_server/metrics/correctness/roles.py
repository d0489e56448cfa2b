"""Find words of a reference that exchange their roles in an answer, such as subject and object."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from gradewire_server.metrics.correctness.sentences import (
    MARKERS,
    PARTICLES,
    SEPARATES,
    Sentence,
    bears_content,
    opposites,
)
from gradewire_server.metrics.correctness.words import VOCABULARY

_MOST_ARGUMENTS: Final = 10
_STEM_LETTERS: Final = 4
_WEIGHT_OF_SUBJECTS: Final = 1.5
"""Weight of a pair with the first words of both sentences, which are their subjects as a rule; others have 1."""
_PRONOUNS: Final = frozenset({"it", "he", "she", "they"})
SUBORDINATORS: Final = frozenset(VOCABULARY["words"]["subordinators"].split())
"""Words that begin a clause, which may stand before or behind the main clause."""


def roles_exchanged(wanted: Sentence, said: Sentence, shared: Sequence[str], antonyms: Mapping[str, str]) -> bool:
    """Return True if more pairs of shared words have exchanged their roles than have kept them.

    The agent behind "by" decides alone.
    """
    arguments = [
        word for word in shared if not word.isdigit() and wanted.tokens.count(word) == said.tokens.count(word) == 1
    ]
    if _gives_first_place_to_second(wanted, said, shared):
        return True
    kept, exchanged = 0, 0.0
    for one, other in combinations(arguments[:_MOST_ARGUMENTS], 2):
        found = _pair_exchanged(wanted, said, (one, other), antonyms)
        if found is not None:
            is_agent = one == wanted.content[0] and said.marker(other, wanted) == "by"
            if found and (is_agent or other in opposites(one)):
                return True
            exchanged += found * (_WEIGHT_OF_SUBJECTS if (one, other) == (wanted.content[0], said.content[0]) else 1.0)
            kept += not found
    return exchanged > kept


def _gives_first_place_to_second(wanted: Sentence, said: Sentence, shared: Sequence[str]) -> bool:
    """Return True for "Omar is the taller one" or "Omar is taller" if it should be "Ben is taller than Omar"."""
    if not shared or "than" not in wanted.words or "than" in said.words:
        return False
    second = wanted.tokens[wanted.places["than"] + 1 :]
    if wanted.content[0] in said.words or said.content[0] not in second or not _PRONOUNS.isdisjoint(said.words):
        return False
    return any(word not in second for word in shared)


def _pair_exchanged(
    wanted: Sentence, said: Sentence, pair: tuple[str, str], antonyms: Mapping[str, str]
) -> bool | None:
    """Return True if two words have exchanged their roles, False if they have kept them, None if that is not known."""
    one, other = pair
    inverted = said.places[one] > said.places[other]
    ours_between = wanted.tokens[wanted.places[one] + 1 : wanted.places[other]]
    theirs_between = said.between(*(pair[::-1] if inverted else pair))
    if not SUBORDINATORS.isdisjoint((*ours_between, *theirs_between)):
        return None
    replaced = [word for word in ours_between if antonyms.get(word, "") in theirs_between]
    ours = wanted.marker(one, said), wanted.marker(other, said)
    theirs = said.marker(one, wanted), said.marker(other, wanted)
    if ours in {("of", ""), ("", "of")} and ours == theirs[::-1]:
        return bool(antonyms) or len(wanted.words.intersection(said.content)) > len(pair)
    if replaced:
        return inverted or (("by" in ours) != ("by" in theirs) and PARTICLES.isdisjoint(replaced))
    if inverted and any(("der", word) in wanted.pairs & said.pairs for word in pair):
        return None
    related = not _pivots(wanted, said, pair).isdisjoint(theirs_between) or (
        "by" in theirs and ours == ("", "") and _has_other_form(ours_between, wanted, said)
    )
    return _exchanged_by_markers(ours, theirs, inverted=inverted) if related else None


def _has_other_form(words: Sequence[str], wanted: Sentence, said: Sentence) -> bool:
    """Return True if the answer has only another form of one of the words, such as "besiegt" for "besiegte"."""
    stems = {word[:_STEM_LETTERS] for word in words if len(word) > _STEM_LETTERS and word not in said.words}
    return bool(stems) and any(word[:_STEM_LETTERS] in stems for word in said.words - wanted.words)


def _exchanged_by_markers(ours: tuple[str, str], theirs: tuple[str, str], *, inverted: bool) -> bool | None:
    """Compare the prepositions of two words in the reference and in the answer, where their order may be inverted."""
    active = ("", "")
    if ours in {active, ("", "to")} and "by" in theirs:
        return theirs[0] != "by"
    object_first = ours == active and theirs in {("dem", ""), ("den", "")}
    given_to_subject = inverted and active in {ours, theirs} and (ours == ("", "to") or theirs == ("to", ""))
    if object_first or given_to_subject:
        return True
    if theirs == active and ours in {("", "dem"), ("", "den")}:
        return inverted
    if theirs == active and "by" in ours:
        return inverted != (ours[1] == "by")
    if ours == theirs:
        return inverted and ours[0] == ours[1]
    swapped = _same(ours[0], theirs[1]) and _same(ours[1], theirs[0])
    return True if swapped and (inverted or "of" not in ours) else None


def _same(ours: str, theirs: str) -> bool:
    return ours == theirs or (ours, theirs) in {("", "from"), ("from", ""), ("of", "by")}


def _pivots(wanted: Sentence, said: Sentence, pair: tuple[str, str]) -> frozenset[str]:
    """Return the reference's words between a pair that relate it: not members of a list, nor parts of a name."""
    one, other = pair
    begin, end = wanted.places[one], wanted.places[other]
    found = set()
    for place in range(begin + 1, end):
        word = wanted.tokens[place]
        opposed = other in opposites(one) and wanted.tokens.count(word) == 1 and bears_content(word)
        if (
            word not in MARKERS
            and word not in PARTICLES
            and not opposed
            and (not bears_content(word) or not SEPARATES.isdisjoint(wanted.tokens[place - 1 : place + 2]))
        ):
            continue
        before_both = place + 1 == end and (word, other) in said.pairs
        behind_both = place - 1 == begin and (one, word) in said.pairs
        if not (before_both or behind_both):
            found.add(word)
    return frozenset(found)
