"""Find answers that say the reference of something else than the question asks about."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gradewire_server.metrics.correctness.sentences import asking
from gradewire_server.metrics.correctness.words import FUNCTION_WORDS, NEGATIONS, VOCABULARY, FeatureText, folded_words
from gradewire_server.metrics.text.lazy import lazy
from gradewire_server.metrics.text.normalise import known_words

_MOST_CHARACTERS: Final = 800
_MOST_CLAUSES: Final = 24
_MOST_REFERENCES: Final = 12
_WORDS: Final = VOCABULARY["words"]
_CLAUSE_END: Final = re.compile(
    r"(?P<stop>[.!?;](?=\s|$)|\n|[\u3002\uff01\uff1f\uff1b])"
    r"|:(?!\w)|,(?!\w|\s\d{4}\b)|[()\u2014\uff0c\u3001]|\s[\u2013-]\s"
    rf"|\b(?:{'|'.join(_WORDS['clause_openers'].split())})\b",
    re.IGNORECASE,
)
_RELATIVE: Final = frozenset({"who", "whom", "whose", "which", "where", "after", "before", "than"})
_AND: Final = frozenset({"and", "but", "und", "aber", "et", "mais", "y", "pero"})
_STANDS_IN: Final = frozenset({"it", "he", "she", "they", "there", "this", "that", "its", "these", "those", "here"})
_CAPITAL: Final = re.compile(r"(?<![\w'\u2019])[^\W\d_a-z][\w]*")
_CLAIMS: Final = frozenset({"answer", "so", "fact", "therefore", "thus", "hence", "final"})
"""Words of a clause that states the answer."""
_BEFORE_VERB: Final = re.compile(r"\s+(?:is|was|are|were|has|had|won|wrote|\w+ed|\w+[^s\W]s)\b")
_STEM_LETTERS: Final = 5
_MAX_WORDS_BEFORE_VERB: Final = 16
_ASKS_AMOUNT: Final = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_PASSIVE: Final = re.compile(r"(?:^|(?:ed|en|un|ung|own|ade|ilt|ld|\bis|\bwas))\s+by\b", re.IGNORECASE)
_TAKES_BACK: Final = re.compile(r"\b(?:wait|sorry|actually|rather|mistaken?|wrong|correction|i mean)\b", re.IGNORECASE)
_MIN_SHARE: Final = 0.25
_MAX_WORDS: Final = 30
_SMALL: Final = FUNCTION_WORDS | NEGATIONS | {"doe", "many", "much"}
_SETTING: Final = frozenset(_WORDS["settings"].split())
"""Words that name what a question is about as a whole: "in the picture", "according to the text"."""
_ASKED_KIND: Final = re.compile(r"\b(?:which|what)\s+(\w+)", re.IGNORECASE)
_OWN_SUBJECT: Final = frozenset({
    "the", "a", "an", "his", "her", "its", "their", "my", "our", "your", "one", "some", "another", "most", "every",
    "all", "each", "no",
})  # fmt: skip


_MOST_WORDS_PAIRED: Final = 20
"""Maximum number of words in an answer whose parts are paired with the question; longer ones have more appositions."""
_PART_END: Final = re.compile(
    r"(?P<ends>[;!?\n](?=\s|$)|\.(?=\s|$)|\b(?:but|while|whereas|though|although|aber|w\u00e4hrend|mais|tandis|pero|mientras)\b)"
    r"|,(?!\d)|[()\u2014]|\s[\u2013-]\s|\b(?:and|yet|und|et|y)\b",
    re.IGNORECASE,
)
_NOTHING: Final = frozenset(_WORDS["nothing"].split())
_BEGINNINGS: Final = {word: kind for kind in ("determiners", "prepositions") for word in _WORDS[kind].split()}


@dataclass(frozen=True)
class Clause:
    """A part of an answer between punctuation marks or conjunctions.

    Attributes:
        opener: The conjunction before the part, or "".
        is_heading: True if a colon follows.
    """

    text: str
    opener: str
    begins_sentence: bool
    is_heading: bool = False

    @lazy
    def words(self) -> tuple[str, ...]:
        """The folded words."""
        return folded_words(self.text)

    @lazy
    def content(self) -> frozenset[str]:
        """The words that bear content."""
        return frozenset(self.words) - _SMALL

    @lazy
    def stems(self) -> frozenset[str]:
        """The beginnings of the words that bear content: "paint" for "painter"."""
        return _stems(self.content)

    @property
    def is_subordinate(self) -> bool:
        """True for a clause such as "who is 31" or "after he had fouled Rossi"."""
        return self.opener in _RELATIVE

    @property
    def stands_in(self) -> bool:
        """True if the clause begins with a pronoun that may mean the question's subject."""
        return not self.is_subordinate and bool(self.words) and self.words[0] in _STANDS_IN

    def has_own_subject(self, reference: FeatureText) -> bool:
        """Return True unless the clause continues the one before: "and flows into the Gulf of Mexico"."""
        first = self.words[0]
        return (
            self.begins_sentence
            or (self.opener != "" and self.opener not in _AND)
            or first in _OWN_SUBJECT
            or first in reference.distinct
            or first.isdecimal()
            or self.text.lstrip()[:1].isupper()
        )

    def names(self) -> frozenset[str]:
        """Return the words with a capital, without a known word at the beginning of a sentence."""
        begin = len(self.text) - len(self.text.lstrip())
        return frozenset(
            word
            for match in _CAPITAL.finditer(self.text)
            if match.start() != begin
            or not self.begins_sentence
            or match[0].casefold() not in known_words()
            or _BEFORE_VERB.match(self.text, match.end())
            for word in folded_words(match[0])
        )


