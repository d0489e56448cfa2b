"""The public function: find the final answer that a completion asserts."""

import re
from dataclasses import replace
from typing import Final

from gradewire_proto.final_answer.assertions import asserted_answer, calculated
from gradewire_proto.final_answer.chat import asked_title, unasserted, without_closers
from gradewire_proto.final_answer.clauses import choice, first_clause, sentences, tidied, trimmed
from gradewire_proto.final_answer.confidence import IN_NOTHING, confidence
from gradewire_proto.final_answer.contrasts import contrast
from gradewire_proto.final_answer.corrections import MOST_SEARCHED, replacement, retraction, without_second_thoughts
from gradewire_proto.final_answer.found import Found, asserted, bold_in, finish, joined, moved
from gradewire_proto.final_answer.marks import (
    Statement,
    fenced,
    last_box,
    last_call,
    last_key,
    last_tag,
    list_items,
    without_bullet,
)
from gradewire_proto.final_answer.phrases import is_answered, last_phrase
from gradewire_proto.final_answer.thinking import spoken
from gradewire_proto.final_answer.turns import turn, without_next_question
from gradewire_proto.final_answer.types import MAX_READ_CHARACTERS, STRIKES, FinalAnswer, Span
from gradewire_proto.final_answer.unmarked import lone_line, unmarked, whole

_CANCELLED: Final = r"\\(?:[xb]?cancel|sout|xout)\{[^{}\n]{1,200}\}"
_STRUCK: Final = re.compile(
    r"~~[^~\n]{1,2000}~~\s{0,4}(?:(?:→|->|=>|⇒)\s{0,4})?|<(del|s|strike)>[^<\n]{1,2000}</\1>\s{0,4}"
    # Inside a formula, \cancel marks factors that are left out.
    rf"|(?:(?<![^\n])|(?<=[,:;]\s)){_CANCELLED}[,;]\s{{1,4}}|(?<!\S){_CANCELLED}(?![\w{{}}\\$^_*/+=)-])\s{{0,4}}"
    r"|(?:[^\s\u0336]\u0336){1,200}"
    r"|(?<![\w~])~(?=[^\s~])[^~\n]{1,200}(?<=\S)~(?![\w~])"
)
_BACKSPACES: Final = re.compile(r"[ \t]?(?:\^H){2,}")
_EMPHASIS: Final = re.compile(
    r"\*{2,3}|(?<!\w)_{2,3}(?=\S)|(?<=\S)_{2,3}(?!\w)|(?<=[:：])[*_](?=\s)|</?(?:b|strong|i|em|u|p|br|span|div|"
    r"center|h[1-6])(?:\s[^<>\n]{0,80})?\s?/?>|^[ \t]{0,8}>[ \t]?",
    re.MULTILINE,
)
_ARITHMETIC: Final = re.compile(r"[($€£\d][\d.,]*\s?[-+*/×·÷−^][^=\n]{1,200}=")
_LAYERS: Final = 3
_MOST_CONTRASTED: Final = 4
"""Sentences of a text that are searched for a contrast. In a longer text only its last two contrast an answer."""
_MOST_PLAIN: Final = 5_000
"""Characters at the end of a text in which emphasis is looked for; phrases and corrections need fewer."""
_MOST_COMPARED: Final = 200
_MOST_READ_INSIDE: Final = 1_500
"""Characters at the end of a tag or value that are searched again, once for each layer."""
_THOUGHT: Final = re.compile(r"(?<!\w)(?:i|ich|je|j['’]|yo|io|eu|я)(?!\w)|我", re.IGNORECASE)
_SPEAKERS: Final = re.compile(r"(?:^|[.!?\n]\s)((?:[A-ZÀ-Þ][\w.]{0,15}\s)?[A-ZÀ-Þ]\w{1,15}):\s")
_TITLES: Final = {"*": "*", "_": "_"}
"""Marks of italics, in which titles are written."""
_QUOTES: Final = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "`": "`"}
_AND: Final = re.compile(r"\s(?:and|or|und|oder|et|ou|y|o|e)\b")

_NEGATED: Final = re.compile(
    r"(?:not|nicht|kein\w{0,2}|pas|no|non|não|niet|geen|nie|не|neither|weder|ni|né)\s|不是|并非|[^\n.。]{1,40}(?:아니라|아닌|ではなく|じゃなく)",
    re.IGNORECASE,
)


