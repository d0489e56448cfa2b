"""Find answers with the wrong "yes" or "no", and answers that deny a reference."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import nan
from typing import Final

from gradewire_server.metrics.correctness.roles import SUBORDINATORS
from gradewire_server.metrics.correctness.statements import (
    begins_with_verdict,
    is_qualified,
    stated_verdict,
    without_questioned_verdict,
)
from gradewire_server.metrics.correctness.words import (
    FUNCTION_WORDS,
    MAY_NEGATE,
    NEGATIONS,
    VOCABULARY,
    FeatureText,
    clause_words,
    plain,
)
from gradewire_server.metrics.text.normalise import opposites_of
from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict

_MOST_REFERENCES: Final = 32
_MAX_CACHED_QUESTIONS: Final = 64
_EITHER_WAY: Final = NEGATIONS | {"mind", "false"}
_LEADING_CHARACTERS: Final = 400
_LED: Final = re.compile(
    r"[\s'\"*_`\u2018\u201c-]*(?:(?:the |my )?answer(?: is)?\b[\s:*_'\"]*)?"
    r"(?:(?P<yes>yes|yeah|yep|yup|true|correct|affirmative)|(?P<no>no|nope|nah|false|incorrect))\b"
    r"(?:\s*(?:[.,;:!*'\"\n\u2013\u2014\u2019\u201d(-]|$)"
    r"|\s+(?:because|since|as|it|they|he|she|this|that|there|we|you|i)\b)"
)
_VERDICT: Final = re.compile(r"^\W*(?:yes|yeah|yep|no|nope|true|false)\s*[,.;:!\u2013\u2014-]+\s*", re.IGNORECASE)
_FIRST_CLAUSE_END: Final = re.compile(r"[.,;:!?\n]|\b(?:because|since|but|although|however)\b")

_MAX_WORDS_AFTER_NEGATION: Final = 8
_MOST_BETWEEN: Final = 1
"""Maximum number of words between a negation and the words that it denies.

Small words and the question's words do not count. After more words, the negation is about something else: "He did not
go to school to help his father".
"""
_MIN_SHARE_OF_WORDS: Final = 2 / 3
_MAX_WORDS_WITH_OPPOSITE: Final = 32
_MOST_DENIED: Final = 8

_DENIALS: Final = NEGATIONS | {"false", "incorrect"}
_NO_DENIALS: Final = frozenset(VOCABULARY["words"]["no_denials"].split())
"""Words that cancel a negation in their clause, such as "only" in "not only"."""
_ASKS_FOR_WHAT_IS_NOT: Final = re.compile(
    r"\b(?:forg[eo]t|miss(?:ing|es|ed)?\b|los[et]|afraid|fear|refus|reject|declin|unable|unwilling|forbid|forbade"
    r"|bann?(?:s|ed)?\b|prohibit|illegal|avoid|hat(?:es?|ed)\b|dislik|absen|lack|stop|quit|cease|gives? up|gave up"
    r"|exclud|omit|fail|prevent|without|except|unlike|impossible|den(?:y|ie)|doubt|wrong"
    r"|rid\b|free of|remov|eliminat|abandon|instead)"
)
"""A pattern for questions about something missing.

Right answers to such questions contain a negation: "She had no passport".
"""
_OPINION: Final = frozenset({"think", "believe", "say", "true", "case", "likely", "right", "correct", "sure"})
"""Words that extend a negation to the whole sentence: "I do not think that the largest city is Paris"."""
_SMALL: Final = FUNCTION_WORDS | {"doe"}
"""Function words. "doe" is the dictionary's lemma for "does"."""
_IMPLICIT_NEGATIONS: Final = frozenset({"without", "too", "against"})
_DOUBLE_NEGATIONS: Final = frozenset({"fail", "avoid", "refuse", "lack", "unable", "deny", "neglect", "omit"})
"""Words that make a negation directly before them a "yes": "never fail to meet"."""
_OTHERS: Final = frozenset({"other", "all", "both", "each", "every", "everyone", "everybody", "rest", "only", "unlike"})
"""Words of an answer that may affirm the question of everything but the reference."""
_EXCEPTS: Final = NEGATIONS.union(_OTHERS, VOCABULARY["words"]["implicit_negations"].split(), {"too", "instead"})
_ASKS_WHICH: Final = frozenset({"who", "whom", "which", "what"})
_MOST_NEGATED: Final = 4
_BARE_NO: Final = re.compile(r"\b(?:no|not|never)\W*(?:[.,;:!)]|$)", re.IGNORECASE)
_FRAME_FOR_ANOTHER: Final = 6
"""An answer that states the opposite of a reference may add two words, plus one word for every `_FRAME_FOR_ANOTHER`
words of the reference.
"""
_CONVERSES: Final = frozenset(VOCABULARY["words"]["converses"].split())
"""Words whose antonym keeps the meaning if the sides swap: "B is below A" is "A is above B"."""
# A punctuation mark inside a number or a name ("10:30", "J.K. Rowling") does not end a clause.
_CLAUSE_END: Final = re.compile(
    r"[.,:](?!\w)|[;!?()\n\u2013\u2014]|\b(?:but|because|so|since|although|while|which|who)\b"
)


