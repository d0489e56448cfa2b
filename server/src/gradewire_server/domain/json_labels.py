"""The label in a judge's reply in JSON, alone, in a fence, or with text around it."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

_NAMES: Final = (
    *("verdict", "label", "rating", "score", "grade", "judgment", "judgement", "classification", "decision"),
    *("evaluation", "assessment", "similarity", "winner", "preference", "choice", "result", "conclusion", "answer"),
    *("final_verdict", "final_rating", "final_score", "final_answer", "output", "correct", "is_correct", "correctness"),
)
_AFFIRMED: Final = frozenset({"true", "yes", "correct", "right"})
_DENIED: Final = frozenset({"false", "no", "incorrect", "wrong"})
_FENCE: Final = re.compile(r"(?m)^[ \t]*(?:```|~~~)[ \t]*\w*[ \t]*$\n?")
_FIELD: Final = re.compile(
    r"""(["'])(?P<name>\w{1,40})\1\s{0,8}:\s{0,8}(?:"(?P<text>(?:[^"\\]|\\.){0,200})"|'(?P<quoted>[^'\\]{0,200})'|"""
    r"(?P<bare>-?\d{1,9}(?:\.\d{1,9})?|[Tt]rue|[Ff]alse))(?=\s{0,8}(?:[,}\n]|\Z))"
)
_MOST_OBJECTS: Final = 64
Fields = list[tuple[str, Any]]


class Labels(Protocol):
    """The labels of a question."""

    options: Sequence[str]

    def whole_label(self, text: str) -> int | None:
        """Return the index of the label that is the whole text, or None."""
        ...


def fields_of_json(text: str) -> tuple[str, Fields | None]:
    """Split a reply into its text and the fields of the last object of JSON. Without an object, the fields are None.

    An object that is not valid JSON, because it was cut or has single quotes, has the fields that can be read. Fields
    stay in order, with repeats.
    """
    if "{" not in text:
        return text, None
    text = _FENCE.sub("", text)
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    outside, fields, at = [], None, 0
    for _ in range(_MOST_OBJECTS):
        begin = text.find("{", at)
        if begin < 0:
            break
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            close = text.find("}", begin)
            end = len(text) if close < 0 else close + 1
            value = _Pairs((found["name"], _value(found)) for found in _FIELD.finditer(text, begin, end))
        if not value:  # braces without fields, as in \boxed{correct}, are text
            outside.append(text[at : begin + 1])
            at = begin + 1
            continue
        outside.append(text[at:begin])
        fields, at = _flat(value), end
    return "\n".join([*outside, text[at:]]) if fields is not None else text, fields


def label_of_value(fields: Fields, labels: Labels) -> int | None:
    """Return the index of the label that the fields for a verdict have as their value.

    Return None if no such field has a label, or if several fields have different ones.
    """
    found = set[int | None]()
    for name, value in fields:
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]", "_", name).casefold()
        if spelled not in _NAMES:
            continue
        if isinstance(value, bool):
            wanted = _AFFIRMED if value else _DENIED
            found |= {index for index, option in enumerate(labels.options) if option.casefold() in wanted}
        elif isinstance(value, str | int | float):
            found.add(labels.whole_label(f"{value}"))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON as pairs in order, so that a repeated name is seen."""


def _flat(pairs: Fields) -> Fields:
    """Return the fields of an object and of the objects that are its values."""
    found: Fields = []
    for name, value in pairs:
        found += value if isinstance(value, _Pairs) else [(name, value)]
    return found


def _value(found: re.Match[str]) -> Any:
    bare = found["bare"]
    if bare is None:
        return found["text"] if found["text"] is not None else found["quoted"]
    return bare.lower() == "true" if bare[0].isalpha() else bare