def find_final_answer(completion: str) -> FinalAnswer:
    r"""Find the final answer that a completion asserts, in linear time.

    Thinking, special tokens, roles, fences and text that is struck out are ignored. The last marked statement wins,
    whatever its mark: `\boxed{…}`, `<answer>…</answer>`, JSON, a heading, or a phrase such as "the answer is" in one of
    13 languages. A later correction replaces it. Of a choice, the answer is its letter. Without a mark, the answer is
    what a correction, a contrast ("not X but Y"), a last short line or a calculation gives; otherwise the whole text,
    uncut.

    Args:
        completion: Any text. The last 200 000 characters are read: for boxes, common tags and keys of JSON all of them,
            for all else the last 4 000. No text raises an error; lone surrogates and control characters are kept as
            they are.

    Returns:
        The answer, with its offsets in the completion where it stands there in one piece.
    """
    offset = max(0, len(completion) - MAX_READ_CHARACTERS)
    text = completion[offset:]
    span = spoken(text)
    if span is None:
        return _nothing("the completion ends during the thinking")
    if not text[span[0] : span[1]].strip():
        return _nothing("nothing follows the thinking" if text.strip() else "the completion is empty")
    left, right = turn(text, *span)
    if left >= right:
        return _nothing("the completion is empty: it contains only special tokens")
    right = without_next_question(text, left, right, is_answered)
    left, right = fenced(text, left, right)
    original = text[left:right]
    plain = _plain(original)
    statement = _last_statement(plain, original)
    found = _resolve(original, plain, statement, 0)
    if isinstance(found, str):
        return _nothing(found)
    return _answer(original, found, offset + left, confidence(original, found, statement))


def _nothing(reason: str) -> FinalAnswer:
    return FinalAnswer("", "nothing", None, None, IN_NOTHING, reason)


def _answer(original: str, found: Found, offset: int, certainty: float) -> FinalAnswer:
    left, right = found.left, found.right
    text = found.text
    if text is None and right - left <= _MOST_PLAIN and _has_struck_text(original[left:right]):
        kept = " ".join(_STRUCK.sub(" ", _without_deleted(original[left:right], "")).split())
        inner = tidied(kept, 0, len(kept))
        text = kept[inner[0] : inner[1]]
    if not (original[left:right] if text is None else text).strip():
        return _nothing(f"the {found.position} answer is empty")
    if text is not None:
        return FinalAnswer(text.strip(), found.position, None, None, certainty)
    return FinalAnswer(original[left:right], found.position, offset + left, offset + right, certainty)


def without_struck_text(text: str) -> str:
    """Return a text without what Markdown, HTML, LaTeX or Unicode strikes out in it, if any text is left."""
    if len(text) > _MOST_PLAIN or not any(mark in text for mark in STRIKES):
        return text
    kept = _STRUCK.sub("", _without_deleted(text, ""))
    return kept if kept.strip() else text


def _has_struck_text(text: str) -> bool:
    return _STRUCK.search(text) is not None or _BACKSPACES.search(text) is not None


def _without_deleted(text: str, filler: str) -> str:
    """Return a text in which `filler` replaces each "^H" and each character that it deletes in its line.

    A blank before the first "^H" is deleted too: it only sets these signs apart.
    """
    if "^H^H" not in text:
        return text
    letters, kept, end = list(text), list[int](), 0
    for match in _BACKSPACES.finditer(text):
        kept.extend(range(end, match.start()))
        deleted = range(*match.span())
        for _ in range(match[0].count("^H")):
            if not kept or text[kept[-1]] == "\n":
                break
            letters[kept.pop()] = filler
        for place in deleted:
            letters[place] = filler
        end = match.end()
    return "".join(letters)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _plain(text: str) -> str:
    """Return a text of the same length in which struck text, emphasis and marks of quotation are blanks."""
    near = max(0, len(text) - _MOST_PLAIN)
    before, text = text[:near], text[near:]
    if any(mark in text for mark in STRIKES):
        text = _STRUCK.sub(_blank, _without_deleted(text, " "))
    return before + _EMPHASIS.sub(_blank, text)


