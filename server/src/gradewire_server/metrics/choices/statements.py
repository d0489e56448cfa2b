"""Statements of an answer about options: each group of mentions, and whether the answer chooses or rejects it."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.choices.forces import (
    CHOSEN,
    CONCLUDED,
    NAMED,
    REJECTED,
    Context,
    first_clause,
    first_of,
    force_of,
    is_closed,
    last_of,
)
from gradewire_server.metrics.choices.forms import VOCABULARY, Mention, pattern

_SENTENCE_END: Final = re.compile(r"(?<![.!?…])[.!?…]+(?=[\s\"'”’»)\]]|$)|[。！？；]+|[.!?](?=[\u3040-\u9fff])|;|\n")
_ABBREVIATED: Final = re.compile(expression(VOCABULARY["sentence"]["abbreviations"]) + r"\Z", re.IGNORECASE)
_BLANK: Final = r"[\s,，、/&+)\]\"'”]{0,8}"
_OPENING: Final = r"[\s,，、(\[\"'“]{0,8}"
_LIST_GAP: Final = re.compile(
    rf"{_BLANK}(?:{expression(VOCABULARY['sentence']['list'])})?{_OPENING}"
    rf"(?:{expression(VOCABULARY['sentence']['list_hedges'])})?{_OPENING}"
    rf"(?:{expression(VOCABULARY['sentence']['fillers'])}{_OPENING}){{0,3}}",
    re.IGNORECASE,
)
_SAME_GAP: Final = re.compile(
    rf"[\s:.,)\]\"'”’\-–—(=\[“{{}}>|、→]{{0,8}}(?:{expression(VOCABULARY['sentence']['restated'])}[\s(\[\"'“]{{0,4}}){{0,2}}",
    re.IGNORECASE,
)
_NAME_GAP: Final = re.compile(
    rf"[\s,;(]*{expression(VOCABULARY['sentence']['named'])}[\s,(]*(?:option\s)?", re.IGNORECASE
)
_INTERJECTION: Final = re.compile(
    expression(
        (
            *VOCABULARY["answer"]["retract"],
            *VOCABULARY["answer"]["doubt"],
            *VOCABULARY["answer"]["conclude"],
            *VOCABULARY["sentence"]["interjections"],
        )
    ),
    re.IGNORECASE,
)
_MOST_BESIDE: Final = 160
"""Characters on each side of a mention that are read."""
_MOST_INTERJECTIONS: Final = 4


class Span(NamedTuple):
    """A range of characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A group of options that an answer mentions together, and what it says of them.

    Attributes:
        start: Start of the group in the answer.
        end: End of the group.
        options: The options' positions.
        force: CHOSEN, CONCLUDED, STATED, NAMED, REJECTED or OUT.
        by: "letter", "text" or "both".
        conflict: True if a letter stands with the text of another option.
        sentence: Number of the sentence.
        asked: True if the sentence is a question.
        leads: True if a label of its own begins the group's sentence, before other words: "B. Light is faster".
        span: The sentence.
    """

    start: int
    end: int
    options: tuple[int, ...]
    force: int
    by: str
    conflict: bool
    sentence: int
    asked: bool
    leads: bool
    span: Span


@dataclass(frozen=True, slots=True)
class _Group:
    start: int
    end: int
    options: tuple[int, ...]
    kinds: frozenset[str]
    conflict: bool = False
    dressed: bool = False
    """True if the group is a letter with a mark of its own."""
    leads: bool = False
    """True if the group begins with a letter and a mark behind it."""


class Sentences:
    """The sentences of an answer; full stops inside mentions end none."""

    def __init__(self, text: str, mentions: Sequence[Mention]) -> None:
        """Find the ends of the sentences."""
        self._text = text
        self.ends: list[int] = []
        places = sorted((each.start, each.end) for each in mentions)
        starts = [place[0] for place in places]
        leading = {each.end for each in mentions if each.leads}
        for match in _SENTENCE_END.finditer(text):
            at = bisect_left(starts, match.start() + 1) - 1
            if at >= 0 and places[at][1] > match.start():
                continue
            if match[0] == "." and (
                match.start() in leading or _ABBREVIATED.search(text, max(0, match.start() - 8), match.start())
            ):
                continue
            self.ends.append(match.end())
        self.ends.append(len(text))

    def number(self, place: int) -> int:
        """Return the number of the sentence that contains a place."""
        return bisect_left(self.ends, place + 1)

    def span(self, number: int) -> Span:
        """Return a sentence's span."""
        return Span(self.ends[number - 1] if number else 0, self.ends[min(number, len(self.ends) - 1)])


