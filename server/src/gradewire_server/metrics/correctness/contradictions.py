"""Find words in an answer that contradict a reference."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from rapidfuzz.distance import Indel, Levenshtein

from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, VOCABULARY, FeatureText, folded_words
from gradewire_server.metrics.text.normalise import known_words, opposites_of

_MAX_ALIGNED_WORDS: Final = 48
_MOST_CLAUSES: Final = 32
_NO_ANTONYMS: Final = FUNCTION_WORDS | {"more", "less", "most", "least", "here", "there", "many", "few"}
"""Words whose antonyms do not contradict them: "83 or more" means "at least 83"."""
_MAX_CACHED_TEXTS: Final = 64
_NEAR_SPELLING: Final = 0.75
_MAX_WORDS_AFTER_NEGATION: Final = 6
_CLAUSE_END: Final = re.compile(r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\b(?:but|because|since|however)\b")
_SENTENCE_END: Final = re.compile(r"[.!?;](?!\w)|\n")
_NOT: Final = re.compile(r"\b(\w+)n't\b|\bcan(?:not|'t)\b|\bwon't\b")
NEGATIONS: Final = frozenset({"not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "cannot"})
"""Words that negate the words after them; `clause_words` turns "n't" into "not"."""
MAY_NEGATE: Final = re.compile(
    r"\b(?:no|not|never|neither|nor|none|nobody|nothing|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
_NO_NEGATIONS: Final = frozenset(VOCABULARY["words"]["no_negations"].split())
"""Words that cancel the negation before them, such as "only" in "not only"."""
_NO_COMPARATIVES: Final = frozenset({"rather", "more", "less", "few", "fewer", "other", "much", "little"})
"""Words before "than" that do not compare two names: "rather than Rome", "more than 259"."""


def contradiction_features(
    best: FeatureText, answer: FeatureText, said: Collection[str], asked: Collection[str]
) -> dict[str, float]:
    """Return features for an answer that contradicts SMILE's best reference.

    `said` are the answer's words with their other forms, and `asked` the question's words.

    Returns:
        `swapped`: if a sentence of the answer replaces a reference word that is not in the question, the share (0 to
        below 1) of the reference's words that the sentence keeps; otherwise 0. `opposite`: 1 if the answer contains an
        antonym of a reference word, reverses a comparison or differs in a negation; otherwise 0. `opposite` is also 0
        if two of these changes cancel out ("A is older than B", "B is younger than A").
    """
    reference = clause_words(best.raw)[:_MAX_ALIGNED_WORDS]
    new = frozenset(word for word in reference if word not in asked and word not in FUNCTION_WORDS and word not in said)
    swapped = _swapped(reference, _closest_sentence(reference, answer), new, asked) if new else 0.0
    opposites = frozenset().union(*(opposites_of(word) for word in best.distinct.difference(said, _NO_ANTONYMS)))
    may_negate = MAY_NEGATE.search(answer.raw) is not None or not NEGATIONS.isdisjoint(reference)
    if not may_negate and "than" not in answer.distinct and opposites.isdisjoint(answer.distinct):
        return {"swapped": swapped, "opposite": 0.0}
    clauses = _clauses(answer.raw, _CLAUSE_END)
    antonym = _has_antonym_without_negation(opposites, clauses)
    closest = _closest_sentence(reference, answer)
    turned = (
        antonym
        + _differs_in_negation(_clauses(best.raw, _CLAUSE_END), clauses, asked)
        + (_reverses_comparison(reference, closest) and (antonym or closest[closest.index("than") - 1] in reference))
    )
    return {"swapped": swapped, "opposite": float(turned % 2)}


def _closest_sentence(reference: Sequence[str], answer: FeatureText) -> Sequence[str]:
    words = frozenset(reference)
    return max(_clauses(answer.raw, _SENTENCE_END), key=lambda each: len(words.intersection(each)), default=())


def _clauses(text: str, end: re.Pattern[str]) -> list[tuple[str, ...]]:
    return [clause_words(part) for part in islice(end.split(text), _MOST_CLAUSES) if part.strip()]


@lru_cache(maxsize=_MAX_CACHED_TEXTS)
def clause_words(text: str) -> tuple[str, ...]:
    """Return a clause's folded words; "isn't" becomes "is" and "not"."""
    plain = text.replace("\u2019", "'").casefold()
    return folded_words(_NOT.sub(lambda match: f"{match[1] or match[0][:2]} not", plain)) if plain.strip() else ()