def _resolve(original: str, text: str, statement: Statement | None, depth: int) -> Found | str:
    """Find the answer in a spoken text with its last marked statement; return the reason if it has no answer."""
    end = without_closers(text)
    if statement is not None and statement.force == 2:
        return _stated(original, text, statement, end, depth)
    if statement is None and (lone := lone_line(original, text, end)) is not None:
        return lone
    if (title := _whole_quotation(original)) is not None:
        return Found(*title, "whole")
    if not depth and (reason := unasserted(text, end, statement)):
        return reason
    return (
        _corrected(original, text[:end], statement)
        or (_stated(original, text, statement, end, depth) if statement and _is_last(text, statement, end) else None)
        or unmarked(original, text, end)
        or (_contained(original, text, statement, depth) if statement and statement.position != "phrase" else None)
        or whole(original, text, end)
    )


def _whole_quotation(original: str) -> Span | None:
    """Return the span inside quotes that enclose the whole text, such as a title; None otherwise."""
    left, right = trimmed(original, 0, len(original))
    quoted = right - left > 2 and original[right - 1] in (_QUOTES | _TITLES).get(original[left], "")
    inside = original[left + 1 : right - 1]
    return None if not quoted or original[left] in inside or original[right - 1] in inside else (left + 1, right - 1)


def _last_statement(text: str, original: str) -> Statement | None:
    statements = [
        each for each in (last_box(original), last_tag(original), last_key(original), last_call(original)) if each
    ]
    container = max(statements, key=lambda each: (each.force, each.left), default=None)
    phrase = last_phrase(text, original)
    if container is None or phrase is None:
        return container or phrase
    if container.start <= phrase.start < container.right:
        return container  # the phrase stands inside; the content is searched again
    last = max(container, phrase, key=lambda each: (each.force, each.start))
    contested = phrase.contested or (
        container.force == phrase.force and not _shares_content(text, original, container, phrase)
    )
    return replace(last, contested=contested)


def _shares_content(text: str, original: str, container: Statement, phrase: Statement) -> bool:
    """Return True if the content of a box, tag or key and the beginning of a phrase's answer are equal, or overlap."""
    left, right = first_clause(text, phrase.left, phrase.right)
    if left <= container.start < right:
        return True
    content = container.value or original[container.left : container.right]
    said = text[left:right]
    words, others = (set(re.findall(r"\w+", each.lower())) for each in (content[:_MOST_COMPARED], said))
    return not words or not others or words <= others or others <= words


def _is_last(text: str, statement: Statement, end: int) -> bool:
    """Return True if an uncertain mark is an open box, or at most its own line follows it."""
    rest = text[statement.right : end].strip()
    return statement.position == "boxed" or ("\n" not in rest and len(rest) <= 200)


def _stated(original: str, text: str, statement: Statement, end: int, depth: int) -> Found | str:
    """Return the answer of a marked statement, or of a correction after it."""
    left, right = statement.left, statement.right
    if statement.position == "phrase":
        if (corrected := _corrected(original, text[: max(end, right)], statement)) is not None:
            return corrected
        inner = _marked_inside(original, text, left, right, depth) if depth < _LAYERS else None
        return inner or _phrase_content(original, text, left, right)
    if (corrected := _corrected(original, text[: max(end, right)], statement)) is not None:
        return corrected
    if statement.value is not None:
        return Found(left, right, statement.position, statement.value)
    return _contained(original, text, statement, depth)


def _contained(original: str, text: str, statement: Statement, depth: int) -> Found:
    """Return the answer in a box, tag or value: what is marked inside, the items of a list, a letter, or all."""
    left, right = statement.left, statement.right
    position = statement.position
    if depth < _LAYERS and position in {"tagged", "json"}:
        begin = max(left, right - _MOST_READ_INSIDE)
        inner_original, inner_text = original[begin:right], text[begin:right]
        inner = _resolve(inner_original, inner_text, _last_statement(inner_text, inner_original), depth + 1)
        if isinstance(inner, Found) and inner.position not in {"whole", "line", "calculation"}:
            return moved(inner, begin)
    left, right = fenced(original, *trimmed(original, left, right))
    if (items := list_items(original, left, right)) != []:
        return joined(original, items, position)
    letter = choice(original, left, right, pointed=position == "boxed")
    return Found(*(letter or tidied(original, left, right)), position)


