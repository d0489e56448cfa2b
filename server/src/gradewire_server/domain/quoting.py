"""Callers' texts in messages: cut, so that no message grows with what it speaks of.

A message of a failed metric stands in the result of every item: one of a megabyte would be copied thousands of times.
"""

from typing import Final

MAX_QUOTED_CHARACTERS: Final = 80
"""Of a text that somebody else wrote, in a message for people."""
MAX_MESSAGE_CHARACTERS: Final = 1000
"""Of a whole message: some list the models or metrics that are known here."""


def quoted(text: str) -> str:
    """The text in quotes, escaped as Python does, and cut: at most 80 characters between the quotes."""
    shown = repr(text[:MAX_QUOTED_CHARACTERS])
    if len(text) <= MAX_QUOTED_CHARACTERS and len(shown) <= MAX_QUOTED_CHARACTERS + 2:
        return shown
    mark = shown[0]
    return f"{mark}{shortened(shown[1:-1] + '…')}{mark}"


def shortened(text: str, most: int = MAX_QUOTED_CHARACTERS) -> str:
    """The text, cut to `most` characters, the last of which says that it was."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
