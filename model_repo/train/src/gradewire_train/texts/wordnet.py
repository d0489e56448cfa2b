"""Read synsets, with words, links and definitions, from WordNet's data files (wndb(5WN), cntlist(5WN)).

All files are read at once, in about 2 s. NLTK's reader needs files that Debian's package lacks.
"""

import gc
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from gradewire_train import TrainingError

ADVICE: Final = (
    "set the directory with --wordnet or in WNSEARCHDIR (Debian's package wordnet-base installs the "
    "files to /usr/share/wordnet)"
)
_DEBIAN: Final = Path("/usr/share/wordnet")
_PARTS: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_COARSE: Final = re.compile(
    r"\b(offensive|slurs?|derogat\w*|disparag\w*|obscen\w*|vulgar\w*|insulting|contempt\w*)\b", re.IGNORECASE
)
_ENDS: Final = re.compile(r"[0-9a-f]{4}")
_SENSE_TYPES: Final = {"n": "1", "v": "2", "a": "3", "r": "4", "s": "5"}

Key = str
"""A synset's name: the part of speech and the offset in the data file, "n02084071"."""


def usual_directory() -> Path:
    """Return the directory that WordNet's own programs use: $WNSEARCHDIR, $WNHOME/dict, or Debian's directory."""
    if searched := os.environ.get("WNSEARCHDIR"):
        return Path(searched)
    if home := os.environ.get("WNHOME"):
        return Path(home) / "dict"
    return _DEBIAN


class Word(NamedTuple):
    """A word or phrase in WordNet's spelling, and its count with this meaning in tagged texts (usually 0)."""

    text: str
    met: int


@dataclass(frozen=True, slots=True)
class Synset:
    """Words with one meaning.

    Attributes:
        topic: Number of the lexicographer's file, for example 5 for animals, 6 for artefacts, 18 for persons
            (lexnames(5WN)).
        pointers: Links, as four fields per link: symbol ("@" means a broader synset), offset, part of speech, and four
            hexadecimal digits with the positions of the two linked words.
        definition: The gloss without its examples.
    """

    key: Key
    topic: int
    words: tuple[Word, ...]
    pointers: tuple[str, ...]
    definition: str

    @property
    def met(self) -> int:
        """The number of times that the words occur with this meaning in tagged texts."""
        return sum(word.met for word in self.words)

    @property
    def gloss(self) -> str:
        """The first definition, without bracketed parts."""
        return re.sub(r"\s*\([^)]*\)", "", self.definition).split(";")[0].strip()

    @property
    def coarse(self) -> bool:
        """True if WordNet calls the synset's words insulting; the generator avoids such synsets."""
        return _COARSE.search(self.definition) is not None

    def linked(self, *symbols: str) -> tuple[Key, ...]:
        """Return the keys of the synsets to which this synset has a link with one of these symbols."""
        return tuple(_key(part, offset) for symbol, offset, part, _ in self._quadruples() if symbol in symbols)

    def antonyms(self) -> tuple[tuple[Key, int], ...]:
        """Return the antonyms of the first word.

        Each antonym has its synset's key, and its position in that synset, from 1. Position 0 means all words.
        """
        return tuple(
            (_key(part, offset), int(ends[-2:], 16))
            for symbol, offset, part, ends in self._quadruples()
            if symbol == "!" and ends[:2] in {"00", "01"}
        )

    def _quadruples(self) -> Iterator[tuple[str, str, str, str]]:
        each = iter(self.pointers)
        return zip(each, each, each, each, strict=True)


class WordNet:
    """The synsets by key, in the files' order.

    Raises:
        TrainingError: A file is missing or not in WordNet's format.
    """

    def __init__(self, directory: Path) -> None:
        try:
            with _uncollected():
                counts = _counts(directory / "cntlist.rev")
                self.synsets: Mapping[Key, Synset] = {
                    synset.key: synset for part in _PARTS for synset in _synsets(directory, part, counts)
                }
        except OSError as error:
            raise TrainingError(f"cannot read WordNet's files in {directory}: {error.strerror}; {ADVICE}") from error

    @cached_property
    def senses(self) -> Mapping[str, tuple[Key, ...]]:
        """The keys of all synsets that contain a word or phrase, by the word or phrase in lower case."""
        found: dict[str, list[Key]] = {}
        with _uncollected():
            for key, synset in self.synsets.items():
                for word in synset.words:
                    found.setdefault(word.text.lower(), []).append(key)
            return {word: tuple(keys) for word, keys in found.items()}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection, which would take half of the reading time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _synsets(directory: Path, part: str, counts: Mapping[str, int]) -> Iterator[Synset]:
    path = directory / f"data.{_PARTS[part]}"
    with path.open(encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith("  "):  # the licence
                continue
            try:
                yield _synset(line, part, counts)
            except (IndexError, ValueError) as error:
                raise TrainingError(
                    f"{path}, line {number}, is not in WordNet's format (wndb(5WN)); {ADVICE}"
                ) from error


def _synset(line: str, part: str, counts: Mapping[str, int]) -> Synset:
    front, found, gloss = line.partition(" | ")
    fields = front.split()
    if not found or len(fields[0]) != 8:
        raise ValueError("no gloss, or no offset")
    size = int(fields[3], 16)
    names = fields[4 : 4 + 2 * size : 2]
    numbers = fields[5 : 5 + 2 * size : 2]
    sense = f"{_SENSE_TYPES[fields[2]]}:{fields[1]}"
    words = []
    for name, number in zip(names, numbers, strict=True):
        bare = name.partition("(")[0]  # adjectives may end with their position: galore(ip)
        count = counts.get(f"{bare.lower()}%{sense}:{int(number, 16):02d}", 0)
        words.append(Word(bare.replace("_", " "), count))
    start = 5 + 2 * size
    pointers = tuple(fields[start : start + 4 * int(fields[start - 1])])
    if len(pointers) != 4 * int(fields[start - 1]) or any(_ENDS.fullmatch(ends) is None for ends in pointers[3::4]):
        raise ValueError("broken links")
    return Synset(_key(part, fields[0]), int(fields[1]), tuple(words), pointers, gloss.partition('; "')[0].strip())


def _key(part: str, offset: str) -> Key:
    return ("a" if part == "s" else part) + offset


def _counts(path: Path) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    with path.open(encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                key, _, count = line.split()
                lemma, _, sense = key.partition("%")
                counts[f"{lemma}%{':'.join(sense.split(':')[:3])}"] = int(count)
            except ValueError as error:
                raise TrainingError(
                    f"{path}, line {number}: must have three fields (cntlist(5WN)); {ADVICE}"
                ) from error
    return counts
