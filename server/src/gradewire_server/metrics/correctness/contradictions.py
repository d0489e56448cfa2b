"""Contradictions of a reference: another word in the same frame, an opposite, a yes for a no, or a denial."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice
from math import nan
from typing import Final

from rapidfuzz.distance import Indel, Levenshtein

from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, VOCABULARY, FeatureText, folded_words, plain
from gradewire_server.metrics.text.normalise import known_words, opposites_of
from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict

_MOST_WORDS: Final = 48
"""Words of a reference, and of a clause of the answer, that are laid side by side."""
_MOST_CLAUSES: Final = 32
_NO_ANTONYMS: Final = FUNCTION_WORDS | {"more", "less", "most", "least", "here", "there", "many", "few"}
"""Words whose opposite decides nothing by itself: "83 or more" is "at least 83"."""
_KEPT_TEXTS: Final = 64
"""As for `folded_words`."""
_NEAR_SPELLING: Final = 0.75
_NEAR: Final = 6
"""Words around what is negated in which a negation stands."""
_FRAME_CLAUSE_END: Final = re.compile(r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\b(?:but|because|since|however)\b")
_FRAME_SENTENCE_END: Final = re.compile(r"[.!?;](?!\w)|\n")
_NOT: Final = re.compile(r"\b(\w+)n't\b|\bcan(?:not|'t)\b|\bwon't\b")
NEGATIONS: Final = frozenset({"not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "cannot"})
"""Words that turn what stands behind them into its opposite; `clause_words` makes "not" of "n't"."""
MAY_NEGATE: Final = re.compile(
    r"\b(?:no|not|never|neither|nor|none|nobody|nothing|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
"""Texts without one of these have no negation."""
_NO_NEGATIONS: Final = frozenset(VOCABULARY["words"]["no_negations"].split())
"""Behind a negation they take it back: "not only", "not until 1989", "no doubt", "none other than", "no less than"."""
_NO_COMPARATIVES: Final = frozenset({"rather", "more", "less", "few", "fewer", "other", "much", "little"})
"""Before "than" they compare nothing with a name: "rather than Rome", "more than 259"."""


def contradiction_features(
    best: FeatureText, answer: FeatureText, said: Collection[str], asked: Collection[str]
) -> dict[str, float]:
    """What an answer has in the place of the best reference's words.

    Args:
        best: SMILE's best reference.
        answer: The prediction.
        said: Its words, other forms among them.
        asked: Words of the question.

    Returns:
        `swapped`: how much of the reference (share of its words, 0 to below 1) an answer's sentence has around another
        word in the place of a new one; 0 where none is swapped. `opposite`: 1 where the answer has the opposite of a
        word that the reference has, or negates what it does not, or compares the other way round; 0 else, and where two
        of these make up for each other ("A is older than B", "B is younger than A").
    """
    reference = clause_words(best.raw)[:_MOST_WORDS]
    new = frozenset(word for word in reference if word not in asked and word not in FUNCTION_WORDS and word not in said)
    swapped = _swapped(reference, _closest(reference, answer), new, asked) if new else 0.0
    opposites = frozenset().union(*(opposites_of(word) for word in best.distinct.difference(said, _NO_ANTONYMS)))
    may_negate = MAY_NEGATE.search(answer.raw) is not None or not NEGATIONS.isdisjoint(reference)
    if not may_negate and "than" not in answer.distinct and opposites.isdisjoint(answer.distinct):
        return {"swapped": swapped, "opposite": 0.0}
    clauses = _clauses(answer.raw, _FRAME_CLAUSE_END)
    antonym = _has_unnegated(opposites, clauses)
    closest = _closest(reference, answer)
    turned = (
        antonym
        + _negated_otherwise(_clauses(best.raw, _FRAME_CLAUSE_END), clauses, asked)
        + (_compares_the_other_way(reference, closest) and (antonym or closest[closest.index("than") - 1] in reference))
    )
    return {"swapped": swapped, "opposite": float(turned % 2)}


def _closest(reference: Sequence[str], answer: FeatureText) -> Sequence[str]:
    """The sentence of an answer with most words of a reference."""
    words = frozenset(reference)
    return max(_clauses(answer.raw, _FRAME_SENTENCE_END), key=lambda each: len(words.intersection(each)), default=())


def _clauses(text: str, end: re.Pattern[str]) -> list[tuple[str, ...]]:
    return [clause_words(part) for part in islice(end.split(text), _MOST_CLAUSES) if part.strip()]


@lru_cache(maxsize=_KEPT_TEXTS)
def clause_words(text: str) -> tuple[str, ...]:
    """Folded words, with "not" as a word of its own: "isn't" is "is not"."""
    plain = text.replace("\u2019", "'").casefold()
    return folded_words(_NOT.sub(lambda match: f"{match[1] or match[0][:2]} not", plain)) if plain.strip() else ()


def _swapped(reference: Sequence[str], sentence: Sequence[str], new: frozenset[str], asked: Collection[str]) -> float:
    known = frozenset(reference).union(asked)
    same, swapped = 0, False
    for step in Levenshtein.opcodes(reference, sentence[:_MOST_WORDS]):
        ours = reference[step.src_start : step.src_end]
        if step.tag == "equal":
            same += len(ours)
        elif step.tag == "replace":
            theirs = [word for word in sentence[step.dest_start : step.dest_end] if word not in known]
            wanted = [word for word in ours if word in new]
            swapped |= any(_is_another(word, theirs) for word in wanted)
    return same / len(reference) if swapped else 0.0


def _is_another(word: str, theirs: Sequence[str]) -> bool:
    """Whether words stand in the place of another one and none of them is a spelling of it."""
    theirs = [other for other in theirs if other not in FUNCTION_WORDS]
    both = known_words()
    return bool(theirs) and not any(
        Indel.normalized_similarity(word, other) >= _NEAR_SPELLING and not (word in both and other in both)
        for other in theirs
    )


def _has_unnegated(opposites: frozenset[str], clauses: Sequence[Sequence[str]]) -> bool:
    """Whether an answer has the opposite of a word that it lacks, and does not negate it.

    What the question says of both does not matter.
    """
    found = [(clause, here) for clause in clauses if (here := opposites.intersection(clause))]
    return bool(found) and not any(_negated(clause, here) for clause, here in found)


def _compares_the_other_way(reference: Sequence[str], sentence: Sequence[str]) -> bool:
    """Whether what a reference compares stands behind "than" in a sentence."""
    than = sentence.index("than") if "than" in sentence else 0
    if not 0 < than < len(sentence) - 1 or sentence[than - 1] in _NO_COMPARATIVES:
        return False
    theirs = reference.index("than") if "than" in reference else len(reference)
    compared = frozenset(reference[:theirs]).difference(
        FUNCTION_WORDS, reference[theirs - 1 : theirs], (sentence[than - 1],)
    )
    return bool(compared.intersection(sentence[than:])) and not compared.intersection(sentence[:than])


def _negated_otherwise(
    references: Sequence[Sequence[str]], clauses: Sequence[Sequence[str]], asked: Collection[str]
) -> bool:
    """Whether the clause with most of a reference negates what the reference's own does not, or the other way round.

    It has to have half of the words of the reference's longest clause: "No, it does not" has one negation of what is
    said, the verdict before it is another matter. Behind a question with a negation either may repeat it and say the
    same.
    """
    reference = max(references, key=lambda words: len(_counted(words)), default=())[:_MOST_WORDS]
    counted = _counted(reference)
    if not counted or not NEGATIONS.isdisjoint(asked):
        return False
    closest = max(clauses, key=lambda words: len(counted.intersection(words)), default=())
    shared = counted.intersection(closest)
    return 2 * len(shared) >= len(counted) and _negated(reference, shared) != _negated(closest, shared)


def _counted(words: Sequence[str]) -> frozenset[str]:
    return frozenset(words).difference(FUNCTION_WORDS, NEGATIONS)


def _negated(words: Sequence[str], named: frozenset[str]) -> bool:
    """Whether an odd number of negations stands in the few words before the first of the `named` ones."""
    place = next(place for place, word in enumerate(words) if word in named)
    first = max(0, place - _NEAR)
    return (
        sum(
            word in NEGATIONS
            and (position + 1 == len(words) or words[position + 1] not in _NO_NEGATIONS)
            and "until" not in words[position + 1 : place]  # "not founded until 1912"
            for position, word in enumerate(words[first:place], first)
        )
        % 2
        == 1
    )


_MOST_REFERENCES: Final = 32
_EITHER_WAY: Final = NEGATIONS | {"mind", "false"}
_BEGIN: Final = 400
"""Characters in which a text says yes or no."""
_LED: Final = re.compile(
    r"[\s'\"*_`\u2018\u201c-]*(?:(?:the |my )?answer(?: is)?\b[\s:*_'\"]*)?"
    r"(?:(?P<yes>yes|yeah|yep|yup|true|correct|affirmative)|(?P<no>no|nope|nah|false|incorrect))\b"
    r"(?:\s*(?:[.,;:!*'\"\n\u2013\u2014\u2019\u201d(-]|$)"
    r"|\s+(?:because|since|as|it|they|he|she|this|that|there|we|you|i)\b)"
)
_VERDICT_CLAUSE_END: Final = re.compile(r"[.,;:!?\n]|\b(?:because|since|but|although|however)\b")


def led_verdict(text: str) -> bool | None:
    """The yes (True) or no (False) that a text begins with, or is; None where it begins with neither.

    "No, it does not", "yes because", "False. The ..." begin with one; "No one knows", "no water is lost", "true love"
    and "Yes Minister" do not.
    """
    begin = text[:_BEGIN].casefold()
    led = _LED.match(begin)
    return led["yes"] is not None if led else leading_verdict(begin)


def verdict_features(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> dict[str, float]:
    """How the yes or no of an answer fits that of its references, of which the best one is the first.

    Returns:
        `verdict`: 1 where both say the same, 0 where they do not, NaN where one of them says neither; behind a question
        that asks for yes or no, a first clause with a negation says no. `verdict_conflict`: 1 where a reference that
        begins with yes or no meets an answer that begins with the other one, and no other reference begins as it does.
        Behind a question with a negation, or with "mind", yes and no may mean the same, and nothing is in conflict.
    """
    best = references[0]
    ours, asks = led_verdict(best.raw), asks_yes_or_no(question.raw) and " or " not in question.raw
    if ours is None and not asks:
        return {"verdict": nan, "verdict_conflict": 0.0}
    theirs = led_verdict(answer.raw)
    conflict = (
        ours is not None
        and theirs is (not ours)
        and _EITHER_WAY.isdisjoint(clause_words(question.raw))
        and all(led_verdict(other.raw) is not theirs for other in references[1:_MOST_REFERENCES])
    )
    if (ours is None) != (theirs is None) and asks:
        ours = _verdict_of_negation(best.raw) if ours is None else ours
        theirs = _verdict_of_negation(answer.raw) if theirs is None else theirs
    return {
        "verdict": nan if ours is None or theirs is None else float(ours == theirs),
        "verdict_conflict": float(conflict),
    }


def _verdict_of_negation(text: str) -> bool | None:
    """False where the first clause has a negation; else None."""
    first = _VERDICT_CLAUSE_END.split(text[:_BEGIN], 1)[0]
    return None if NEGATIONS.isdisjoint(clause_words(first)) else False


_NEAR_MATCH: Final = 8
"""Words before a match in which a negation counts."""
_MOST_BETWEEN: Final = 1
"""Words between negation and match that are neither small, nor the question's, nor of opinion.