def _stems(words: Collection[str]) -> frozenset[str]:
    return frozenset(word[:_STEM_LETTERS] for word in words)


def subject_features(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> dict[str, float]:
    """Compare the clause that states a reference with the answer's other clauses.

    Returns:
        `other_subject`: 1 if another clause has more of the question's words, or a pronoun for them, and a candidate
        of the reference's type, while the reference's own clause says it of a new word: "The Danube runs through
        Prague, the Vltava through Krumlov". 0 for other answers and for those of more than `_MAX_WORDS` words.
    """
    question = asking(question)
    kinds = frozenset(word for kind in _ASKED_KIND.findall(question.raw) for word in folded_words(kind))
    asked = question.distinct - _SMALL - _SETTING
    asked = _stems(asked - kinds or asked)
    if (
        not asked
        or not 4 <= len(answer.words) <= _MAX_WORDS
        or "=" in answer.raw
        or (_TAKES_BACK.search(answer.raw) is not None)
    ):
        return {"other_subject": 0.0}
    wanted = [
        (frozenset(reference.content) - question.distinct or frozenset(reference.content), reference)
        for reference in references[:_MOST_REFERENCES]
    ]
    wanted = [(words, reference) for words, reference in wanted if words <= answer.distinct]
    if not wanted:
        return {"other_subject": 0.0}
    if _is_paired_with_another(asked, question, wanted, answer):
        return {"other_subject": 1.0}
    clauses = _clauses(answer.raw[:_MOST_CHARACTERS])
    known = question.distinct.union(*(reference.distinct for reference in references[:_MOST_REFERENCES]))
    found = [
        _is_said_of_another(clauses, place, reference, asked, known)
        for words, reference in wanted
        for place, clause in enumerate(clauses)
        if words <= frozenset(clause.words)
    ]
    split = _ASKS_AMOUNT.search(question.raw) is not None and _numbers_in_parts(references, answer)
    return {"other_subject": float((bool(found) and all(found)) or split)}


def _numbers_in_parts(references: Sequence[FeatureText], answer: FeatureText) -> bool:
    """Return True if a semicolon separates the reference's number from another number: either may be the answer."""
    parts = [frozenset(filter(str.isdecimal, folded_words(part))) for part in answer.raw.split(";") if part.strip()]
    wanted = frozenset[str]().union(*(filter(str.isdecimal, reference.words) for reference in references))
    return len(parts) > 1 and any(part & wanted for part in parts) and any(part and not part & wanted for part in parts)


def _clauses(text: str) -> list[Clause]:
    clauses: list[Clause] = []
    begin, opener, begins_sentence = 0, "", True
    for match in islice(_CLAUSE_END.finditer(text), 2 * _MOST_CLAUSES):
        part = text[begin : match.start()]
        word = match[0].strip().casefold()
        if any(map(str.isalnum, part)):
            clauses.append(Clause(part, opener, begins_sentence, word == ":"))
            opener, begins_sentence = "", False
        begins_sentence |= match["stop"] is not None
        opener = word if word.isalpha() else opener
        begin = match.end()
    if any(map(str.isalnum, text[begin:])):
        clauses.append(Clause(text[begin:], opener, begins_sentence))
    return clauses


def _ends_passive(clause: Clause, reference: FeatureText) -> bool:
    """Return True for "performed by the band", which completes the clause before."""
    passive = _PASSIVE.search(clause.text)
    return passive is not None and not reference.distinct.isdisjoint(folded_words(clause.text[passive.end() :]))


def _has_own_predicate(clauses: Sequence[Clause], place: int, asked: frozenset[str]) -> bool:
    """Return True for the second clause of a short answer: "Plants take in oxygen and give off carbon dioxide"."""
    return (
        place > 0
        and clauses[place].opener in _AND
        and sum(len(clause.words) for clause in clauses) <= _MAX_WORDS_BEFORE_VERB
        and not asked & clauses[place].stems
    )


def _is_said_of_another(
    clauses: Sequence[Clause], place: int, reference: FeatureText, asked: frozenset[str], known: frozenset[str]
) -> bool:
    clause = clauses[place]
    if (
        clause.stands_in
        or not _CLAIMS.isdisjoint(clause.words)
        or _ends_passive(clause, reference)
        or not (clause.has_own_subject(reference) or _has_own_predicate(clauses, place, asked))
    ):
        return False
    ours = len(asked & clause.stems)
    follows = clauses[place + 1 : place + 2]
    if not clause.content - known and not (follows and follows[0].is_subordinate and follows[0].content - known):
        return False
    others = [
        other
        for position, other in enumerate(clauses)
        if position != place
        and not other.is_heading
        and not other.is_subordinate
        and not reference.distinct <= frozenset(other.words)
        and (position < place or other.stands_in or other.has_own_subject(reference))
    ]
    if clause.is_subordinate and place:
        resumed = " ".join(other.text for other in follows if asked & other.stems)
        if not resumed and clause.opener in {"which", "where"}:
            return False
        before = clauses[place - 1]
        others.append(Clause(f"{before.text} {resumed}", before.opener, before.begins_sentence))
    return any(
        (theirs := len(asked & other.stems) + other.stands_in) > ours
        and (other.stands_in or theirs >= _MIN_SHARE * len(asked))
        and NEGATIONS.isdisjoint(other.words)
        and _has_candidate(other, reference, known)
        for other in others
    )


def _has_candidate(clause: Clause, reference: FeatureText, known: frozenset[str]) -> bool:
    """Return True if a clause has a number where the reference has one, a name for a name, or else any new word."""
    new = frozenset(clause.words) - known
    if any(any(map(str.isdecimal, word)) for word in reference.words):
        return any(any(map(str.isdecimal, word)) for word in new) or "one" in new
    if any(map(str.isupper, reference.raw)):
        return not new.isdisjoint(clause.names())
    return bool(new - _SMALL)


@dataclass(frozen=True)
class _Part:
    """A part of a short answer: a clause, or the rest of one whose verb is left out ("the baguette 180 \u00b0C")."""

    text: str
    words: tuple[str, ...]
    ends: bool
    """True if a semicolon, a full stop or a word such as "while" follows."""

    @lazy
    def distinct(self) -> frozenset[str]:
        return frozenset(self.words)

    @lazy
    def stems(self) -> frozenset[str]:
        return _stems(self.distinct - _SMALL)

    @lazy
    def beginning(self) -> str:
        """The kind of the first word, or "" if it is none with which parallel parts begin."""
        first = self.words[0]
        if first[0].isdecimal():
            return "numbers"
        if first in _STANDS_IN or self.text.lstrip(" \"'\u20ac$\u00a3")[:1].isupper():
            return _BEGINNINGS.get(first, "determiners")
        return _BEGINNINGS.get(first, "")


def _is_paired_with_another(
    asked: frozenset[str],
    question: FeatureText,
    wanted: Sequence[tuple[frozenset[str], FeatureText]],
    answer: FeatureText,
) -> bool:
    """Return True if all parts with a reference pair it with something new, and the part beside has what was asked."""
    if len(answer.words) > _MOST_WORDS_PAIRED:
        return False
    parts = _parts(answer.raw)
    found = [
        any(
            _are_parallel(*parts[first : first + 2])
            and _is_asked_instead(
                part, parts[first if first < place else place + 1], asked, question, (words, reference)
            )
            for first in (place - 1, place)
            if 0 <= first < len(parts) - 1
        )
        for words, reference in wanted
        for place, part in enumerate(parts)
        if words <= part.distinct
    ]
    return bool(found) and all(found)


def _parts(text: str) -> list[_Part]:
    found: list[_Part] = []
    begin = 0
    for match in (*_PART_END.finditer(text), None):
        end = len(text) if match is None else match.start()
        part = text[begin:end]
        if any(map(str.isalnum, part)):
            found.append(_Part(part, folded_words(part), match is not None and match["ends"] is not None))
        begin = end if match is None else match.end()
    return found


def _are_parallel(first: _Part, second: _Part) -> bool:
    return first.ends or (first.beginning == second.beginning != "" and second.words[0] not in {"a", "an"})


def _is_asked_instead(
    part: _Part,
    other: _Part,
    asked: frozenset[str],
    question: FeatureText,
    wanted: tuple[frozenset[str], FeatureText],
) -> bool:
    words, reference = wanted
    if part.words[0] in _STANDS_IN or words <= other.distinct:
        return False
    said = part.distinct - _SMALL - words - reference.distinct
    if not any(word[:_STEM_LETTERS] not in asked and word not in _SETTING for word in said):
        return False
    if not (other.stems & asked) - (_stems(said) & asked):
        return False
    nothing = not _NOTHING.isdisjoint(other.words)
    if not NEGATIONS.isdisjoint(other.words) and not nothing:
        return False
    clause = Clause(other.text, "", begins_sentence=True)
    return nothing or _has_candidate(clause, reference, question.distinct | words)
