"""Embed, link or name the rows' pictures on a self-contained page."""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from gradewire_cli.pages.texts import visible

# Maximum size of one picture, and of all embedded pictures on a page (in base64).
MAX_PICTURE_BYTES = 500_000
MAX_EMBEDDED_CHARACTERS = 6_000_000
_NAME_CHARACTERS = 200
_MAX_URL_CHARACTERS = 2000
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif"})
# First bytes of picture files. "." matches any byte.
_BEGINNINGS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
    "image/avif": rb"....ftypavif",
}
_URL = re.compile(r"https?://[^\s\"<>\\^`{|}]+", re.IGNORECASE)
_DATA = re.compile(r"data:image/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,", re.IGNORECASE)
_TOO_LARGE = "too large to show"


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture on the page.

    Attributes:
        source: The picture as a data URI, or "" if the page does not show the picture.
        link: The picture's address (http, https or relative to the page), or "".
        note: The reason why the page does not show the picture, or "".
    """

    name: str
    source: str = ""
    link: str = ""
    note: str = ""


@dataclass(slots=True)
class Album:
    """The pictures of one page.

    Attributes:
        rows_folder: The folder to which the rows' paths are relative. Only files in this folder are embedded. None
            means that files are neither embedded nor linked.
        page_folder: The folder to which links are relative.
        embedded_characters: Number of characters in the pictures embedded so far.
    """

    rows_folder: Path | None
    page_folder: Path
    embedded_characters: int = field(default=0, init=False)

    def picture(self, named: str) -> ShownPicture | None:
        """Return a row's picture, or None if `named` (a path, a URL, a data URI or a name) is blank."""
        named = named.strip()
        if not named:
            return None
        if named[:5].lower() == "data:":
            return self._data_picture(named)
        name = _cut_name(named)
        if len(named) <= _MAX_URL_CHARACTERS and _is_web(named):
            return ShownPicture(name, link=named, note="not fetched")
        return self._file_picture(named, name)

    def _data_picture(self, uri: str) -> ShownPicture:
        name = "in the row"
        beginning = _DATA.match(uri[:_MAX_URL_CHARACTERS])
        if beginning is None:
            return ShownPicture(name, note="not shown: not a base64 picture")
        if len(uri) > 2 * MAX_PICTURE_BYTES:
            return ShownPicture(name, note=_TOO_LARGE)
        try:
            content = base64.b64decode("".join(uri[beginning.end() :].split()), validate=True)
        except (binascii.Error, ValueError):
            return ShownPicture(name, note="not shown: unreadable base64")
        return self._embedded_if_there_is_space(content, name)

    def _file_picture(self, named: str, name: str) -> ShownPicture:
        is_path = Path(named[:_MAX_URL_CHARACTERS]).suffix.lower() in _SUFFIXES and len(named) <= _MAX_URL_CHARACTERS
        # Two slashes or backslashes may name another machine.
        if not is_path or self.rows_folder is None or named.startswith(("//", "\\\\")) or "://" in named:
            return ShownPicture(name)
        try:
            path = (self.rows_folder / named).resolve()
            if not path.is_file():
                return ShownPicture(name, note="file not found in the input's folder")
            link = quote(os.fsencode(Path(os.path.relpath(path, self.page_folder.resolve())).as_posix()))
            if not path.is_relative_to(self.rows_folder.resolve()):
                return ShownPicture(name, link=link, note="only linked: outside the input's folder")
            with path.open("rb") as stream:
                content = stream.read(MAX_PICTURE_BYTES + 1)
        except (OSError, ValueError) as error:
            return ShownPicture(name, note=f"cannot be read: {getattr(error, 'strerror', None) or 'invalid name'}")
        return self._embedded_if_there_is_space(content, name, link)

    def _embedded_if_there_is_space(self, content: bytes, name: str, link: str = "") -> ShownPicture:
        kind = _kind(content)
        if kind is None:
            return ShownPicture(name, note="not shown: not PNG, JPEG, GIF, WebP or AVIF")
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
