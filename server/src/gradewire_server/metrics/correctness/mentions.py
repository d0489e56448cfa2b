"""Read how a reference stands in an answer: stated, or only mentioned (rejected, compared, quoted, listed …)."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log1p, nan
from typing import Final

from gradewire_proto.final_answer.words import any_of, expression
from gradewire_server.metrics.correctness.attributions import asks_to_compare, is_of_another, is_reported
from gradewire_server.metrics.correctness.focus import Focus
from gradewire_server.metrics.correctness.hedges import is_one_of_two
from gradewire_server.metrics.correctness.words import (
    FUNCTION_WORDS,
    MAX_CHARACTERS,
    STOP_WORDS,
    VOCABULARY,
    FeatureText,
    folded,
    folded_words,
    number_or_lemma,
    plain,
)
from gradewire_server.metrics.text.lazy import lazy
from gradewire_server.metrics.values.tokens import VOCABULARY as VALUE_WORDS

_MOST_REFERENCES: Final = 8
_MOST_MENTIONS: Final = 8
_MAX_CACHED_REFERENCES: Final = 2_048
_MAX_CACHED_CHARACTERS: Final = 512
_MAX_CACHED_WORDS: Final = 8_192
_MAX_CACHED_LETTERS: Final = 32
_NEAR: Final = 80
_LONGEST_END: Final = 1_200
_MOST_NEW: Final = 12.0
_MOST_MEMBERS: Final = 6.0
_MOST_WORDS_OF_MEMBER: Final = 6

_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:[.,]\d+)*(?:'[^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)|\.{3}|[。\uff01\uff1f…;\n]")

_LISTS: Final[Mapping[str, str]] = VOCABULARY["mentions"]


def _any(name: str) -> str:
    return expression(tuple(phrase.strip().casefold() for phrase in _LISTS[name].split("|")))


_ARTICLES: Final = (
    r"(?:(?:the|a|an|of|about|that|this|his|her|their|its|der|die|das|den|dem|le|la|les|el|los|las|l')\s*)"
)
# A cue begins a clause: "a full pardon" takes nothing back.
_RETRACTS: Final = re.compile(
    rf"(?:[.!?,;:(\u2013\u2014\u2026\u3002\uff0c\n]|\s-)\W*(?:(?:and|but|oh|ah|well|no|hmm+)\W+){{0,2}}"
    rf"(?:{any_of('retract')}|{_any('retracts')})|{_any('signs')}",
    re.IGNORECASE,
)
_QUESTIONED: Final = re.compile("[\"'*_”\u2019»)\\]\\s]{0,4}[?\uff1f]")
_BEFORE: Final = {
    "contrasted": re.compile(
        rf"({_any('contrasts')})\s*{_ARTICLES}{{0,2}}(?:[^\W\d_]+\s+)?$"
        rf"|({_any('first_thoughts')})[^.!?]{{0,30}}$"
        rf"|({_any('frequent')})\s+(?:[^\W\d_]+\s+){{0,2}}(?:{_any('errors')})\s+(?:[^\W\d_]+\s+){{0,3}}$"
    ),
    "related": re.compile(
        rf"({_any('relations')}|(?:más|menos|plus|moins)\s\w+\s(?:que|de)|(?:tan|aussi|si)\s\w+\s(?:como|que)"
        rf"|so\s\w+\swie|\w+er\sals)\s*{_ARTICLES}{{0,2}}(?:[^\W\d_]+\s+of\s+)?$"
    ),
    "quoted": re.compile(
        rf"(?<!is )(?<!was )(?<!are )(?<!were )(?<!be )(?<!also )({_any('named')})[^.!?]{{0,15}}$"
        rf"|({_any('places')})\s+[\"']?(?:[^\W\d_]+\s+)?$"
    ),
    "rejected": re.compile(rf"({_any('negations')})(?:\W+\w+){{0,4}}\W*$"),
}
_AFTER: Final = {
    "contrasted": re.compile(
        rf"\W*(?:\w+\W+){{0,4}}(?:is|was|would be|may be|being)\s+(?:\w+\s+){{0,3}}({_any('errors')})"
        rf"|\W*(?:\w+\W+){{0,2}}({_any('denials')})|[^.!?]{{0,40}}\b(?:though|yet|whereas|while|although)\b(?! i\b)"
        rf"|[^.!?]{{0,80}}(?:\bbut\b|{_any('realities')})"
    ),
    "related": re.compile(
        r"\s*(?:\w+\s+){0,2}(?:or|and)\s+(?:more|less|later|earlier|higher|lower|over|under|above|below|so)\b"
        rf"|\s*(?:\w+\s+){{0,2}}({_any('comparatives')})|\s*(?:\w+ )?(?:plus|minus)\b"
    ),
    "quoted": re.compile(rf"[\"']?\s({_any('places')})"),
}
_BOUND: Final = re.compile(r"\b(?:at least|at most|up to|over|under|mindestens|höchstens|au moins|al menos)\s+$")
_ASKS_FOR_BOUND: Final = re.compile(expression(VALUE_WORDS["value_readings"]["asks_for_bound"].split()))
_SAID_BEFORE: Final = re.compile(rf"({_any('speakers')})[^.!?]{{0,20}}(?:{_any('speaks')})[^.!?]{{0,30}}$")
_FROM: Final = re.compile(r"\b(?:from|von|aus|de)\s+(?:the\s+)?$")
_TO: Final = re.compile(r"\s*,?\s*(?:to|nach|a|vers)\s")
_WITHIN: Final = {
    "restricted": re.compile(_any("restrictions")),
    "conditional": re.compile(_any("conditions")),
    "hedged": re.compile(_any("hedges")),
}
# Directly before the last mention, they take all mentions back: "set by the Commission, not by the bank".
_DENIED_BEFORE: Final = re.compile(
    rf"(?<!\w)(?:{_any('negations')}|{_any('withdrawals')})\s+(?:(?:by|in|at|on|from|to|par|por|von|en|dans)\s+)?"
    rf"{_ARTICLES}{{0,2}}$"
)
# "Madrid, though I'm not sure on which floor" is sure of Madrid.
_UNKNOWN_ASIDE: Final = re.compile(
    r"\b(?:not sure|unsure|not certain|(?:do not|don't) know|(?:can't|cannot) (?:say|tell))\s+(?:exactly\s+)?"
    r"(?:(?:on|in|at|of|for)\s+)?(?:how|which|what|when|where|why)(?:\s+[^\W\d_]+){2,}"
)
_NOT_REJECTED: Final = re.compile(_any("no_rejections"))
STANCES: Final = (
    *("retracted", "questioned", "contrasted", "related", "quoted", "reported", "rejected", "restricted"),
    *("conditional", "hedged"),
)
"""Ways in which an answer can mention a reference without stating it."""

_SEPARATOR: Final = re.compile(
    r"\s*(?:,(?!\d)|[;/|\n+&•、]|\b(?:and|or|und|oder|et|ou|y|o|e)\b|[和或]|(?:^|\s)\(?[a-e1-9][.)]\s)\s*",
    re.IGNORECASE,
)
_NO_MEMBER: Final = frozenset(VOCABULARY["words"]["clauses"].split()).union(VOCABULARY["words"]["no_members"].split())
_BLANKS: Final = re.compile(r"\s{2,}")
_LEAST_OF_A_LIST: Final = 2
_MOST_WORDS_BETWEEN_CLAUSE_MARKS: Final = 4
_NO_LIST: Final = re.compile(r"<\w|^\s*[#|]|[^\W\d]:\s|\bi\.\s?e\.")
"""Tags, headings, tables, and parts of a dialogue or an explanation."""
_MOST_WORDS_OF_PAIR: Final = 2
_YEAR: Final = re.compile(r"[12]\d{3}")
_REGIONS: Final = frozenset(region.strip() for region in VOCABULARY["words"]["regions"].split("|"))
_DETERMINERS: Final = frozenset({"a", "an", "the"})
_ASKS_WHERE: Final = re.compile(r"\b(?:where|located|born|wo|où|dónde)\b", re.IGNORECASE)
_COMMA_ALONE: Final = re.compile(r"[^,;/|\n+&\u2022]*,[^,;/|\n+&\u2022]*$")


_WORD: Final = re.compile(r"[\w']+")


@dataclass(frozen=True)
class _Reading:
    """The beginning of a claim in lower case, with its words and their places."""

    text: str

    @lazy
    def written(self) -> list[str]:
        """The words in their normal form."""
        return _normal_forms(_TOKEN.findall(self.text))

    @lazy
    def spans(self) -> list[tuple[int, int]]:
        """The place of each word in the text."""
        return [match.span() for match in _TOKEN.finditer(self.text)]

    @lazy
    def words(self) -> frozenset[str]:
        """The set of words."""
        return frozenset(self.written)

    @lazy
    def content(self) -> list[int]:
        """The indices of the words that are not stop words."""
        return [place for place, word in enumerate(self.written) if word not in STOP_WORDS]

    @lazy
    def written_content(self) -> list[str]:
        return [word for word in self.written if word not in STOP_WORDS]

    @lazy
    def ends(self) -> list[int]:
        return [0, *(match.end() for match in _SENTENCE_END.finditer(self.text)), len(self.text) + 1]

    def sentence(self, start: int, end: int) -> tuple[int, int]:
        """Return the bounds of the sentences that contain a span."""
        return self.ends[bisect_right(self.ends, start) - 1], self.ends[bisect_left(self.ends, end)]


def _normal_forms(words: Sequence[str]) -> list[str]:
    if max(map(len, words), default=0) <= _MAX_CACHED_LETTERS:
        return list(map(_normal_of_short, words))
    return [_normal_of_short(word) if len(word) <= _MAX_CACHED_LETTERS else _without_inflection(word) for word in words]


def _without_inflection(word: str) -> str:
    word = word.removesuffix("'s").replace("'", "").replace(",", "")
    return number_or_lemma(word if word.isascii() else folded(word).strip() or word)


_normal_of_short = lru_cache(maxsize=_MAX_CACHED_WORDS)(_without_inflection)


def mention_features(
    question: FeatureText, references: Sequence[FeatureText], claim: FeatureText, focus: Focus
) -> dict[str, float]:
    """Return features of how a claim mentions its references. The mentions are read in `focus`.

    Returns:
        Each of `STANCES`: 1 if the mention that is stated most plainly has this stance, 0 if it has not, NaN if the
        claim does not mention a reference word for word. `stances`: their number. `new_words`: ln(1 + words that
        neither the question nor a reference has, without small words). `new_share`: their share. `new_beside`: their
        number in the sentence of the mention. `members_beside`: for a list, the members that no reference has; NaN
        if the claim is no list of short members. `members_missing`: 1 if the claim has members of a list that is the
        reference, but not all.
    """
    known = question.distinct.union(*(reference.distinct for reference in references[:_MOST_REFERENCES]))
    content = [word for word in claim.words if word not in FUNCTION_WORDS]
    new = sum(word not in known for word in content)
    found = {
        **dict.fromkeys((*STANCES, "stances", "new_beside"), nan),
        "members_beside": nan,
        "members_missing": nan,
        "new_words": log1p(new),
        "new_share": new / len(content) if content else nan,
    }
    reading = _Reading(plain(focus.surroundings.raw))
    found["members_beside"] = _members_beside(focus.statement.raw, references, question)
    found["members_missing"] = _members_missing(focus.surroundings.raw, references)
    spans = _all_spans(reading, references)
    if not spans:
        return found
    own = _own_words(question, references)
    mentions = [(_stances(reading, *span, own), span) for span in spans]
    if _DENIED_BEFORE.search(reading.text, max(0, spans[-1][0] - _NEAR), spans[-1][0]) and len(spans) > 1:
        for stances, span in mentions:
            stances["retracted" if span != spans[-1] else "rejected"] = 1.0
    stances, span = min(mentions, key=lambda each: (sum(each[0].values()), each[1][0] - each[1][1]))
    raw = focus.surroundings.raw
    if len(raw) == len(reading.text) and is_one_of_two(raw, span, known):
        stances["hedged"] = 1.0
    start, end = reading.sentence(*span)
    beside = sum(
        start <= begin < end and word not in known and word not in FUNCTION_WORDS
        for (begin, _), word in zip(reading.spans, reading.written, strict=True)
    )
    found.update(stances, stances=float(sum(stances.values())), new_beside=min(_MOST_NEW, float(beside)))
    if focus.surroundings is not claim and not stances["retracted"]:
        found.update(_taken_back(references, claim))
    return found


def states_elsewhere(question: str, references: Sequence[str], claim: str, around: str) -> bool:
    """Return True if a text states a reference behind the claim that was taken from it and mentions none."""
    texts = [FeatureText.of(reference) for reference in references[:_MOST_REFERENCES]]
    if _all_spans(_Reading(plain(claim)), texts):
        return False
    reading = _Reading(plain(around))
    behind = reading.text.rfind(plain(claim))
    own = _own_words(FeatureText.of(question), texts)
    return any(
        span[0] > behind >= 0 and not any(_stances(reading, *span, own).values()) for span in _all_spans(reading, texts)
    )


def _own_words(question: FeatureText, references: Sequence[FeatureText]) -> str:
    words = _WORD.findall(plain(" ".join(each.raw for each in (question, *references[:_MOST_REFERENCES]))))
    return f" {' '.join(words)} "


def _wanted_words(reference: str) -> list[str]:
    """Return the words that a mention of a reference has in a row, small words left out."""
    return _wanted_of_short(reference) if len(reference) <= _MAX_CACHED_CHARACTERS else _read_wanted(reference)


def _read_wanted(reference: str) -> list[str]:
    words = _normal_forms(_TOKEN.findall(plain(reference)))
    return [word for word in words if word not in STOP_WORDS] or words


_wanted_of_short = lru_cache(maxsize=_MAX_CACHED_REFERENCES)(_read_wanted)


def _taken_back(references: Sequence[FeatureText], claim: FeatureText) -> dict[str, float]:
    """Return `retracted` for the end of a long claim: 1 if no mention stands behind the last retraction."""
    reading = _Reading(plain(claim.raw[-_LONGEST_END:]))
    spans = _all_spans(reading, references)
    if not spans:
        return {}
    retraction = _RETRACTS.search(reading.text, spans[-1][1])
    return {"retracted": float(retraction is not None and any(map(str.isalnum, reading.text[retraction.end() :])))}


def _all_spans(reading: _Reading, references: Sequence[FeatureText]) -> list[tuple[int, int]]:
    """Return the spans of all mentions in their order, without those inside a longer one."""
    spans = sorted(
        {span for reference in references[:_MOST_REFERENCES] for span in _spans(reading, reference)},
        key=lambda span: (span[0], -span[1]),
    )
    outer: list[tuple[int, int]] = []
    for span in spans:
        if not outer or span[1] > outer[-1][1]:
            outer.append(span)
    return outer


def _spans(reading: _Reading, reference: FeatureText) -> Iterator[tuple[int, int]]:
    """Yield the spans in which the reference's words stand, small words left out."""
    wanted = _wanted_words(reference.raw)
    if not wanted or wanted[0] not in reading.words:
        return
    is_content = STOP_WORDS.isdisjoint(wanted)
    written = reading.written_content if is_content else reading.written
    count, place = len(wanted), -1
    for _ in range(_MOST_MENTIONS):
        place = _place(written, wanted, place + 1)
        if place < 0:
            return
        first, last = place, place + count - 1
        if is_content:
            first, last = reading.content[first], reading.content[last]
        yield reading.spans[first][0], reading.spans[last][1]


