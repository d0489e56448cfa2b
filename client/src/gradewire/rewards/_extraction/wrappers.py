"""Answers between tags."""

import re

_TAG = re.compile(r"<(/?)(?:answer|final_answer)>", re.IGNORECASE)


def last_tagged(text: str) -> str | None:
    """What stands in the last complete `<answer>…</answer>` (or `final_answer`); None without one."""
    start: int | None = None
    found: str | None = None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            found, start = text[start : tag.start()], None
    return found
