"""Lists that stand as text in one cell: as JSON, as Python prints lists, as numpy prints arrays."""

import ast
import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

_MAX_CHARACTERS: Final = 1 << 20
"""Longer cells are texts: Python's parser takes a hundred times their size in memory."""
_MAX_DEPTH: Final = 8
_ARRAY: Final = re.compile(r"\A(?:np\.|numpy\.)?array\((.*?)(?:,\s*dtype=[\w.'<>|]+)?\)\Z", re.DOTALL)
# A quoted text, with Python's escapes: numpy prints no comma between two of them.
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_OBJECT: Final = re.compile(r"""\A\{\s*['"](text|answer)['"]\s*:.*\}\Z""", re.DOTALL)
_NUMBERS: Final = re.compile(r"\[\s*-?\d+(\.\d*)?(\s+-?\d+(\.\d*)?)*\s*\]")
_SCALAR: Final = re.compile(r"""\bnp\.(?:str_|float\d+|u?int\d+)\((-?[\d.]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")
_ARRAY_INSIDE: Final = re.compile(r"""\barray\((\[[^\]]*\])(?:,\s*dtype=[\w.'<>|]+)?\)""")
_QUOTED_ONLY: Final = re.compile(r"\[Q+\]")


def unpacked_list(cell: str) -> list[Any] | None:
    """The list that a cell holds; None where it holds none, but a text that may begin like one.

    Read are JSON, lists as Python prints them, numpy's scalars among their entries, its tuples and sets of texts, and
    arrays of texts or numbers as numpy prints them.
    """
    text = cell.strip()
    if array := _ARRAY.match(text):
        text = array[1].strip()
    if text[:1] + text[-1:] not in {"[]", "()", "{}"} or len(text) > _MAX_CHARACTERS:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _printed_list(text)
    if isinstance(value, tuple | list) and _depth(value) <= _MAX_DEPTH:
        return list(value)
    return None


def is_of_numbers(listed: Sequence[Any]) -> bool:
    """Whether a list holds numbers and nothing else, and so may be an answer itself."""
    return bool(listed) and all(isinstance(entry, int | float) for entry in listed)


def unpacked_object(cell: str) -> dict[Any, Any] | None:
    """The answer with its text that a cell holds as an object, as JSON or as Python prints it; None without one.

    Raises:
        ValueError: It is one, but in a form that cannot be read; the message goes on from the name of the field.
    """
    text = cell.strip()
    if not _OBJECT.match(text) or len(text) > _MAX_CHARACTERS:
        return None
    # numpy leaves out the middle of long arrays.
    printed = text if "..." in text else _ARRAY_INSIDE.sub(r"\1", text)
    for read, said in ((json.loads, text), (ast.literal_eval, text), (ast.literal_eval, printed)):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = read(said)
            if isinstance(value, dict):
                return value
    raise ValueError(f" is an object that cannot be read ({text[:40]}…): write its texts as a JSON list")


def _printed_list(text: str) -> list[Any] | tuple[str, ...] | None:
    if _NUMBERS.fullmatch(text):
        return [float(number) if "." in number else int(number) for number in text[1:-1].split()]
    value = _python_list(text)
    return _python_list(_SCALAR.sub(r"\1", text)) if value is None and "np." in text else value


def _python_list(text: str) -> list[Any] | tuple[str, ...] | None:
    try:
        # Python reads two quoted texts side by side as one: of numpy's form that would make one answer of all.
        outside = "".join(_QUOTED.sub("Q", text).split())
        if _QUOTED_ONLY.fullmatch(outside):
            return [ast.literal_eval(found[0].replace("\n", "\\n")) for found in _QUOTED.finditer(text)]
        value = None if "QQ" in outside else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, list):
        return value
    # "(1, 2)" and "{1, 2}" are answers: a point, an interval, a set.
    if isinstance(value, tuple | set) and all(isinstance(entry, str) for entry in value):
        return sorted(value) if isinstance(value, set) else value
    return None


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0
