"""Takes from an extracted answer what belongs to its writing, not to it."""

import re

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s?\{([^{}]*)\}", re.DOTALL)
_AROUND = (("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
# "U.S." ends with a full stop of its own.
_ABBREVIATED = re.compile(r"[^\W\d]\.[^\W\d]\.$")
_MOST_LAYERS = 4


def tidied(answer: str) -> str:
    r"""The answer without emphasis, `$…$` or `\text{…}` around all of it, and without the full stop at its end."""
    text = answer.strip()
    for _ in range(_MOST_LAYERS):
        before = text
        for left, right in _AROUND:
            inner = text[len(left) : -len(right)]
            if inner and text.startswith(left) and text.endswith(right) and left not in inner:
                text = inner.strip()
        if (wrapped := _WRAPPED.fullmatch(text)) is not None:
            text = wrapped[1].strip()
        if text.endswith(".") and not text.endswith("..") and not _ABBREVIATED.search(text):
            text = text[:-1].rstrip()
        if text == before:
            break
    return text
