"""Options of a multiple-choice question: given as texts, or found in the question.

A list has at most 26 options with consecutive labels: letters from A, or numbers from 1. The last 20 000 characters of
a question are read, in linear time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Final, Literal, NamedTuple

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.choices.forms import LETTER, SIGN, VOCABULARY, cleaned, pattern

MAX_OPTIONS: Final = 26
MAX_QUESTION: Final = 20_000
_LONGEST_COUNT: Final = 12
MAX_TEXT: Final = 1_000
"""Characters of an option's text that are read."""

Kind = Literal["upper", "lower", "number"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a question.

    Attributes:
        texts: The options' texts; "" for a text that is not known.
        kind: Kind of the labels.
        stem: The question without its options.
        are_known: False if only the letters are known, and perhaps not how many.
        several: True if the question asks for all right options.
    """

    texts: tuple[str, ...]
    kind: Kind
    stem: str
    are_known: bool = True
    several: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels: "A", "B" or "1", "2"; letters are capitals."""
        count = len(self.texts)
        return tuple(map(str, range(1, count + 1))) if self.kind == "number" else tuple(ascii_uppercase[:count])


class _Layout(NamedTuple):
    """A way to write labels; labels in a line that are `weak` need the end of a sentence before the first one."""

    label: re.Pattern[str]
    weak: bool
    own_line: bool = False
    least: int = 2


_NAMES: Final = expression(VOCABULARY["question"]["label_words"])
_BEFORE: Final = rf"(?<![{LETTER}\d.,_'^])(?:{_NAMES}\s)?"
_LABEL: Final = r"(?P<label>[A-Za-z]|\d{1,2})"
_START: Final = rf"^[ \t]{{0,12}}(?:\(?\s?)?(?:{_NAMES}\s)?"
_SIGNS: Final = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def _layout(shape: str, *, weak: bool = False, own_line: bool = False, least: int = 2) -> _Layout:
    start = _START if own_line else _BEFORE
    flags = re.IGNORECASE | re.MULTILINE
    return _Layout(re.compile(start + shape.replace("L", _LABEL), flags), weak, own_line, least)


_LAYOUTS: Final = (
    _layout(r"^\|\s{0,20}\(?L[).]?\s{0,20}\|", own_line=False),
    _layout(r"\(L\)"),
    _layout(r"[\[【]\s?L\s?[\]】]"),
    _layout(r"(?<![\[(])L\]", weak=True),
    _layout(r"\{L\}"),
    _layout(r"<L>"),
    _layout(r"(?<![(\[])L\.\)"),
    _layout(r"(?<![(\[])L\s?\)"),
    _layout(r"[\"'“]L[\"'”]\s?:", weak=False),
    _layout(r"L(?:\.-|\.|、|．|:|\s?[-–—](?=\s)|/(?=\s))(?=\s|[^\x00-\x7f]|\S)", own_line=True),
    _layout(r"L\.-", weak=True),
    _layout(r"L(?:、|．)", weak=True),
    _layout(r"L\.(?=\s|[^\x00-\x7f])", weak=True),
    _layout(r"L\.(?=[\w$(\\])", weak=True, least=3),
    _layout(rf"L [ \t]?(?=[{SIGN}])", weak=True, least=3),
    _layout(r"L\s?:(?=\s|[^\x00-\x7f]|\w{2})", weak=True, least=3),
    _layout(r"L\s[-–—](?=\s)", weak=True, least=3),
    _layout(r"L/(?=\s)", weak=True, least=3),
    _layout(r"L=(?=\s?\w)", weak=True, least=3),
    _layout(rf"(?P<sign>[{_SIGNS}])"),
    _layout(r"L[ \t]{1,4}(?=\S)", own_line=True),
)
_BARE: Final = _LAYOUTS[-1]
_BOUNDARY: Final = re.compile(r"(?:^|(?<![A-Z])\.|[\n?!:;,。？！：；，(（\"'“{]|\bor)\s{0,20}$")
_OPEN_BRACKET: Final = re.compile(r"\([^()\n]{1,60}$")
_AND: Final = re.compile(
    rf"\S[\s,;，；、]{{1,4}}{expression(VOCABULARY['question']['and'])}\s{{0,4}}$|\S(?:和|以及)\s{{0,4}}$",
    re.IGNORECASE,
)
_OR_END: Final = re.compile(
    rf"(?<=\S)[\s,;，；、/]{{1,4}}{expression(VOCABULARY['question']['or'])}\s{{0,4}}$", re.IGNORECASE
)
_TASK: Final = re.compile(expression(VOCABULARY["question"]["tasks"]), re.IGNORECASE)
_EDGES: Final = " \t\n,;|/，；、\"'"
_ANSWER_END: Final = re.compile(
    r"(?:\n|\s{2,}|(?<=[.?!。])\s)(?:answer|antwort|réponse|respuesta|答案)\s{0,2}:?\s*$", re.IGNORECASE
)
_NEXT_QUESTION: Final = re.compile(r"(?<=[.!?。])\s+(?=[^.!?。]{3,300}[?？]\s*$)")
_RANGE: Final = re.compile(
    rf"(?<![{LETTER}\d])A\s?(?:to|through|-|–|bis|à|a|至|到)\s?([B-Z])(?![{LETTER}\d])|"
    rf"(?<![{LETTER}\d])A,\s?B,?\s(?:(?:[C-Z],\s?){{0,23}})(?:and|or|und|oder|et|ou|y|o)\s([B-Z])(?![{LETTER}\d])"
)
_OPTION_WORD: Final = re.compile(expression(VOCABULARY["question"]["letter_words"]), re.IGNORECASE)


_SECOND: Final = re.compile(rf"(?<![{LETTER}])[BbＢｂ](?![{LETTER}'])|(?<!\d)[2２](?!\d)|②")
"""The second label, without which there are no options."""


@lru_cache(maxsize=64)
def find_options(question: str, choices: tuple[str, ...] = ()) -> Options | None:
    """Return a question's options: those of `choices`, otherwise those that the question lists; None without options.

    Args:
        question: The question, possibly empty.
        choices: The options' texts in the order of their letters, with or without labels of their own.
    """
    if len(choices) < 2 and _SECOND.search(question, max(0, len(question) - MAX_QUESTION)) is None:
        return None
    text = cleaned(question[-MAX_QUESTION:])
    found = _listed(text)
    if found is None and len(choices) < 2:
        return None
    several = pattern("question", "several").search(text) is not None
    if len(choices) > 1:
        texts = _without_labels([choice.strip()[:MAX_TEXT] for choice in choices[:MAX_OPTIONS]])
        if found is not None and len(found.texts) == len(texts):
            unknown = all(text == "" for text in texts)
            return Options(found.texts if unknown else texts, found.kind, found.stem, several=several)
        return Options(texts, "upper", text, several=several)
    return None if found is None else Options(found.texts, found.kind, found.stem, several=several)


def find_letters(question: str) -> Options | None:
    """Return options without texts if a question says that letters are to choose from: "Pick one of A to J."."""
    text = cleaned(question[-MAX_QUESTION:])
    span = _RANGE.search(text)
    if span is None and _OPTION_WORD.search(text) is None:
        return None
    count = MAX_OPTIONS if span is None else ascii_uppercase.index(span[1] or span[2]) + 1
    several = pattern("question", "several").search(text) is not None
    return Options(("",) * count, "upper", text, are_known=False, several=several)


def any_letters(question: str) -> Options:
    """Return the options that `find_letters` finds; otherwise all 26 letters without texts."""
    return find_letters(question) or Options(
        ("",) * MAX_OPTIONS, "upper", cleaned(question[-MAX_QUESTION:]), are_known=False
    )


_OWN_LABEL: Final = re.compile(
    r"\s{0,4}(?:\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Za-z])(?:[).:、．]|\s[-–]\s))\s{0,4}(?=\S)"
)


def _without_labels(texts: list[str]) -> tuple[str, ...]:
    """Return texts without labels of their own, if all have consecutive ones; "" for texts that are only letters."""
    if [text.upper() for text in texts] == list(ascii_uppercase[: len(texts)]):
        return ("",) * len(texts)
    labels = [_OWN_LABEL.match(cleaned(text)) for text in texts]
    letters = [(label[1] or label[2] or label[3]).upper() if label else "" for label in labels]
    if letters == list(ascii_uppercase[: len(texts)]):
        return tuple(cleaned(text)[label.end() :] for text, label in zip(texts, labels, strict=True) if label)
    return tuple(texts)


class _Found(NamedTuple):
    texts: tuple[str, ...]
    kind: Kind
    stem: str


class _Run(NamedTuple):
    """Consecutive labels of one layout and kind: spans of the labels in the text."""

    layout: _Layout
    kind: Kind
    spans: tuple[tuple[int, int], ...]
    on_lines: bool


def _listed(text: str) -> _Found | None:
    runs = [run for layout in _LAYOUTS for run in _runs(text, layout)]
    found = [(run, options) for run in runs if (options := _options(text, run)) is not None]
    if not found:
        return None
    # Prefer letters, capitals, lists on lines, long lists, and the last one.
    run, options = max(
        found,
        key=lambda each: (
            each[0].kind != "number",
            each[0].kind == "upper",
            each[0].layout is not _BARE,
            each[0].on_lines,
            min(len(each[0].spans), 3),
            each[0].spans[0][0],
            len(each[0].spans),
        ),
    )
    return _Found(options, run.kind, _stem(text, run, options))


def _runs(text: str, layout: _Layout) -> list[_Run]:
    """Return the last run of labels of each kind in a layout."""
    labels: dict[Kind, list[tuple[int, int, int]]] = {"upper": [], "lower": [], "number": []}
    for match in layout.label.finditer(text):
        groups = match.groupdict()
        if (sign := groups.get("sign")) is not None:
            labels["number"].append((_SIGNS.index(sign), *match.span()))
            continue
        label = groups["label"]
        kind: Kind = "number" if label.isdigit() else "upper" if label.isupper() else "lower"
        number = int(label) - 1 if kind == "number" else ord(label.lower()) - ord("a")
        labels[kind].append((number, *match.span()))
    found = []
    for kind, listed in labels.items():
        run: list[tuple[int, int]] = []
        best: list[tuple[int, int]] = []
        for number, start, end in listed:
            if number == len(run) and number < MAX_OPTIONS and (run or _may_begin(text, layout, start)):
                run.append((start, end))
            elif number == 0 and _may_begin(text, layout, start):
                run = [(start, end)]
            if len(run) > 1 and (len(run) >= len(best) or run[0] != best[0]):
                best = list(run)
        if len(best) > 1:
            lines = all(not text[text.rfind("\n", 0, start) + 1 : start].strip(" \t|*-([") for start, _ in best[1:])
            found.append(_Run(layout, kind, tuple(best), lines))
    return found


def _may_begin(text: str, layout: _Layout, start: int) -> bool:
    before = text[max(0, start - 61) : start]
    if layout.label.pattern.endswith(r"\)") and "(" in before and _OPEN_BRACKET.search(before) and text[start] != "(":
        return False  # "(including vitamin A)"
    if before.rstrip().lower().endswith(("vitamin", "vitamine", "vitamina")):
        return False
    return layout.own_line or not layout.weak or _BOUNDARY.search(before) is not None


def _options(text: str, run: _Run) -> tuple[str, ...] | None:
    """Return the texts of a run's options, or None if the run is no list of options."""
    edges = [*(start for start, _ in run.spans[1:]), _end(text, run)]
    raw = [text[end:edge] for (_, end), edge in zip(run.spans, edges, strict=True)]
    texts = tuple(_text(each) for each in raw)
    if len(raw) < (3 if run.layout is _BARE else run.layout.least if not run.on_lines else 2):
        return None
    if (run.layout is _BARE and run.kind != "upper") or not all(texts):
        return None
    if not run.on_lines and (_AND.search(raw[-2]) or any("\n\n" in each for each in raw[:-1])):
        return None  # "(a) the force and (b) the mass"
    return None if _are_tasks(text, run, raw, texts) else texts


def _are_tasks(text: str, run: _Run, raw: Sequence[str], texts: Sequence[str]) -> bool:
    """Return True if labels number the parts of a question, or statements to count."""
    if all(each.rstrip().endswith(("?", "？")) for each in raw):
        return not text[: run.spans[0][0]].rstrip().endswith((":", "?"))
    if run.kind != "upper" and all(_TASK.match(each) for each in texts):
        return True
    counts = run.kind == "number" and pattern("question", "count").search(text) is not None
    return counts and all(len(each.split()) > 2 or len(each) > _LONGEST_COUNT for each in texts)


def _end(text: str, run: _Run) -> int:
    """Return the end of the last option's text."""
    start = run.spans[-1][1]
    inner = text[start:]
    skipped = len(inner) - len(inner.lstrip())
    line = inner.find("\n", skipped)
    right = len(inner) if line < 0 else line
    body = inner[:right]
    if text[run.spans[0][0] - 1 : run.spans[0][0]] == "(" and ")" in body:
        right = body.index(")")  # "(a=train, b=plane)"
    elif not run.on_lines and (question := _NEXT_QUESTION.search(body)) is not None:
        right = question.start()
    return start + right


def _text(raw: str) -> str:
    text = _ANSWER_END.sub("", raw.strip(_EDGES)).strip(_EDGES)
    if (joint := _OR_END.search(text)) is not None:
        text = text[: joint.start()]
    text = " ".join(text.rstrip("?？ .。").strip(_EDGES + "{}").split()) or text
    return text[:MAX_TEXT]


def _stem(text: str, run: _Run, options: Sequence[str]) -> str:
    del options
    return f"{text[: run.spans[0][0]]} {text[_end(text, run) :]}".strip()