With more of them something else is negated: "He did not go to school to help his father".
"""
_HELD: Final = 2 / 3
"""Share of a reference's words in a clause from which on the clause says, or denies, the reference."""
_MOST_FRAME: Final = 32
"""Words of a reference that may be said the other way round; what is longer is an essay."""
_MOST_DENIED: Final = 8

_DENIALS: Final = NEGATIONS | {"false", "incorrect"}
_NO_DENIALS: Final = frozenset(VOCABULARY["words"]["no_denials"].split())
"""In the clause of a negation they make it none: "not only", "not until 1989", "none other than", "no less than"."""
_ASKS_FOR_WHAT_IS_NOT: Final = re.compile(
    r"\b(?:forg[eo]t|miss(?:ing|es|ed)?\b|los[et]|afraid|fear|refus|reject|declin|unable|unwilling|forbid|forbade"
    r"|bann?(?:s|ed)?\b|prohibit|illegal|avoid|hat(?:es?|ed)\b|dislik|absen|lack|stop|quit|cease|gives? up|gave up"
    r"|exclud|omit|fail|prevent|without|except|unlike|impossible|den(?:y|ie)|doubt|wrong"
    r"|rid\b|free of|remov|eliminat|abandon|instead)"
)
"""Behind such a question a negation says the same: "She had no passport", where it asks what was missing."""
_OPINION: Final = frozenset({"think", "believe", "say", "true", "case", "likely", "right", "correct", "sure"})
"""Behind a negation these deny the whole sentence: "I do not think that the largest city is Paris"."""
_SMALL: Final = FUNCTION_WORDS | {"doe"}
"""Small words, "does" as its lemma too: the dictionary reads it as a noun."""
_IMPLIED: Final = frozenset({"without", "too", "against"})
"""Small words that negate by themselves: "too hot to drink"."""
_BARE_NO: Final = re.compile(r"\b(?:no|not|never)\W*(?:[.,;:!)]|$)", re.IGNORECASE)
_FRAME_FOR_ANOTHER: Final = 6
"""Words of a reference to one more that its opposite may have besides."""
_CONVERSES: Final = frozenset(VOCABULARY["words"]["converses"].split())
"""What they place changes sides with them: "B is below A" is "A is above B", "83 or more" is "at least 83"."""
# A mark inside a number or a name ("10:30", "J.K. Rowling") ends nothing.
_DENIAL_CLAUSE_END: Final = re.compile(
    r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\b(?:but|because|so|since|although|while|which|who)\b"
)