def led_verdict(text: str) -> bool | None:
    """Return True if a text begins with "yes" or the like, False if it begins with "no" or the like, otherwise None.

    "No, it does not" and "yes because" count; "No one knows" and "true love" do not.
    """
    begin = text[:_LEADING_CHARACTERS].casefold()
    led = _LED.match(begin)
    return led["yes"] is not None if led else leading_verdict(begin)


def verdict_features(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> dict[str, float]:
    """Compare the "yes" or "no" of an answer with the references; the first reference is the best.

    Returns:
        `verdict`: 1 if the answer and the best reference agree, 0 if not, NaN if either has no verdict. After a
        yes-or-no question, a sentence that states what the question asks counts as "yes", and a negation in the first
        clause as "no". `verdict_conflict`: 1 if the answer begins
        with the opposite of the best reference's "yes" or "no", and no other reference agrees with the answer;
        otherwise 0. `verdict_doubt`: 1 if the answer says yes and states no, states the opposite of the best
        reference's verdict, or agrees only under a condition; otherwise 0. `verdict_unread`: 1 if the best reference
        is "yes" or "no" alone, and the answer has no verdict; otherwise 0.
    """
    best = references[0]
    ours, asks = led_verdict(best.raw), asks_yes_or_no(question.raw) and " or " not in question.raw
    if ours is None and not asks:
        return {"verdict": nan, "verdict_conflict": 0.0, "verdict_doubt": 0.0, "verdict_unread": 0.0}
    text = without_questioned_verdict(answer.raw)
    theirs = led_verdict(text)
    conflict = (
        ours is not None
        and theirs is (not ours)
        and _EITHER_WAY.isdisjoint(clause_words(question.raw))
        and all(led_verdict(other.raw) is not theirs for other in references[1:_MOST_REFERENCES])
    )
    doubt = False
    if asks:
        if ours is None:
            ours = _stated(question, best.raw)
            ours = _verdict_of_negation(best.raw) if ours is None and theirs is not None else ours
        stated = _stated(question, text)
        other = theirs if theirs is not None else ours
        doubt = other is not None and stated is (not other)
        if theirs is None and ours is not None:
            theirs = _verdict_of_negation(text) if stated is None else stated
        agrees = theirs is not None and theirs is ours
        doubt |= agrees and is_qualified(question.raw, best.raw, text)
    return {
        "verdict": nan if ours is None or theirs is None else float(ours == theirs),
        "verdict_conflict": float(conflict),
        "verdict_doubt": float(doubt),
        "verdict_unread": float(theirs is None and ours is not None and len(best.words) == 1),
    }


def _stated(question: FeatureText, text: str) -> bool | None:
    """Return the verdict that a text states behind a leading "yes" or "no", or None."""
    rest = _VERDICT.sub("", text[:_LEADING_CHARACTERS], count=1)
    found = begins_with_verdict(rest)
    return stated_verdict(question.raw, rest) if found is None else found


def _verdict_of_negation(text: str) -> bool | None:
    """Return False if the first clause contains a negation, True for "never fail", otherwise None."""
    first = clause_words(_FIRST_CLAUSE_END.split(text[:_LEADING_CHARACTERS], 1)[0])
    if any(one in NEGATIONS and other in _DOUBLE_NEGATIONS for one, other in pairwise(first)):
        return True
    return None if NEGATIONS.isdisjoint(first) else False


def denies(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> bool:
    """Return True if an answer denies the words of its references, or states the first reference's opposite.

    A denial has "not" or the like shortly before the reference's words, in all clauses that contain most of these
    words. If the question or a reference contains a negation, return False. The opposite differs from the reference
    only by an antonym or a negation.
    """
    references = references[:_MOST_DENIED]
    if _asks_for_what_is_not(question.raw):
        return False
    begin = plain(answer.raw)
    if MAY_NEGATE.search(begin) or "false" in begin or "incorrect" in begin:
        if any(not _DENIALS.isdisjoint(clause_words(reference.raw)) for reference in references):
            return False
        outcomes = [
            _is_reference_with_negation(reference, answer) or _denied(question, reference, answer, begin)
            for reference in references
        ]
        return True in outcomes and False not in outcomes
    return _states_opposite(references[0], question, answer) and not any(
        answer.distinct.issuperset(other.content) for other in references[1:]
    )


@lru_cache(maxsize=_MAX_CACHED_QUESTIONS)
def _asks_for_what_is_not(question: str) -> bool:
    return not _DENIALS.isdisjoint(clause_words(question)) or _ASKS_FOR_WHAT_IS_NOT.search(plain(question)) is not None


def affirms_what_is_not(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> float:
    """Return 1 if a clause says of a reference what a question says is not so, otherwise 0.

    Example: "Talc scratches glass" for talc, after "Which mineral does not scratch glass?".
    """
    if MAY_NEGATE.search(question.raw) is None or not _EXCEPTS.isdisjoint(answer.distinct):
        return 0.0
    asked = clause_words(question.raw.partition(":")[0])
    place = next((place for place, word in enumerate(asked) if word in NEGATIONS), 0)
    if _ASKS_WHICH.isdisjoint(asked[:place]) or asked[place - 1] == "or":
        return 0.0
    negated = [word for word in asked[place + 1 :] if word not in _SMALL][:_MOST_NEGATED]
    if not negated or MAY_NEGATE.search(answer.raw) or not answer.distinct.issuperset(negated):
        return 0.0
    clauses = [frozenset(clause_words(clause)) for clause in _CLAUSE_END.split(plain(answer.raw))]
    wanted = [frozenset(reference.content).union(negated) for reference in references[:_MOST_DENIED]]
    return float(any(clause.issuperset(words) for words in wanted for clause in clauses))


def _is_reference_with_negation(reference: FeatureText, answer: FeatureText) -> bool:
    words = clause_words(answer.raw)
    places = [place for place, word in enumerate(words) if word in NEGATIONS]
    wanted = [word for word in clause_words(reference.raw) if word not in _SMALL]
    if len(places) != 1 or words[places[0]] not in {"not", "never"} or not 2 <= len(wanted) <= _MAX_WORDS_WITH_OPPOSITE:
        return False
    before, behind = (
        [word for word in part if word not in _SMALL] for part in (words[: places[0]], words[places[0] + 1 :])
    )
    return bool(before and behind) and before + behind == wanted and _NO_DENIALS.isdisjoint(words)


def _denied(question: FeatureText, reference: FeatureText, answer: FeatureText, begin: str) -> bool | None:
    """Return True if an answer denies a reference, False if it states the reference, and None if it does neither."""
    named = frozenset(word for word in reference.content if word not in question.distinct)
    named = named or frozenset(reference.content)
    if len(named.intersection(answer.words)) < _MIN_SHARE_OF_WORDS * len(named):
        return None
    # Replace the reference by its words, since its punctuation ("St. Louis", "10, 200") would split clauses.
    written = re.compile(rf"(?<!\w){re.escape(plain(reference.raw.strip()))}(?!\w)")
    text = written.sub(lambda _: f" {' '.join(reference.words)} ", begin)
    clauses = [(*clause_words(clause), "") for clause in _CLAUSE_END.split(text) if clause.strip()]
    most = max((len(named.intersection(words)) for words in clauses), default=0)
    if most < _MIN_SHARE_OF_WORDS * len(named):
        return None
    return all(_is_denied(words, named, question) for words in clauses if len(named.intersection(words)) == most)


def _is_denied(words: tuple[str, ...], named: frozenset[str], question: FeatureText) -> bool:
    place = next(place for place, word in enumerate(words) if word in named)
    first = max(0, place - _MAX_WORDS_AFTER_NEGATION)
    return (
        _NO_DENIALS.isdisjoint(words[:place])
        and any(
            word in _DENIALS
            and not (word == "no" and words[position + 1].isdigit())  # "No 10" means number 10
            and _negation_covers(words[position + 1 : place], question)
            for position, word in enumerate(words[first:place], first)
        )
    )


def _negation_covers(between: Sequence[str], question: FeatureText) -> bool:
    if not _OPINION.isdisjoint(between):
        return True
    others = [word for word in between if word not in _SMALL and word not in question.distinct]
    return len(others) <= _MOST_BETWEEN and not (others and "be" in between)


def _states_opposite(reference: FeatureText, question: FeatureText, answer: FeatureText) -> bool:
    """Return True if an answer equals a reference without its negation, or with an antonym of one word.

    The answer may contain only a few additional words, and must keep the order of shared words: "B is below A" is not
    the opposite of "A is above B".
    """
    words = clause_words(reference.raw)[: _MAX_WORDS_WITH_OPPOSITE + 1]
    wanted = frozenset(words).difference(_SMALL, NEGATIONS)
    if not wanted or len(words) > _MAX_WORDS_WITH_OPPOSITE:
        return False
    shared = wanted.intersection(answer.words)
    lacking = wanted - shared
    others = answer.distinct.difference(wanted, _SMALL, question.words)
    if shared == wanted:
        return not others and _has_one_real_negation(reference, words) and _IMPLICIT_NEGATIONS.isdisjoint(answer.words)
    if SUBORDINATORS.isdisjoint(words) and not SUBORDINATORS.isdisjoint(answer.words):
        return False  # the antonym may be in a clause of its own: "When prices rise, demand decreases"
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


def _has_one_real_negation(reference: FeatureText, words: Sequence[str]) -> bool:
    found = [(word, after) for word, after in zip(words, (*words[1:], ""), strict=True) if word in NEGATIONS]
    return (
        len(found) == 1
        and found[0][0] in {"not", "no", "never"}
        and found[0][1].isalpha()
        and _NO_DENIALS.isdisjoint(words)
        and _BARE_NO.search(reference.raw) is None
        and led_verdict(reference.raw) is None
    )
