"""Makes texts of the rows safe to show: bounded, and with unseen characters written out."""

import re
import unicodedata
from dataclasses import dataclass

from gradewire.report.window import FoundWindow

# Controls but tab and newline, lone surrogates, and format characters that hide or turn text: soft hyphen, zero-width
# space, bidirectional marks, overrides and isolates, word joiner, byte-order mark, annotations, tags. Joiners stay:
# scripts and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARK_CONTEXT = 200
MAX_NAME_CHARACTERS = 80
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as the page shows it.

    Attributes:
        before: Up to the marked stretch; the whole text where nothing is marked.
        marked: The marked stretch, or "".
        after: What follows it.
        cut: Says what is left out; "" where all is shown.
    """

    before: str
    marked: str = ""
    after: str = ""
    cut: str = ""


def signed(text: str) -> str:
    """Return a number with a true minus sign."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def cut(text: str, most: int) -> str:
    """Return at most so many characters of a text, with every unseen one written out."""
    beginning = visible(text[:most])
    return beginning if len(beginning) <= most and len(text) <= most else f"{beginning[: most - 1]}…"


def name_of(text: str) -> ShownText:
    """Return a name that keeps its direction among other words, cut."""
    return ShownText(cut(text, MAX_NAME_CHARACTERS))


def visible(text: str) -> str:
    """The text with every unseen character written out, such as "[U+202E]"."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def normal_form(text: str) -> str:
    """NFC, which is what the metrics see; positions in a text are positions in this form."""
    return unicodedata.normalize("NFC", text)


def shown(text: str, *, max_characters: int, mark: FoundWindow | None = None) -> ShownText:
    """Cuts a text in normal form around its marked stretch.

    Args:
        text: In normal form.
        max_characters: Characters that are shown, counted before unseen ones are written out.
        mark: Stretch that must be in sight.

    Returns:
        Its beginning, or where the mark lies beyond that the surroundings of the mark.
    """
    start, end = (mark.start, mark.end) if mark else (0, 0)
    first = 0 if end <= max_characters else max(0, start - _MARK_CONTEXT)
    last = min(len(text), first + max_characters)
    end = min(end, last)
    cut = ""
    if last - first < len(text):
        cut = f"characters {first + 1:,} to {last:,} of {len(text):,}"
    if not mark:
        return ShownText(visible(text[:last]), cut=cut)
    return ShownText(visible(text[first:start]), visible(text[start:end]), visible(text[end:last]), cut)