def statements_of(text: str, mentions: Sequence[Mention], *, negative: bool) -> list[Statement]:
    """Return what an answer says of the options that it mentions, in order.

    Args:
        text: The cleaned answer.
        mentions: Mentions of options in the answer, in order.
        negative: True if the question asks for the exception: "X is not a fruit" then names the answer.
    """
    sentences = Sentences(text, mentions)
    groups = _groups(text, mentions, sentences)
    found: list[Statement] = []
    for place, group in enumerate(groups):
        number = sentences.number(group.start)
        span = sentences.span(number)
        start = max(span.start, groups[place - 1].end if place else 0, group.start - _MOST_BESIDE)
        end = min(span.end, groups[place + 1].start if place + 1 < len(groups) else len(text), group.end + _MOST_BESIDE)
        before, after = text[start : group.start], text[group.end : end]
        lettered = group.leads if len(group.kinds) > 1 else "letter" in group.kinds and _announces(after, group)
        context = Context(
            before=before,
            after=after,
            opens=_opens(text[span.start : group.start]) or (place > 0 and _restarts(before)),
            closes=end == span.end,
            marked=lettered,
            previous=found[-1].force if found and found[-1].sentence == number else None,
            negative=negative,
        )
        found.append(_statement(text, group, context, number, span))
    return _without_headings(text, found)


def _statement(text: str, group: _Group, context: Context, number: int, span: Span) -> Statement:
    force = force_of(context)
    asked = text[span.start : span.end].rstrip().endswith(("?", "？"))
    reply = text[span.end : span.end + _LONGEST_REPLY].lstrip()
    if asked and force > REJECTED:  # "Is it B? Yes."
        for kind, replied in (("reply_yes", CHOSEN), ("reply_no", REJECTED)):
            if pattern("sentence", kind).match(reply) is not None:
                asked, force = False, replied
    if context.previous is not None and _repeats_previous(context.after):
        force = context.previous
    alone = force >= CONCLUDED and is_closed(context.after)
    by = "both" if len(group.kinds) > 1 else next(iter(group.kinds))
    leads = context.opens and group.leads and not alone and not group.conflict
    return Statement(group.start, group.end, group.options, force, by, group.conflict, number, asked, leads, span)


_LONGEST_REPLY: Final = 40


def _opens(head: str) -> bool:
    """Return True if only interjections and words without content stand before a mention in its sentence."""
    head = head.strip(" \t([\"'“>-")
    for _ in range(_MOST_INTERJECTIONS):
        if not head:
            return True
        found = _INTERJECTION.match(head)
        if found is None or not found.end():
            return False
        head = head[found.end() :].lstrip(" \t,.:;!…—–-([\"'“，、：。！")
    return not head


def _restarts(before: str) -> bool:
    """Return True if only words that take back what was said stand before a mention: "A, no, wait, C"."""
    said = before.strip(" ,.:;!…—–-)]")
    firm = pattern("answer", "retract").search(said) is not None
    doubts = pattern("answer", "doubt").match(said) is not None and before.rstrip()[-1:] in ",.:;!…—–，。：！-"
    return (firm or doubts) and _opens(said)


def _repeats_previous(after: str) -> bool:
    clause = first_clause(after)
    found = first_of(clause, "repeats")
    return found is not None and not clause[: found[0]].strip() and not clause[found[1] :].strip(" .。!;；")


def _announces(after: str, group: _Group) -> bool:
    """Return True if a mark of its own follows a letter: "B. Lightning …", "B) …"."""
    mark = after.lstrip(")]}>\"'")[:1]
    return (bool(mark) and mark in ".:：、-–—\n,;") or (group.dressed and after[:1] == "\n")


_LEAST_HEADINGS: Final = 2


