"""The options that an item's references name."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from gradewire_server.metrics.choices.forms import Texts, cleaned, texts_of
from gradewire_server.metrics.choices.options import MAX_OPTIONS, MAX_TEXT, Options

MAX_REFERENCES: Final = 64
_LETTER: Final = re.compile(
    r"[(\[{<]?\s?(?:option\s|choice\s|answer:?\s)?[(\[]?([A-Za-z]|\d{1,2})\s?[)\]}>]?[.:、]?", re.IGNORECASE
)
_BOTH: Final = re.compile(
    r"[(\[{<]?(?:option\s|choice\s|answer:?\s)?([A-Za-z]|\d{1,2})(?:[)\]}>][.:]?|\s?[.:、/=]-?|\s[-–—]|(?=\s))\s{0,4}(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_PARTS: Final = re.compile(r"\s*(?:[,;，、；/&+]|\band\b|\bund\b|\bet\b|\by\b|和|\s)\s*")
_JOINED: Final = re.compile(r"[A-Z]{2,26}|[a-z]{2,26}")


class Wanted(NamedTuple):
    """The right options.

    Attributes:
        sets: Each acceptable set of options.
        places: The reference that names each set.
        unnamed: Places of references that name no option.
        several: True if an answer may choose several options.
    """

    sets: tuple[frozenset[int], ...]
    places: tuple[int, ...]
    unnamed: tuple[int, ...]
    several: bool


def wanted_of(references: Sequence[str], options: Options) -> Wanted:
    """Return the options that references name, by letter, number, text or both.

    Several references are alternatives, except in a question that asks for all right options: there they are one set.
    """
    texts = texts_of(options.texts)
    sets: list[frozenset[int]] = []
    places: list[int] = []
    unnamed: list[int] = []
    for place, reference in enumerate(islice(references, MAX_REFERENCES)):
        named = _named(reference, options, texts)
        if named:
            sets.append(named)
            places.append(place)
        else:
            unnamed.append(place)
    if options.several and len(sets) > 1 and all(len(each) == 1 for each in sets):
        return Wanted((frozenset().union(*sets),), (places[0],), tuple(unnamed), several=True)
    several = options.several or any(len(each) > 1 for each in sets)
    return Wanted(tuple(sets), tuple(places), tuple(unnamed), several)


def _named(reference: str, options: Options, texts: Texts) -> frozenset[int]:
    """Return the options that a reference names; several only as a list of letters or texts."""
    text = cleaned(reference.strip()[:MAX_TEXT]).strip()  # cut as options are
    if (one := _one(text, options, texts)) is not None:
        return frozenset((one,))
    parts = [part for part in _PARTS.split(text, MAX_OPTIONS) if part]
    if len(parts) == 1 and _JOINED.fullmatch(text) and len(text) <= MAX_OPTIONS:
        parts = list(text)
    places = [_by_letter(part, options) for part in parts]
    if len(parts) > 1 and None not in places and len(set(places)) == len(places):
        return frozenset(place for place in places if place is not None)
    parts = [part for part in re.split(r"\s*[;,，；\n]\s*", text) if part]
    listed = [_one(part, options, texts) for part in parts] if 1 < len(parts) <= MAX_OPTIONS else []
    if listed and None not in listed:
        return frozenset(place for place in listed if place is not None)
    return frozenset()


def _one(text: str, options: Options, texts: Texts) -> int | None:
    equal = texts.equal(text) if all(options.texts) else []
    exact = [place for place, option in enumerate(options.texts) if option and cleaned(option).strip() == text]
    if len(exact) == 1 and (_by_letter(text, options) is None or options.kind == "number"):
        by_number = _by_letter(text, options) if options.kind == "number" else None
        return exact[0] if by_number is None else by_number
    if (letter := _by_letter(text, options)) is not None:
        return letter
    if len(equal) == 1:
        return equal[0]
    both = _BOTH.fullmatch(text)
    if both is None or (place := _position(both[1], options)) is None:
        return None
    known = options.texts[place]
    return place if not known or place in texts.equal(both[2]) or not all(options.texts) else None


def _by_letter(text: str, options: Options) -> int | None:
    found = _LETTER.fullmatch(text.strip())
    return _position(found[1], options) if found else None


def _position(label: str, options: Options) -> int | None:
    return options.labels.index(label.upper()) if label.upper() in options.labels else None