def _marked_inside(original: str, text: str, left: int, right: int, depth: int) -> Found | None:
    left = max(left, right - _MOST_READ_INSIDE)
    inner = _resolve_marks(original[left:right], text[left:right], depth + 1)
    return None if inner is None else moved(inner, left)


def _resolve_marks(original: str, text: str, depth: int) -> Found | None:
    containers = [each for each in (last_box(original), last_tag(original)) if each]
    if not containers:
        return None
    found = _stated(original, text, max(containers, key=lambda each: each.start), len(text), depth)
    return found if isinstance(found, Found) else None


def _phrase_content(original: str, text: str, left: int, right: int) -> Found | str:
    """Return the answer that follows a phrase: a list, or the first clause of the line."""
    emphasis = original[right : right + 3]  # at the end of the last item
    end = right + len(emphasis) - len(emphasis.lstrip("*_"))
    if (items := list_items(original, left, end, announced=True)) != []:
        return joined(original, items, "phrase")
    line = text.find("\n", left, right)
    if line >= 0:
        left = without_bullet(original, left, line)
    left, right = fenced(original, *trimmed(text, left, right if line < 0 else line))
    left = without_second_thoughts(text, left, right)
    if left >= right:
        return "nothing follows the announcement of the answer"
    if (letter := choice(text, *tidied(text, left, right)) or choice(text, left, right)) is not None:
        return Found(*letter, "phrase")
    if _ARITHMETIC.match(text, left, right) is not None and (result := calculated(text, left, right)) is not None:
        return finish(original, *result, "phrase")
    if _NEGATED.match(text, left, right) is not None and (true_part := contrast(text, left, right)) is not None:
        return finish(original, *asserted_answer(text, *true_part), "correction")
    narrow = (
        bold_in(original, left, right)
        or asked_title(original, left, right)
        or _quoted(original, left, right)
        or first_clause(text, left, right)
    )
    return finish(original, *narrow, "phrase")


def _quoted(text: str, left: int, right: int) -> Span | None:
    """Return the span of a quotation that is all that is said, with its quotes."""
    for closing in _QUOTES.get(text[left], ""):
        end = text.find(closing, left + 1, right)
        if end > left + 1:
            rest = text[end + 1 : right]
            ends = not rest.strip(" .!。,") or rest[0] in " .,;"
            return (left, end + 1) if ends and not _AND.match(rest) else None
    return None


def _retractable(text: str, statement: Statement) -> tuple[int, str]:
    """Return the place after which a statement may be corrected, and its answer."""
    answer = statement.value or text[slice(*first_clause(text, statement.left, statement.right))]
    inside = statement.position == "phrase" or statement.force == 1
    return statement.left if inside else statement.right, answer


def _corrected(original: str, text: str, statement: Statement | None) -> Found | None:
    """Return the answer of the last correction or contrast; None if nothing is corrected."""
    if (
        statement is None
        and len(set(names := _SPEAKERS.findall(text, max(0, len(text) - MOST_SEARCHED)))) > 1
        and len(names) > len(set(names))
    ):
        return None  # a dialogue
    start, answer = (0, None) if statement is None else _retractable(text, statement)
    retracted = retraction(text, start, answer=answer)
    if retracted is not None:
        true_part = contrast(text, retracted[0], retracted[1])
        left, right = true_part if true_part is not None else retracted
        return _worded(original, asserted(original, text, left, right))
    if statement is not None:
        return None
    if (replaced := replacement(text)) is not None:
        return finish(original, *replaced, "correction")
    listed = sentences(text, max(0, len(text) - 2000), len(text))
    if not listed or len(listed) > 12:
        return None
    begin = listed[-3][0] if len(listed) > 3 else listed[0][0]
    if len(listed) > _MOST_CONTRASTED:
        begin = listed[-2][0]
    elif _THOUGHT.search(text, *listed[0]) is not None:
        begin = listed[0][0]
    found = contrast(text, begin, len(text))
    return None if found is None else _worded(original, asserted(original, text, *found))


def _worded(original: str, found: Found | None) -> Found | None:
    """Return what a correction or contrast gives, or None if it has no letter and no digit."""
    return None if found is None or re.search(r"\w", original[found.left : found.right]) is None else found
