r"""Marks around final answers: boxes, tags, keys of JSON, brackets, rows of totals and lists.

The functions return the last mark of their kind, because a later statement replaces an earlier one. They take linear
time.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from gradewire_proto.final_answer.clauses import trimmed
from gradewire_proto.final_answer.types import Position, Span
from gradewire_proto.final_answer.words import any_of

_BOX_NAMES: Final = (r"\boxed", r"\fbox", r"\framebox")
_BOX: Final = re.compile(r"\\(?:boxed|fbox|framebox)(?:\s{0,8}(\{)| ([^\s{}$]{1,100}))")
# An escaped character (so `\{` is not a brace), or a brace.
_BRACE: Final = re.compile(r"\\.|[{}]", re.DOTALL)
_MOST_BOXES: Final = 64
_MOST_STEPS: Final = 4_000
_LONGEST_BOX: Final = 20_000
_TAG_NAMES: Final = (
    "answer|final_answer|final-answer|finalanswer|ans|antwort|respuesta|respuesta_final|réponse|reponse|risposta|"
    "resposta|antwoord|odpowiedź|ответ|答案|回答|정답|答え|endantwort"
)
_WEAK_TAG_NAMES: Final = "solution|final|response|result|output|lösung|solución|conclusion"
_TAG: Final = re.compile(
    rf"<(/?)(?:({_TAG_NAMES})|{_WEAK_TAG_NAMES})(?:\s[^<>\n]{{0,80}})?>|\[(/?)(?:FINAL[ _])?ANSWER\]", re.IGNORECASE
)
_KEY: Final = re.compile(
    rf"""["']?(?<!\w)(?:(?:final|correct|my|best)[_ ]?)?(?:(answer|ans|{any_of("answer")})|{any_of("result")}|"""
    r"""solution|result|choice|output|prediction)(?:[_ ](?:text|letter|value|final))?"""
    r"""(?:["']\s{0,8}:|\s?=(?=\s?["'\[]))\s{0,8}""",
    re.IGNORECASE,
)
_INNER_KEY: Final = re.compile(
    r"""["'](?:value|text|answer|final|final_answer|letter|option|choice|result|label|content|name)["']\s{0,8}:\s{0,8}""",
    re.IGNORECASE,
)
_MOST_NESTED: Final = 3
_MOST_INNER: Final = 400
_LABEL: Final = re.compile(rf"(?:{any_of('answer', 'result')})\s?[:：]$", re.IGNORECASE)
_ONLY_PAIR: Final = re.compile(
    r"\{\s{0,8}\"[\w -]{1,40}\""
    r"\s{0,8}:\s{0,8}(?P<value>\"[^\"\\{}\n]{1,200}\"|-?\d[\d.]*)\s{0,8}\}\s{0,8}(?:```)?\s{0,8}\Z"
)
_VALUE: Final = re.compile(r"-?[\w.+%/-]{1,60}")
_CALL: Final = re.compile(
    r"(?:\bfinish|\bfinal_answer|\bsubmit|\bsubmit_answer|\banswer)\s?(?:\[([^\[\]\n]{1,400})\]|"
    r"\(\s?([\"'])(.{1,400}?)\2\s?\))",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(r"\[\[\s?([^\[\]\n]{1,100})\s?\]\]")
_FENCE: Final = re.compile(r"(?:```|~~~)[\w+-]{0,20}[ \t]{0,4}\n?")
_FENCE_END: Final = re.compile(r"\n?[ \t]{0,8}(?:```|~~~)\s{0,8}\Z")
_ROW: Final = re.compile(r"^\s{0,4}\|(.{1,400})\|\s{0,4}$")
_TOTAL: Final = re.compile(rf"(?:{any_of('answer', 'result')}|sum|summe|somme|suma)\s?[:：]?", re.IGNORECASE)
_BULLET: Final = re.compile(
    r"\s{0,8}(?:[-*•–+]|\(?\d{1,3}[.)、）]|[a-z]\))\s{1,4}(?=\S)|\s{0,8}\d{1,3}[、.](?=[^\s\d])"
)
_SIGN_BULLET: Final = re.compile(r"(?:[*•]|-(?=\s[^\W\d]))\s{1,4}(?=\S)")
_MOST_ITEMS: Final = 50
_MOST_ANNOUNCED_WORDS: Final = 14
_LONGEST_ANNOUNCED: Final = 120
_NUMBER_LINE: Final = re.compile(
    r"(?:[^\W\d_]\w{0,3}\s?=\s?)?[-−+$€£]{0,2}\d[\d.,:/]{0,20}\s?(?:%|°|[^\W\d_]{1,3}[²³]?)?[.]?"
)
"""A line that is a number with a short unit, or an equation: "12 kg", "x = 3"."""
_LONGEST_VALUE: Final = 20_000
_LONGEST_LIST: Final = 8_000
_MOST_KEYS: Final = 8
_MOST_SEARCHED: Final = 4_000
# Before the last characters, only these are searched, because a search for a fixed text costs next to nothing.
_FAR_TAGS: Final = ("<answer>", "<final_answer>", "<Answer>", "<ANSWER>", "[ANSWER]", "<solution>", "<response>")
_FAR_KEYS: Final = ('"answer"', '"final_answer"', '"Answer"', "'answer'")


@dataclass(frozen=True, slots=True)
class Statement:
    """A marked statement of an answer.

    Attributes:
        start: Start of the mark.
        left: Start of the content.
        right: End of the content.
        position: The kind of the mark.
        force: 2 if the mark stands for a final answer, 1 if it may also mark something else.
        value: The content with its escapes decoded, if this differs from the text; otherwise None.
        contested: True if another mark that stands for a final answer has another content.
    """

    start: int
    left: int
    right: int
    position: Position
    force: int = 2
    value: str | None = None
    contested: bool = False


def last_box(text: str) -> Statement | None:
    r"""Return the last complete `\boxed{…}`, `\fbox{…}` or `\boxed 5`; an open one if none is complete."""
    opened: Statement | None = None
    steps = _MOST_STEPS
    before = len(text)
    for _ in range(_MOST_BOXES):
        before = max(text.rfind(name, 0, before) for name in _BOX_NAMES)
        if before < 0:
            break
        box = _BOX.match(text, before)
        if box is None or _is_escaped(text, before):
            continue
        if box[2] is not None:
            return Statement(before, *box.span(2), "boxed")
        content = box.end()
        end, taken = _closing_brace(text, content, steps)
        steps -= taken
        if end is None and opened is None:
            line = text.find("\n", content)
            opened = Statement(before, content, len(text) if line < 0 else line, "boxed", 1)
        if end is not None and text[content:end].strip():
            return Statement(before, content, end, "boxed")
        if steps <= 0:
            break
    return opened if opened is not None and text[opened.left : opened.right].strip() else None


def _closing_brace(text: str, left: int, most_steps: int) -> tuple[int | None, int]:
    """Return the place of the brace that closes what begins at `left`, and how many braces were read."""
    depth = 1
    steps = 0
    for brace in _BRACE.finditer(text, left, left + _LONGEST_BOX):
        steps += 1
        if steps >= most_steps:
            break
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if not depth:
                return brace.start(), steps
    return None, steps + 10


def _is_escaped(text: str, place: int) -> bool:
    """Return True if an odd number of backslashes stands before a place."""
    before = text[max(0, place - 64) : place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def empty_mark(text: str) -> bool:
    """Return True if a text contains an empty box or tag."""
    return re.search(rf"\\boxed\s?\{{\s{{0,8}}\}}|<({_TAG_NAMES})>\s{{0,8}}</\1>", text, re.IGNORECASE) is not None


def last_tag(text: str) -> Statement | None:
    """Return the last complete tag of an answer, such as `<answer>…</answer>`; an open one if none is complete."""
    begun: re.Match[str] | None = None
    found: Statement | None = None
    near = max(0, len(text) - _MOST_SEARCHED)
    if near:
        begun = _TAG.match(text, _last_of(_FAR_TAGS, text, near))
        if begun is not None:
            near = _after_far_tag(text, begun, near)
    for tag in _TAG.finditer(text, near):
        if not (tag[1] or tag[3]):
            begun = tag
        elif begun is not None:
            force = 2 if begun[2] or begun[0][0] == "[" else 1
            statement = Statement(begun.start(), begun.end(), tag.start(), "tagged", force)
            if text[statement.left : statement.right].strip() and (found is None or force >= found.force):
                found = statement
            begun = None
    if found is None and begun is not None and text[begun.end() :].strip():
        return Statement(begun.start(), begun.end(), len(text), "tagged", 2 if begun[2] else 1)
    return found


def _last_of(marks: tuple[str, ...], text: str, right: int) -> int:
    """Return the last place before `right` where one of some marks begins; `right` if no mark does."""
    last = max(text.rfind(mark, 0, right) for mark in marks)
    return right if last < 0 else last


def _after_far_tag(text: str, begun: re.Match[str], near: int) -> int:
    """Return the place of the end tag of a tag before `near`; `near` if it does not end before."""
    mark = begun[0]
    end = text.find(f"{mark[0]}/{mark[1:]}", begun.end(), near + len(mark))
    return near if end < 0 else end


def last_key(text: str) -> Statement | None:
    """Return the value of the last key of JSON, or named argument, whose name means an answer."""
    near = max(0, len(text) - _MOST_SEARCHED)
    far = _KEY.match(text, _last_of(_FAR_KEYS, text, near)) if near else None
    keys = [*([far] if far else []), *_KEY.finditer(text, near)]
    certain = [key for key in keys if key[1]]
    # Only the last keys are read: a hostile text has a hundred thousand.
    for key in (*certain[: -_MOST_KEYS - 1 : -1], *keys[: -_MOST_KEYS - 1 : -1]):
        statement = _value(text, key.start(), key.end(), 2 if key[1] else 1)
        if statement is not None:
            return statement
    return _only_value(text)


def _only_value(text: str) -> Statement | None:
    """Return the value of an object of JSON with a single pair, if a text ends with it."""
    begin = text.rfind("{", max(0, len(text) - _MOST_INNER))
    found = _ONLY_PAIR.match(text, begin) if begin >= 0 else None
    before = text[max(0, begin - 40) : begin].rstrip(" ")
    if found is not None and before and not before.endswith("\n") and _LABEL.search(before) is None:
        return None  # the object is part of a sentence
    return None if found is None else _value(text, begin, found.start("value"), 2)


def _value(text: str, start: int, left: int, force: int) -> Statement | None:
    for _ in range(_MOST_NESTED):  # {"answer": {"value": 5}}
        if text[left : left + 1] != "{" or (inner := _INNER_KEY.search(text, left, left + _MOST_INNER)) is None:
            break
        left = inner.end()
    first = text[left : left + 1]
    if first in {'"', "'"}:
        right = _closing_quote(text, left + 1, first)
        if right == left + 1:
            return None
        raw = text[left + 1 : right]
        return Statement(start, left + 1, right, "json", force, _decoded(raw) if "\\" in raw else None)
    if first == "[":
        end = text.find("]", left, left + 2000)
        if end < 0:
            return None
        items = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([\w.+-]+)", text[left + 1 : end])
        joined = ", ".join(_decoded(next(filter(None, item), "")) for item in items[:_MOST_ITEMS])
        return Statement(start, left, end + 1, "json", force, joined) if joined else None
    found = _VALUE.match(text, left)
    return Statement(start, left, found.end(), "json", force) if found else None


def _closing_quote(text: str, left: int, quote: str) -> int:
    end = re.compile(rf"\\.|{quote}(?=\s{{0,8}}(?:[,}})\]]|\n|$))|$", re.DOTALL)
    for found in end.finditer(text, left, min(len(text), left + _LONGEST_VALUE)):
        if not found[0].startswith("\\"):
            return found.start()
    return min(len(text), left + _LONGEST_VALUE)


def _decoded(raw: str) -> str:
    try:
        value = json.loads(f'"{raw}"')
    except ValueError:
        return raw
    return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def last_call(text: str) -> Statement | None:
    """Return the argument of the last call such as `Finish[…]` or `submit("…")`, or the content of the last `[[…]]`."""
    best: Statement | None = None
    near = max(0, len(text) - _MOST_SEARCHED)
    for call in _CALL.finditer(text, near):
        group = 1 if call[1] is not None else 3
        best = Statement(call.start(), call.start(group), call.end(group), "tagged")
    for bracket in _BRACKETS.finditer(text, near):
        if best is None or bracket.start() > best.start:
            best = Statement(bracket.start(), bracket.start(1), bracket.end(1), "tagged")
    return best


def fenced(text: str, left: int, right: int) -> Span:
    """Return the span inside a fence of code that is the whole span; otherwise the span itself."""
    if not text.startswith(("```", "~~~"), left):
        return left, right
    opening = _FENCE.match(text, left, right)
    closing = _FENCE_END.search(text, max(left, right - 40), right)
    if opening is None or closing is None or opening.end() > closing.start():
        return left, right
    inside = opening.end(), closing.start()
    return trimmed(text, *inside) if text.find("```", *inside) < 0 else (left, right)


def total_row(text: str) -> Statement | None:
    """Return the last cell of a table's last row, if that row is of a total and nothing follows the table."""
    lines = text.rstrip().rsplit("\n", 1)
    row = _ROW.match(lines[-1])
    if row is None or len(lines) < 2:
        return None
    offset = len(lines[0]) + 1
    cells = row[1].split("|")
    if len(cells) < 2 or _TOTAL.fullmatch(cells[0].strip(" *_")) is None:
        return None
    right = offset + row.end(1)
    return Statement(offset, right - len(cells[-1]), right, "line")


def list_items(text: str, left: int, right: int, *, announced: bool = False) -> list[Span]:
    """Return the spans of the items if a span is a list: lines with bullets or numbers, or short lines without marks.

    A span that is no list, or has a single item, has no items.

    Args:
        text: The text that contains the span.
        left: Start of the span.
        right: End of the span.
        announced: True if the span follows a mark such as "Answer:". Then items may be longer, and lines without
            bullets may be numbers or equations.
    """
    items: list[Span] = []
    bare = 0
    start = left
    if right - left > _LONGEST_LIST:
        return []
    for line in text[left:right].split("\n")[: 2 * _MOST_ITEMS]:
        end = start + len(line)
        if line.strip():
            bullet = _BULLET.match(line)
            bare += bullet is None
            item = trimmed(text, start + (bullet.end() if bullet else 0), end)
            items.append((item[0], item[0] + len(text[item[0] : item[1]].rstrip(" ,;，；"))))
        start = end + 1
    if start <= right or len(items) < 2 or len(items) > _MOST_ITEMS or 0 < bare < len(items):
        return []
    if bare:
        return items if _are_bare_items([text[a:b] for a, b in items], announced=announced) else []
    most_words, most_characters = (_MOST_ANNOUNCED_WORDS, _LONGEST_ANNOUNCED) if announced else (6, 60)
    if any(
        len(text[a:b].split()) > most_words
        or b - a > most_characters
        or (len(text[a:b].split()) > 6 and text[b - 1] in ".!?:")
        for a, b in items
    ):
        return []
    return items


def _are_bare_items(lines: list[str], *, announced: bool) -> bool:
    """Return True if lines without bullets are a list: at least three of few words, or announced numbers."""
    if announced and all(_NUMBER_LINE.fullmatch(line) for line in lines):
        return True
    return len(lines) > 2 and not any(
        re.search(r"[.!?:;,=。，：]|\d", line) or len(line.split()) > 3 or len(line) > 60 for line in lines
    )


def without_bullet(text: str, left: int, right: int) -> int:
    """Return the start of a line's content behind its bullet; `left` without one. The hyphen of "- 5" is a sign."""
    bullet = _SIGN_BULLET.match(text, left, right)
    return left if bullet is None else bullet.end()