def _place(words: list[str], wanted: list[str], start: int) -> int:
    """Return the first place from `start` on where the wanted words stand in a row, or -1."""
    for _ in range(words.count(wanted[0])):
        try:
            place = words.index(wanted[0], start)
        except ValueError:
            return -1
        if words[place : place + len(wanted)] == wanted:
            return place
        start = place + 1
    return -1


def _stances(reading: _Reading, left: int, right: int, own: str) -> dict[str, float]:
    start, end = reading.sentence(left, right)
    text = reading.text
    before, after = text[max(start, left - _NEAR) : left], text[right : min(end, right + _NEAR)]
    retraction = _RETRACTS.search(text, right)
    around = text[max(0, start - _NEAR) : end + _NEAR]
    found = {
        "retracted": retraction is not None and any(map(str.isalnum, text[retraction.end() :])),
        "questioned": _QUESTIONED.match(text, right) is not None,
        "restricted": _has_new(_WITHIN["restricted"], text[start:end], own),
        "conditional": _has_new(_WITHIN["conditional"], text[start:end], own),
        "hedged": _has_new(_WITHIN["hedged"], _UNKNOWN_ASIDE.sub(" ", around), own),
        **{
            name: (name == "related" and _FROM.search(before) is not None and _TO.match(after) is not None)
            or _is_new(pattern.search(before), own)
            or (name in _AFTER and _is_new(_AFTER[name].match(after), own))
            for name, pattern in _BEFORE.items()
        },
    }
    bound = _BOUND.search(before) is not None and _ASKS_FOR_BOUND.search(own) is not None
    found["related"] = (found["related"] and not bound and not asks_to_compare(own)) or is_of_another(
        before, text[left:right], after, own
    )
    found["reported"] = is_reported(before, after, own) or _is_new(_SAID_BEFORE.search(before), own)
    found["rejected"] = found["rejected"] and _NOT_REJECTED.search(before) is None
    return {name: float(found[name]) for name in STANCES}