def denies(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> bool:
    """Whether an answer denies what it has of its references, or says the opposite of the first one in its own words.

    Denied is a reference with "not" or the like shortly before it in all of the clauses that have most of it, and
    nothing is denied where another reference is said without. "Not only" and the like is no negation, and where
    question or references have one themselves nothing is denied. The opposite is what differs from the reference by
    nothing but an antonym or by a negation that it lacks.
    """
    references = references[:_MOST_DENIED]
    if not _DENIALS.isdisjoint(clause_words(question.raw)) or _ASKS_FOR_WHAT_IS_NOT.search(plain(question.raw)):
        return False
    begin = plain(answer.raw)
    if MAY_NEGATE.search(begin) or "false" in begin or "incorrect" in begin:
        if any(not _DENIALS.isdisjoint(clause_words(reference.raw)) for reference in references):
            return False
        outcomes = [
            _negates_inside(reference, answer) or _denied(question, reference, answer, begin)
            for reference in references
        ]
        return True in outcomes and False not in outcomes
    return _turned(references[0], question, answer) and not any(
        answer.distinct.issuperset(other.content) for other in references[1:]
    )


def _negates_inside(reference: FeatureText, answer: FeatureText) -> bool:
    """Whether an answer is a reference's sentence with "not" or "never" inside: "The sky is not blue"."""
    words = clause_words(answer.raw)
    places = [place for place, word in enumerate(words) if word in NEGATIONS]
    wanted = [word for word in clause_words(reference.raw) if word not in _SMALL]
    if len(places) != 1 or words[places[0]] not in {"not", "never"} or not 2 <= len(wanted) <= _MOST_FRAME:
        return False
    before, behind = (
        [word for word in part if word not in _SMALL] for part in (words[: places[0]], words[places[0] + 1 :])
    )
    return bool(before and behind) and before + behind == wanted and _NO_DENIALS.isdisjoint(words)


def _denied(question: FeatureText, reference: FeatureText, answer: FeatureText, begin: str) -> bool | None:
    """Whether an answer denies a reference; None where it does not have it."""
    named = frozenset(word for word in reference.content if word not in question.distinct)
    named = named or frozenset(reference.content)
    if len(named.intersection(answer.words)) < _HELD * len(named):
        return None
    # As words from here on: marks inside the reference ("St. Louis", "10, 200") would part it into clauses.
    written = re.compile(rf"(?<!\w){re.escape(plain(reference.raw.strip()))}(?!\w)")
    text = written.sub(lambda _: f" {' '.join(reference.words)} ", begin)
    clauses = [(*clause_words(clause), "") for clause in _DENIAL_CLAUSE_END.split(text) if clause.strip()]
    most = max((len(named.intersection(words)) for words in clauses), default=0)
    if most < _HELD * len(named):
        return None
    return all(_is_denied(words, named, question) for words in clauses if len(named.intersection(words)) == most)


def _is_denied(words: tuple[str, ...], named: frozenset[str], question: FeatureText) -> bool:
    """Whether a negation stands in the few words before the first of the `named` ones, and is said of them."""
    place = next(place for place, word in enumerate(words) if word in named)
    first = max(0, place - _NEAR_MATCH)
    return (
        _NO_DENIALS.isdisjoint(words[:place])
        and any(
            word in _DENIALS
            and not (word == "no" and words[position + 1].isdigit())  # a number: "No 10"
            and _covers(words[position + 1 : place], question)
            for position, word in enumerate(words[first:place], first)
        )
    )


def _covers(between: Sequence[str], question: FeatureText) -> bool:
    """Whether a negation is said of what stands behind the words `between`, and not of these alone."""
    if not _OPINION.isdisjoint(between):
        return True
    others = [word for word in between if word not in _SMALL and word not in question.distinct]
    return len(others) <= _MOST_BETWEEN and not (others and "be" in between)


def _turned(reference: FeatureText, question: FeatureText, answer: FeatureText) -> bool:
    """Whether an answer without any negation is a reference but for a negation, or for an antonym of one word.

    Little else stands in it, and the shared words in the same order: "B is below A" is no opposite of "A is above B".
    """
    words = clause_words(reference.raw)[: _MOST_FRAME + 1]
    wanted = frozenset(words).difference(_SMALL, NEGATIONS)
    if not wanted or len(words) > _MOST_FRAME:
        return False
    shared = wanted.intersection(answer.words)
    lacking = wanted - shared
    others = answer.distinct.difference(wanted, _SMALL, question.words)
    if shared == wanted:
        return not others and _has_one_negation(reference, words) and _IMPLIED.isdisjoint(answer.words)
    opposites = opposites_of(*lacking) if len(lacking) == 1 else frozenset[str]()
    return (
        bool(shared)
        and (NEGATIONS | _CONVERSES).isdisjoint(words)
        and _CONVERSES.isdisjoint(answer.words)
        and not opposites.difference(wanted).isdisjoint(answer.words)
        and len(others - opposites) <= 2 + len(wanted) // _FRAME_FOR_ANOTHER
        and [word for word in dict.fromkeys(words) if word in shared]
        == [word for word in dict.fromkeys(answer.words) if word in shared]
    )


def _has_one_negation(reference: FeatureText, words: Sequence[str]) -> bool:
    """Whether a reference has one negation, and it negates: "no longer lit", not "No, it is lit" or "No 10"."""
    found = [(word, after) for word, after in zip(words, (*words[1:], ""), strict=True) if word in NEGATIONS]
    return (
        len(found) == 1
        and found[0][0] in {"not", "no", "never"}
        and found[0][1].isalpha()
        and _NO_DENIALS.isdisjoint(words)
        and _BARE_NO.search(reference.raw) is None
        and led_verdict(reference.raw) is None
    )
