"""Find chemical names ("2-butanol") and signs with an index or a charge ("x_3", "H2O", "Na+")."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.values.tokens import DIGITS, VOCABULARY

_WORDS: Final = VOCABULARY["symbols"]

_PREFIXES: Final = frozenset(_WORDS["isomers"].split())
_STEREO_NAMES: Final[Mapping[str, str]] = _WORDS["isomer_signs"]
_STEREO: Final = rf"(?:{_WORDS['isomers'].replace(' ', '|')}|[\u03b1\u03b2\u03b3]|[DLdlompnERSZ])"
_NAME: Final = re.compile(
    rf"(?<![\w-])((?:\(?{_STEREO}\)?-){{0,3}}(?:(?:\d{{1,2}}'?(?:,\d{{1,2}}'?){{0,5}})-)?[A-Za-z]{{3,30}}"
    r"(?:-\d{1,2}(?:,\d{1,2}){0,5}-[a-z]{2,30}){0,4})(?![\w])"
)
_ROOT: Final = re.compile(rf"(?:di|tri|tetra|penta|hexa)?(?:{'|'.join(_WORDS['roots'].split())})", re.IGNORECASE)
_ENDING: Final = re.compile(rf"[a-z]*(?:{'|'.join(_WORDS['endings'].split())})", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"\d+(?:,\d+)*")
_OXIDATION: Final = re.compile(r"(?<!\w)([a-z]{3,12}) ?\((I{1,3}|IV|VI{0,3}|V)\)(?: ([a-z]{3,14}))?", re.IGNORECASE)
_ELEMENTS: Final[Mapping[str, str]] = _WORDS["elements"]
_ELEMENT_SIGNS: Final = frozenset(_ELEMENTS.values())
_ISOTOPE: Final = re.compile(r"(?<![\w-])([A-Za-z]{1,11})([ -])(\d{1,3})(?![\w.])")
_GREEK_LETTERS: Final = frozenset("\u03b1\u03b2\u03b3\u03c9")
_GREEK_WORDS: Final = ("alpha", "beta", "gamma", "delta", "omega", "Alpha", "Beta", "Gamma", "Delta", "Omega")
_GREEK: Final = re.compile(
    r"(?<![\w-])(alpha|beta|gamma|delta|omega|[\u03b1\u03b2\u03b3\u03c9])[- ]([a-z]{4,12}|\d{1,2})(?!\w)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Locant:
    """A lower-case chemical name and its locants: "butanol" and ("2",) for "2-butanol" and "butan-2-ol"."""

    stem: str
    marks: tuple[str, ...]

    def equals(self, reference: "Locant") -> bool:
        """Return True if the two names mean the same substance."""
        return self == reference

    def contradicts(self, reference: "Locant") -> bool:
        """Return True if the names mean different substances.

        If one stem begins with the other, the names contradict each other only if their marks differ, because
        "2-methyl propane" is parsed only up to the blank.
        """
        begun = self.stem.startswith(reference.stem) or reference.stem.startswith(self.stem)
        return self != reference and (self.marks != reference.marks or not begun)


def locants_of(text: str, characters: AbstractSet[str]) -> Iterator[tuple[int, int, Locant]]:
    """Yield the start, end and content of each chemical name in a plain text.

    `characters` are the text's characters.
    """
    if "(" in characters:
        for match in _OXIDATION.finditer(text):
            yield match.start(), match.end(), Locant(f"{match[1]} {match[3] or ''}".lower(), (match[2],))
    if not DIGITS.isdisjoint(characters):
        yield from _isotopes(text)
    if "-" in characters:
        for match in _NAME.finditer(text):
            if (found := _locant(match[1])) is not None:
                yield match.start(), match.end(), found
    if not _GREEK_LETTERS.isdisjoint(characters) or any(word in text for word in _GREEK_WORDS):
        for match in _GREEK.finditer(text):
            number = match[2].isdigit()
            marks = (_greek(match[1]), match[2]) if number else (_greek(match[1]),)
            yield match.start(), match.end(), Locant("" if number else match[2].lower(), marks)


def _isotopes(text: str) -> Iterator[tuple[int, int, Locant]]:
    for match in _ISOTOPE.finditer(text):
        name = match[1].lower()
        element = _ELEMENTS.get(name)
        if element is None and match[2] == "-" and name in _ELEMENT_SIGNS and match[1][0].isupper():
            element = name
        if element is not None:
            yield match.start(), match.end(), Locant(element, (match[3],))


def _greek(letter: str) -> str:
    return _STEREO_NAMES.get(letter, letter.lower())


def _locant(name: str) -> Locant | None:
    """Parse a systematic chemical name; return None for other words: "3-year-old", "x-ray", "t-shirt"."""
    if "-" not in name:
        return None
    letters: list[str] = []
    marks: list[str] = []
    for part in name.split("-"):
        bare = part.strip("()")
        if _NUMBERS.fullmatch(bare.replace("'", "")):
            marks.append(bare)
        elif not letters and (len(bare) == 1 or bare.lower() in _PREFIXES):
            marks.append(_STEREO_NAMES.get(bare, bare.lower() if len(bare) > 1 else bare))
        else:
            letters.append(bare.lower())
    stem = "".join(letters)
    if not marks or _ROOT.match(stem) is None or _ENDING.fullmatch(stem) is None:
        return None
    # "butadiene" and "buta-1,3-diene" get the same stem, as do "propane-2-ol" and "propan-2-ol".
    plain = stem.replace("aneol", "anol").replace("adiene", "diene").replace("atriene", "triene")
    return Locant(plain, tuple(sorted(marks)))


# "m2" after a number is a unit, not a sign with an index. Words that end in a digit are names: "iPhone4".
_INDEXED: Final = re.compile(r"(?<![\w.'])(?<!\d )([^\W\d_]{1,4})_?(\d{1,3})(?![\w%]|[.,]\d|-\d)")
_GREEK_SIGNS: Final[Mapping[str, str]] = VOCABULARY["greek"]
_GREEK_INDEXED: Final = re.compile(rf"(?<![\w.'])({'|'.join(_GREEK_SIGNS)})_?(\d{{1,3}})(?![\w%]|[.,]\d|-\d)")
# A chemical formula: "H2O", "C6H12O6".
_COMPOUND: Final = re.compile(r"(?<![\w.])((?:[A-Z][a-z]?\d{0,3}){2,12})(?![\w])")
_CHARGED: Final = re.compile(r"(?<![\w.])((?:[A-Z][a-z]?\d{0,2}){1,4}(?:\^\d?)?[+-])(?![\w+-])")
_DIGITED: Final = re.compile(
    r"(?<![\w.-])(?:v(?:ersion)?\.? ?)?(\d{1,4}(?:\.\d{1,4}){2,4})(?![\w]|\.\d)|"
    r"(?<![\w.-])(\+?\d{1,4}[- ])?((?:\d{3}-)?\d{3}-\d{4})(?![\w-])"
)
_NO_SIGNS: Final = frozenset(_WORDS["no_signs"].split())
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:\.\d{3})+")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A sign whose digits or charge distinguish it from other signs of its family.

    Attributes:
        stem: The family's common part: "\u03bb" for "\u03bb1", "phone" for telephone numbers, "version" for versions.
        key: The whole sign, without "_".
    """

    stem: str
    key: str

    def equals(self, reference: "Symbol") -> bool:
        """Return True if the two signs are the same."""
        return self.key == reference.key

    def contradicts(self, reference: "Symbol") -> bool:
        """Return True if the two signs are different, but of the same family."""
        return self.stem == reference.stem and self.key != reference.key