def _is_new(match: re.Match[str] | None, own: str) -> bool:
    """Return True for a match whose cue neither the question nor a reference has: "Which metal is not magnetic?"."""
    if match is None:
        return False
    cue = next(filter(None, match.groups()), "")
    return not cue or f" {cue} " not in own


def _has_new(pattern: re.Pattern[str], text: str, own: str) -> bool:
    """Return True if a text has a phrase that neither the question nor a reference has."""
    return any(f" {match[0]} " not in own for match in pattern.finditer(text))


def _members(text: str) -> list[str]:
    parts = [part for part in _SEPARATOR.split(text) if any(map(str.isalnum, part))]
    if len(parts) > 1:
        return parts
    words = text.split()
    return words if len(words) > 2 and all(word[:1].isdigit() for word in words) else parts


def _members_beside(raw: str, references: Sequence[FeatureText], question: FeatureText) -> float:
    members = _members(
        _BLANKS.sub(lambda blank: "\n" if "\n" in blank[0] else " ", raw[:MAX_CHARACTERS])
        .replace("\u2019", "'")
        .rstrip(" .!?\n")
    )
    clauses = ";" in raw or "\n" in raw
    most = _MOST_WORDS_BETWEEN_CLAUSE_MARKS if clauses else _MOST_WORDS_OF_MEMBER
    if (
        len(members) < _LEAST_OF_A_LIST
        or _NO_LIST.search(raw) is not None
        or any(len(member.split()) > most for member in members)
        or (
            len(members) == _LEAST_OF_A_LIST
            and _COMMA_ALONE.match(raw)
            and (
                not _are_parallel(*members)
                or _ASKS_WHERE.search(question.raw) is not None  # "Vienna, Austria" is one place
                or " ".join(folded_words(members[1])) in _REGIONS
            )
        )
    ):
        return nan
    parts = [frozenset(part.content) for reference in references[:_MOST_REFERENCES] for part in reference.parts]
    words = [folded_words(member) for member in members]
    if not any(part.issubset(each) for part in parts for each in words):
        return 0.0
    asked = question.distinct
    if any(part <= asked for part in parts):
        asked = frozenset()  # The question offers the reference, and so may offer the others.
    known = asked.union(*parts)
    if len(parts) == len(references) and _several_are_said(parts, words):
        return 0.0  # each reference is one of several right answers
    if any(asked.issuperset(each) and len(FUNCTION_WORDS.union(each)) > len(FUNCTION_WORDS) + 1 for each in words):
        return nan  # a sentence: "Carter, Lois's dad on the show, is voiced by Seth"
    beside = sum(_is_beside(each, parts, known) for each in words)
    return min(_MOST_MEMBERS, float(beside))