def _without_headings(text: str, found: list[Statement]) -> list[Statement]:
    """Make statements out of a discussion's headings: labels from the first one on, each before its own text."""
    run: list[int] = []
    best: list[int] = []
    for place, statement in enumerate(found):
        if not statement.leads or len(statement.options) != 1:
            continue
        option = statement.options[0]
        if option == len(run) or (run and option > found[run[-1]].options[0]):
            run.append(place)
        elif option == 0:
            run = [place]
        best = run if len(run) > len(best) else best
    separate = len(best) >= _LEAST_HEADINGS and len({found[place].sentence for place in best}) == len(best)
    if not separate or (len(best) == _LEAST_HEADINGS and not _on_lines(text, [found[place] for place in best])):
        return found
    return [
        replace(statement, force=_noted(text, statement)) if place in best else statement
        for place, statement in enumerate(found)
    ]


def _on_lines(text: str, statements: Sequence[Statement]) -> bool:
    return all(
        "\n" in text[max(0, each.start - 8) : each.start] or not text[: each.start].strip() for each in statements
    )


def _noted(text: str, statement: Statement) -> int:
    """Return the force of the verdict at the end or the beginning of what follows a heading."""
    said = text[statement.end : statement.span.end]
    right, wrong = last_of(said, "is_right"), last_of(said, "is_wrong")
    if right is not None and (wrong is None or right[1] > wrong[1] or (right[1] == wrong[1] and right[0] < wrong[0])):
        return CONCLUDED
    return NAMED if wrong is None else REJECTED


def _groups(text: str, mentions: Sequence[Mention], sentences: Sentences) -> list[_Group]:
    """Join a letter with the text beside it, and the members of a list."""
    pairs: list[_Group] = []
    for mention in mentions:
        joined = _paired(text, pairs[-1], mention, sentences, mentions) if pairs else None
        if joined is None:
            dressed = mention.kind == "letter" and mention.strength > 1
            kinds = frozenset({mention.kind})
            pairs.append(
                _Group(mention.start, mention.end, (mention.option,), kinds, dressed=dressed, leads=mention.leads)
            )
        else:
            pairs[-1] = joined
    listed: list[_Group] = []
    for group in pairs:
        last = listed[-1] if listed else None
        beside = last is not None and sentences.number(last.start) == sentences.number(group.start)
        if last is not None and beside and _is_listed(text[last.end : group.start]):
            listed[-1] = replace(
                last,
                end=group.end,
                options=_joined(last.options, group.options),
                kinds=last.kinds | group.kinds,
                conflict=last.conflict or group.conflict,
            )
        else:
            listed.append(group)
    return listed


def _paired(
    text: str, group: _Group, other: Mention, sentences: Sentences, mentions: Sequence[Mention]
) -> _Group | None:
    """Return a group together with a mention that belongs to it, or None if the mention begins another group."""
    if other.start < group.end:  # one text of two options
        return replace(group, options=_joined(group.options, (other.option,)))
    gap = text[group.end : other.start]
    if group.kinds == {other.kind} or len(group.options) > 1 or "\n" in gap or _SAME_GAP.fullmatch(gap) is None:
        return None
    if "text" in group.kinds and any(mark in gap for mark in ".!?;") and _NAME_GAP.fullmatch(gap) is None:
        return None
    if (other.option,) == group.options:
        return replace(group, end=other.end, kinds=group.kinds | {other.kind})
    if _conflicts(text, group, other, sentences, mentions):
        return replace(group, end=other.end, kinds=group.kinds | {other.kind}, conflict=True)
    return None


def _is_listed(gap: str) -> bool:
    return bool(gap.strip(" ()[]\"'“”")) and "\n" not in gap and _LIST_GAP.fullmatch(gap) is not None


def _joined(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _conflicts(text: str, group: _Group, other: Mention, sentences: Sentences, mentions: Sequence[Mention]) -> bool:
    """Return True if a letter and another option's text are one statement: "B. a skateboard", "a dog (B)"."""
    sentence = sentences.span(sentences.number(group.start))
    end = sentences.span(sentences.number(other.start)).end
    inside = sum(sentence.start <= each.start < end for each in mentions)
    if "letter" not in group.kinds:
        return text[other.start] in "([" or _NAME_GAP.fullmatch(text, group.end, other.start) is not None
    closes = is_closed(text[other.end : end])
    gap = text[group.end : other.start]
    listed = gap.strip() in {",", "、"} and inside > 2
    return closes and not listed and bool(gap.strip() or group.dressed)