def symbols_of(text: str, characters: AbstractSet[str]) -> Iterator[tuple[int, int, Symbol]]:
    """Yield the start, end and content of each sign in a plain text. `characters` are the text's characters."""
    digits = not DIGITS.isdisjoint(characters)
    if digits and ("." in characters or "-" in characters):
        yield from _digit_by_digit(text)
    if "+" in characters or "-" in characters:
        for match in _CHARGED.finditer(text):
            if len(match[1]) > 2 or match[1][-1] == "+":
                key = match[1].replace("^", "")
                yield match.start(), match.end(), Symbol(re.sub(r"[\d+-]", "", key), key)
    if digits:
        yield from _indexed(text)


def _digit_by_digit(text: str) -> Iterator[tuple[int, int, Symbol]]:
    for match in _DIGITED.finditer(text):
        if match[1] is not None and not _THOUSANDS.fullmatch(match[1]):
            yield match.start(), match.end(), Symbol("version", match[1])
        elif match[3] is not None:
            yield match.start(), match.end(), Symbol("phone", re.sub(r"\D", "", match[0]))


def _indexed(text: str) -> Iterator[tuple[int, int, Symbol]]:
    for match in _COMPOUND.finditer(text):
        stem = "".join(sign for sign in match[1] if not sign.isdigit())
        if stem != match[1] and stem not in _NO_SIGNS and sum(sign.isupper() for sign in stem) > 1:
            yield match.start(), match.end(), Symbol(stem, match[1])
    for match in _GREEK_INDEXED.finditer(text) if any(name in text for name in _GREEK_SIGNS) else ():
        yield match.start(), match.end(), Symbol(_GREEK_SIGNS[match[1]], _GREEK_SIGNS[match[1]] + match[2])
    for match in _INDEXED.finditer(text):
        if _is_sign(match[1]):
            yield match.start(), match.end(), Symbol(match[1], match[1] + match[2])


def _is_sign(letters: str) -> bool:
    return letters not in _NO_SIGNS and (len(letters) == 1 or letters.isupper())
