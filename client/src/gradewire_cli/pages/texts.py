"""Texts and pictures of rows, safe to show, and the window of an answer that SMILE names."""

from __future__ import annotations

import base64
import binascii
import os
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np

_NEITHER_WORD_NOR_SPACE = re.compile(r"[^\w\s]+")
_RUN = re.compile(r"\S+")
_WORD = re.compile(r"\w(?:\S*\w)?")
# As the server: windows are taken from the first 1,024 words.
_MAX_WORDS = 1024
# Words of a window that are aligned; they settle where it begins.
_MAX_ALIGNED = 64
# Characters of a word that are compared: a text may be one word of a megabyte.
_MAX_COMPARED = 64
# Mean similarity of words, 0 to 1, below which a stretch is not called the window's place.
_LEAST_LIKENESS = 0.5


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """A stretch of the raw text, half open.

    Attributes:
        start: Its first character.
        end: One beyond its last.
        exact: Its bare words are the window's; otherwise some differ, as inflected forms do from lemmas.
    """

    start: int
    end: int
    exact: bool


def find_window(text: str, window: str) -> FoundWindow | None:
    """Looks for the stretch of `text` that normalises to `window`.

    Args:
        text: Raw, in normal form NFC.
        window: Normalised words joined by single spaces.

    Returns:
        The first exact stretch, else the one most like it, or None where nothing is like it.
    """
    words, spans = _bare_words(text)
    wanted = window.split()
    if not words or not wanted or len(wanted) > len(words):
        return None
    places = len(words) - len(wanted) + 1
    for start in range(places):
        if words[start] == wanted[0] and words[start : start + len(wanted)] == wanted:
            return FoundWindow(spans[start][0], spans[start + len(wanted) - 1][1], exact=True)
    aligned = wanted[:_MAX_ALIGNED]
    total = np.zeros(places)
    distinct = {word: number for number, word in enumerate(dict.fromkeys(words))}
    position = np.array([distinct[word] for word in words])
    for offset, word in enumerate(aligned):
        likeness = np.array([_likeness(word[:_MAX_COMPARED], other[:_MAX_COMPARED]) for other in distinct])
        total += likeness[position[offset : offset + places]]
    best = int(total.argmax())
    if total[best] < _LEAST_LIKENESS * len(aligned):
        return None
    return FoundWindow(spans[best][0], spans[best + len(wanted) - 1][1], exact=False)


def _bare_words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    words, spans = [], []
    for run in islice(_RUN.finditer(text), 4 * _MAX_WORDS):  # runs of punctuation alone are no words
        bare = _NEITHER_WORD_NOR_SPACE.sub("", run[0].lower())
        inside = _WORD.search(run[0])
        if bare and inside:
            words.append(bare)
            spans.append((run.start() + inside.start(), run.start() + inside.end()))
        if len(words) == _MAX_WORDS:
            break
    if words:
        return words, spans
    runs = list(islice(_RUN.finditer(text), _MAX_WORDS))
    return [run[0].lower() for run in runs], [run.span() for run in runs]


def _likeness(lemma: str, word: str) -> float:
    """Share of the longer word that both begin with: inflection changes ends, mostly."""
    if lemma[0] != word[0]:
        return 0.0
    common = takewhile(lambda pair: pair[0] == pair[1], zip(lemma, word, strict=False))
    return sum(1 for _ in common) / max(len(lemma), len(word))


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