def _swapped(reference: Sequence[str], sentence: Sequence[str], new: frozenset[str], asked: Collection[str]) -> float:
    known = frozenset(reference).union(asked)
    same, swapped = 0, False
    for step in Levenshtein.opcodes(reference, sentence[:_MAX_ALIGNED_WORDS]):
        ours = reference[step.src_start : step.src_end]
        if step.tag == "equal":
            same += len(ours)
        elif step.tag == "replace":
            theirs = [word for word in sentence[step.dest_start : step.dest_end] if word not in known]
            wanted = [word for word in ours if word in new]
            swapped |= any(_is_replaced_by(word, theirs) for word in wanted)
    return same / len(reference) if swapped else 0.0


def _is_replaced_by(word: str, theirs: Sequence[str]) -> bool:
    theirs = [other for other in theirs if other not in FUNCTION_WORDS]
    both = known_words()
    return bool(theirs) and not any(
        Indel.normalized_similarity(word, other) >= _NEAR_SPELLING and not (word in both and other in both)
        for other in theirs
    )


def _has_antonym_without_negation(opposites: frozenset[str], clauses: Sequence[Sequence[str]]) -> bool:
    found = [(clause, here) for clause in clauses if (here := opposites.intersection(clause))]
    return bool(found) and not any(_is_negated(clause, here) for clause, here in found)


def _reverses_comparison(reference: Sequence[str], sentence: Sequence[str]) -> bool:
    than = sentence.index("than") if "than" in sentence else 0
    if not 0 < than < len(sentence) - 1 or sentence[than - 1] in _NO_COMPARATIVES:
        return False
    theirs = reference.index("than") if "than" in reference else len(reference)
    compared = frozenset(reference[:theirs]).difference(
        FUNCTION_WORDS, reference[theirs - 1 : theirs], (sentence[than - 1],)
    )
    return bool(compared.intersection(sentence[than:])) and not compared.intersection(sentence[:than])


def _differs_in_negation(
    references: Sequence[Sequence[str]], clauses: Sequence[Sequence[str]], asked: Collection[str]
) -> bool:
    """Return True if either the reference's longest clause or the answer's closest clause is negated, but not both.

    Compare clauses, because "No, it does not" has two negations but negates once. After a negative question, return
    False, because both forms mean the same.
    """
    reference = max(references, key=lambda words: len(_counted(words)), default=())[:_MAX_ALIGNED_WORDS]
    counted = _counted(reference)
    if not counted or not NEGATIONS.isdisjoint(asked):
        return False
    closest = max(clauses, key=lambda words: len(counted.intersection(words)), default=())
    shared = counted.intersection(closest)
    return 2 * len(shared) >= len(counted) and _is_negated(reference, shared) != _is_negated(closest, shared)


def _counted(words: Sequence[str]) -> frozenset[str]:
    return frozenset(words).difference(FUNCTION_WORDS, NEGATIONS)


def _is_negated(words: Sequence[str], named: frozenset[str]) -> bool:
    place = next(place for place, word in enumerate(words) if word in named)
    first = max(0, place - _MAX_WORDS_AFTER_NEGATION)
    return (
        sum(
            word in NEGATIONS
            and (position + 1 == len(words) or words[position + 1] not in _NO_NEGATIONS)
            and "until" not in words[position + 1 : place]  # "not founded until 1912" affirms 1912
            for position, word in enumerate(words[first:place], first)
        )
        % 2
        == 1
    )