def _are_parallel(one: str, other: str) -> bool:
    """Return True for "basil, bacon" and "the cat, the dog"; False for "Italy, I'd say"."""
    pair = [[word for word in each.casefold().split() if word not in _DETERMINERS] for each in (one, other)]
    return len(pair[0]) == len(pair[1]) <= _MOST_WORDS_OF_PAIR and FUNCTION_WORDS.isdisjoint((*pair[0], *pair[1]))


def _is_list(parts: Sequence[FeatureText]) -> bool:
    """Return False for one thing with a comma: "Yes, he won", "Agra, India", "July 4, 1776", "Robert Downey, Jr."."""
    last = " ".join(parts[-1].words)
    return (
        len(parts) > 1
        and parts[0].words[:1] not in {("yes",), ("no",)}
        and not (len(parts) == _LEAST_OF_A_LIST and (last in _REGIONS or last in {"jr", "sr"} or _YEAR.fullmatch(last)))
    )


def _several_are_said(parts: Sequence[frozenset[str]], members: Sequence[Collection[str]]) -> bool:
    said = [part for part in parts if any(part.issubset(member) for member in members)]
    return any(one.isdisjoint(other) for one, other in pairwise(said))


def _is_beside(words: Sequence[str], parts: Sequence[frozenset[str]], known: Collection[str]) -> bool:
    """Return True if a list's member is no part of a reference, no clause, and half new at least."""
    content = [word for word in words if word not in FUNCTION_WORDS]
    new = sum(word not in known for word in content)
    return (
        0 < len(content) <= 2 * new and _NO_MEMBER.isdisjoint(words) and not any(part.issubset(words) for part in parts)
    )


def _members_missing(text: str, references: Sequence[FeatureText]) -> float:
    """Return 1 if each reference is a list, and a claim has some members of one, but not all members of any."""
    lists = [reference.parts for reference in references[:_MOST_REFERENCES]]
    if not all(map(_is_list, lists)):
        return 0.0
    said = frozenset(folded_words(text)) if text.strip() else frozenset[str]()
    some = False
    for parts in lists:
        shares = [sum(word in said for word in part.content) / len(part.content) for part in parts]
        short = all(len(part.content) <= _MOST_WORDS_OF_MEMBER for part in parts)
        if not short or not {0.0, 1.0}.issuperset(shares) or 0.0 not in shares:
            return 0.0
        some |= 1.0 in shares
    return float(some)