# Of one picture; and of all that a page holds, in base64.
MAX_PICTURE_BYTES = 500_000
MAX_EMBEDDED_CHARACTERS = 6_000_000
_NAME_CHARACTERS = 200
_MAX_URL_CHARACTERS = 2000
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif"})
# How such files begin, "." for any byte.
_BEGINNINGS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
    "image/avif": rb"....ftypavif",
}
_URL = re.compile(r"https?://[^\s\"<>\\^`{|}]+", re.IGNORECASE)
_DATA = re.compile(r"data:image/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,", re.IGNORECASE)
_TOO_LARGE = "too large to be shown"


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture as the page has it.

    Attributes:
        name: What the row calls it.
        source: The picture itself as a data URI; "" where it is not shown.
        link: Address of the picture, http, https or relative to the page; "" without one.
        note: Why it is not shown; "" where it is, or where the name says all.
    """

    name: str
    source: str = ""
    link: str = ""
    note: str = ""


@dataclass(slots=True)
class Album:
    """The pictures of one page.

    Attributes:
        rows_folder: Folder of the file of rows: a path is read from there, and what lies there may be embedded; None:
            files are neither embedded nor linked.
        page_folder: Folder of the page, from where links to files lead.
        embedded_characters: How much of the page the pictures shown so far take.
    """

    rows_folder: Path | None
    page_folder: Path
    embedded_characters: int = field(default=0, init=False)

    def picture(self, named: str) -> ShownPicture | None:
        """What the page has of a picture that a row names by path, URL, data URI or anything else; None without one."""
        named = named.strip()
        if not named:
            return None
        if named[:5].lower() == "data:":
            return self._held(named)
        name = _cut_name(named)
        if len(named) <= _MAX_URL_CHARACTERS and _is_web(named):
            return ShownPicture(name, link=named, note="not fetched")
        return self._file(named, name)

    def _held(self, uri: str) -> ShownPicture:
        """A picture that stands in the row itself."""
        name = "in the row"
        beginning = _DATA.match(uri[:_MAX_URL_CHARACTERS])
        if beginning is None:
            return ShownPicture(name, note="no picture in base64: not shown")
        if len(uri) > 2 * MAX_PICTURE_BYTES:
            return ShownPicture(name, note=_TOO_LARGE)
        try:
            content = base64.b64decode("".join(uri[beginning.end() :].split()), validate=True)
        except (binascii.Error, ValueError):
            return ShownPicture(name, note="its base64 cannot be read: not shown")
        return self._embedded(content, name)

    def _file(self, named: str, name: str) -> ShownPicture:
        """A picture in a file; anything that names none is shown by its name."""
        is_path = Path(named[:_MAX_URL_CHARACTERS]).suffix.lower() in _SUFFIXES and len(named) <= _MAX_URL_CHARACTERS
        # Two slashes or backslashes name another machine on some systems: looking there would be fetching.
        if not is_path or self.rows_folder is None or named.startswith(("//", "\\\\")) or "://" in named:
            return ShownPicture(name)
        try:
            path = (self.rows_folder / named).resolve()
            if not path.is_file():
                return ShownPicture(name, note="no such file beside the rows")
            link = quote(os.fsencode(Path(os.path.relpath(path, self.page_folder.resolve())).as_posix()))
            if not path.is_relative_to(self.rows_folder.resolve()):
                return ShownPicture(name, link=link, note="outside of the folder of the rows: linked")
            with path.open("rb") as stream:
                content = stream.read(MAX_PICTURE_BYTES + 1)
        except (OSError, ValueError) as error:
            return ShownPicture(name, note=f"cannot be read: {getattr(error, 'strerror', None) or 'no such name'}")
        return self._embedded(content, name, link)

    def _embedded(self, content: bytes, name: str, link: str = "") -> ShownPicture:
        """The picture itself where there is room for it; its kind is what its bytes say."""
        kind = _kind(content)
        if kind is None:
            return ShownPicture(name, note="no PNG, JPEG, GIF, WebP or AVIF: not shown")
        source = f"data:{kind};base64,{base64.b64encode(content).decode()}"
        if len(content) > MAX_PICTURE_BYTES or len(source) > MAX_EMBEDDED_CHARACTERS - self.embedded_characters:
            return ShownPicture(name, link=link, note=_TOO_LARGE)
        self.embedded_characters += len(source)
        return ShownPicture(name, source, link)


def _kind(content: bytes) -> str | None:
    return next((kind for kind, start in _BEGINNINGS.items() if re.match(start, content[:16], re.DOTALL)), None)


def _is_web(text: str) -> bool:
    if _URL.fullmatch(text) is None or visible(text) != text:
        return False
    try:
        return bool(urlsplit(text).hostname)
    except ValueError:
        return False


def _cut_name(name: str) -> str:
    beginning = visible(name[:_NAME_CHARACTERS])
    return beginning if len(name) <= _NAME_CHARACTERS else f"{beginning}…"
