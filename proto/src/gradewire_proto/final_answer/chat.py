"""Sentences that only address the reader: those that open and close a chat, questions, and plans without a result."""

import re
from typing import Final

from gradewire_proto.final_answer.assertions import asserted_answer
from gradewire_proto.final_answer.clauses import sentences, tidied
from gradewire_proto.final_answer.found import Found, finish
from gradewire_proto.final_answer.marks import Statement, empty_mark
from gradewire_proto.final_answer.words import any_of

_CLOSER: Final = re.compile(
    rf"[\s(*_¡¿\"-]{{0,8}}(?:{any_of('closer')})(?!\w|['’])|[\s(]{{0,4}}(?:{any_of('closer')})", re.IGNORECASE
)
_OPENER: Final = re.compile(
    rf"[¡\s]{{0,4}}(?:{any_of('opener')})(?:[,，]\s?(?:{any_of('opener')})){{0,2}}(?:[^.!?:。！,，]{{0,24}}[.!。！:：]|"
    rf"[,，:：])\s{{0,4}}(?:👋\s?)?",
    re.IGNORECASE,
)
_IT_IS: Final = re.compile(rf"(?:{any_of('it_is')})(?!\w|['’]\w)\s?(?=\S)", re.IGNORECASE)
_YOU: Final = re.compile(any_of("you"), re.IGNORECASE)
_PLANNING: Final = re.compile(rf"[\s*#_]{{0,8}}(?:{any_of('planning')})", re.IGNORECASE)
_FINISHED: Final = re.compile(r"[.!?。！？…)\]}\"'”»*_`|$]\s*$|\d\s*\S{0,4}\s*$")
_OPEN_LABEL: Final = re.compile(
    rf"[\s*#_]{{0,8}}(?:[^\W\d_]{{1,16}}\s){{0,2}}(?:{any_of('answer', 'result')})\s?[:：]?[\s*_]{{0,8}}", re.IGNORECASE
)


_LONGEST_OPENED: Final = 4000


def without_closers(text: str) -> int:
    """Return the end of a text without the sentences at its end that only address the reader."""
    end = len(text.rstrip())
    for _ in range(8):
        paragraph = text.rfind("\n\n", 0, end)
        listed = sentences(text, max(0, end - 1200), end)
        if (paragraph >= 0 and text[:paragraph].strip() and _CLOSER.match(text, paragraph + 2, end) is not None) or (
            0 <= paragraph >= end - 200 and re.fullmatch(r"\s*(?:---+|\*\*\*+)\s*", text[paragraph:end])
        ):
            end = len(text[:paragraph].rstrip())
        elif len(listed) > 1 and _CLOSER.match(text, *listed[-1]) is not None and listed[-1][0] > 0:
            end = len(text[: listed[-1][0]].rstrip(" \n(*_¡¿"))
        else:
            break
    return end


def unasserted(text: str, end: int, statement: Statement | None) -> str:
    """Return the reason if a text asserts nothing: a question to the reader, a plan, or the mark of an answer alone."""
    said = text[:end].strip()
    if not said:
        return "the completion is empty"
    if len(said) < 40 and empty_mark(said):
        return "the marked answer is empty"
    if statement is None and _OPEN_LABEL.fullmatch(said) is not None and said.rstrip("*_ ").endswith((":", "：")):
        return "nothing follows the announcement of the answer"
    whole = text.strip()
    if whole.endswith(("?", "？")):
        listed = sentences(whole[-1200:], 0, len(whole[-1200:]))
        if len(listed) == 1 and _YOU.search(whole[-1200:]) is not None:
            return "the completion asks a question"
    if (
        statement is None
        and _PLANNING.match(said) is not None
        and _FINISHED.search(said[-200:]) is None
        and len(said) > 24
    ):
        return "the completion ends before an answer"
    return ""


def opened(original: str, text: str, end: int) -> Found | None:
    """Return the answer after the sentence that opens a chat, such as "Good question!"."""
    begin = 0
    for _ in range(3):
        opener = _OPENER.match(text, begin, end)
        if opener is None or not text[opener.end() : end].strip():
            break
        begin = opener.end()
    if not begin:
        return None
    if end - begin > _LONGEST_OPENED:
        return Found(begin, end, "whole")
    listed = sentences(text, begin, end)
    if len(listed) > 2:
        return Found(begin, end, "whole")
    left, right = listed[-1] if len(listed) == 2 and _IT_IS.match(text, *listed[-1]) else (listed[0][0], listed[-1][1])
    if (it_is := _IT_IS.match(text, left, right)) is not None and len(text[it_is.end() : right].split()) <= 8:
        return finish(original, *asserted_answer(text, left, right), "line")
    return Found(*tidied(original, left, right), "line")
