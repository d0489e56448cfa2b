"""Edits that keep a right answer right: another case, punctuation, markup, blanks and Unicode forms."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SENTENCE_ENDS: Final = (".", "!", "?", "…", "。", "\N{FULLWIDTH EXCLAMATION MARK}", "\N{FULLWIDTH QUESTION MARK}")
_FULL_STOPS: Final = (".", "。")


def _with_full_stop(text: str) -> str:
    return text if text.rstrip().endswith(_SENTENCE_ENDS) else f"{text}."


def _without_full_stop(text: str) -> str:
    stripped = text.rstrip()
    return text if stripped.endswith("..") or not stripped.endswith(_FULL_STOPS) else stripped[:-1]


EDITS: Final[Mapping[str, Callable[[str], str]]] = {
    "lower case": str.lower,
    "upper case": str.upper,
    "with full stop": _with_full_stop,
    "without full stop": _without_full_stop,
    "The answer is": lambda text: f"The answer is {text}",
    "bold": lambda text: f"**{text}**",
    r"\boxed{}": lambda text: rf"\boxed{{{text}}}",
    "double quotes": lambda text: f'"{text}"',
    "single quotes": lambda text: f"'{text}'",
    "blank lines": lambda text: f"\n\n{text}\n\n",
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFC": lambda text: unicodedata.normalize("NFC", text),
    "non-breaking blanks": lambda text: text.replace(" ", "\N{NO-BREAK SPACE}"),
}
"""The edits by name."""


def edited(text: str) -> dict[str, str]:
    """Return the edited texts by edit, without edits that leave this text unchanged."""
    return {name: changed for name, edit in EDITS.items() if (changed := edit(text)) != text}
