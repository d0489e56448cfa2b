r"""Marks around final answers: boxes, tags, keys of JSON, brackets, rows of totals and lists.

The functions return the last mark of their kind, because a later statement replaces an earlier one. They take linear
time.
"""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gradewire_proto.final_answer.clauses import Span, trimmed
from gradewire_proto.final_answer.words import any_of

Position: TypeAlias = Literal[
    "boxed", "tagged", "json", "phrase", "line", "calculation", "correction", "whole", "nothing"
]
"""The place at which an answer was found."""

# The start of a box, an escaped character (so `\{` is not a brace), or a brace.
_BRACES: Final = re.compile(
    r"\\(?:boxed|fbox|framebox)\s{0,8}(\{)|\\(?:boxed|fbox) ([^\s{}$]{1,100})|\\.|[{}]", re.DOTALL
)
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
_VALUE: Final = re.compile(r"-?[\w.+%/-]{1,60}")
_CALL: Final = re.compile(
    r"(?:\bfinish|\bfinal_answer|\bsubmit|\bsubmit_answer|\banswer)\s?(?:\[([^\[\]\n]{1,400})\]|"
    r"\(\s?([\"'])(.{1,400}?)\2\s?\))",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(r"\[\[\s?([^\[\]\n]{1,100})\s?\]\]")
_FENCE: Final = re.compile(
    r"\s{0,8}(?:```|~~~)[\w+-]{0,20}[ \t]{0,4}\n?(.*?)\n?[ \t]{0,8}(?:```|~~~)\s{0,8}", re.DOTALL
)
_ROW: Final = re.compile(r"^\s{0,4}\|(.{1,400})\|\s{0,4}$")
_TOTAL: Final = re.compile(rf"(?:{any_of('answer', 'result')}|sum|summe|somme|suma)\s?[:：]?", re.IGNORECASE)
_BULLET: Final = re.compile(
    r"\s{0,8}(?:[-*•–+]|\(?\d{1,3}[.)、）]|[a-z]\))\s{1,4}(?=\S)|\s{0,8}\d{1,3}[、.](?=[^\s\d])"
)
_MOST_ITEMS: Final = 50
_MOST_KEYS: Final = 8
_MOST_SEARCHED: Final = 30_000


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
    """

    start: int
    left: int
    right: int
    position: Position
    force: int = 2
    value: str | None = None


def last_box(text: str) -> Statement | None:
    r"""Return the last complete `\boxed{…}`, `\fbox{…}` or `\boxed 5`; an open one if none is complete."""
    opened: list[tuple[int, int]] = []  # for each open brace, the start of its box and of the content; -1 without a box
    best: Statement | None = None
    for token in _BRACES.finditer(text):
        start = token.start()
        if token[1]:
            opened.append((start, token.end()))
        elif token[2] is not None:
            best = Statement(start, token.start(2), token.end(2), "boxed")
        elif token[0] == "{":
            opened.append((-1, -1))
        elif token[0] == "}" and opened:
            begun, content = opened.pop()
            if begun >= 0 and text[content:start].strip() and (best is None or content > best.left):
                best = Statement(begun, content, start, "boxed")
    if best is None:
        boxes = [each for each in opened if each[0] >= 0]
        if boxes:
            begun, content = boxes[-1]
            end = text.find("\n", content)
            best = Statement(begun, content, len(text) if end < 0 else end, "boxed", 1)
    return best if best is not None and text[best.left : best.right].strip() else None


def empty_mark(text: str) -> bool:
    """Return True if a text contains an empty box or tag."""
    return re.search(rf"\\boxed\s?\{{\s{{0,8}}\}}|<({_TAG_NAMES})>\s{{0,8}}</\1>", text, re.IGNORECASE) is not None


def last_tag(text: str) -> Statement | None:
    """Return the last complete tag of an answer, such as `<answer>…</answer>`; an open one if none is complete."""
    begun: re.Match[str] | None = None
    found: Statement | None = None
    for tag in _TAG.finditer(text):
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


def last_key(text: str) -> Statement | None:
    """Return the value of the last key of JSON, or named argument, whose name means an answer."""
    keys = list(_KEY.finditer(text, max(0, len(text) - _MOST_SEARCHED)))
    certain = [key for key in keys if key[1]]
    # Only the last keys are read: a hostile text has a hundred thousand.
    for key in (*certain[: -_MOST_KEYS - 1 : -1], *keys[: -_MOST_KEYS - 1 : -1]):
        statement = _value(text, key.start(), key.end(), 2 if key[1] else 1)
        if statement is not None:
            return statement
    return None


def _value(text: str, start: int, left: int, force: int) -> Statement | None:
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
    for found in end.finditer(text, left):
        if not found[0].startswith("\\"):
            return found.start()
    return len(text)


def _decoded(raw: str) -> str:
    try:
        value = json.loads(f'"{raw}"')
    except ValueError:
        return raw
    return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def last_call(text: str) -> Statement | None:
    """Return the argument of the last call such as `Finish[…]` or `submit("…")`, or the content of the last `[[…]]`."""
    best: Statement | None = None
    for call in _CALL.finditer(text):
        group = 1 if call[1] is not None else 3
        best = Statement(call.start(), call.start(group), call.end(group), "tagged")
    for bracket in _BRACKETS.finditer(text):
        if best is None or bracket.start() > best.start:
            best = Statement(bracket.start(), bracket.start(1), bracket.end(1), "tagged")
    return best


def fenced(text: str, left: int, right: int) -> Span:
    """Return the span inside a fence of code that is the whole span; otherwise the span itself."""
    if not text.startswith(("```", "~~~"), left):
        return left, right
    found = _FENCE.fullmatch(text, left, right)
    return trimmed(text, *found.span(1)) if found and "```" not in found[1] else (left, right)


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


def list_items(text: str, left: int, right: int) -> list[Span]:
    """Return the spans of the items if a span is a list: lines with bullets or numbers, or short lines without marks.

    A span that is no list, or has a single item, has no items.
    """
    items: list[Span] = []
    bare = 0
    start = left
    for line in text[left:right].split("\n")[: 2 * _MOST_ITEMS]:
        end = start + len(line)
        if line.strip():
            bullet = _BULLET.match(line)
            bare += bullet is None
            items.append(trimmed(text, start + (bullet.end() if bullet else 0), end))
        start = end + 1
    if start <= right or len(items) < 2 or len(items) > _MOST_ITEMS or 0 < bare < len(items):
        return []
    if any(len(text[a:b].split()) > 6 or b - a > 60 for a, b in items):
        return []
    if bare and (
        len(items) < 3
        or any(re.search(r"[.!?:;,=。，：]|\d", text[a:b]) or len(text[a:b].split()) > 3 for a, b in items)
    ):
        return []
    return items
