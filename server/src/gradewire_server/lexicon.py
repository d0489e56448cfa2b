"""Synonyms from WordNet's files (`index.*`, `data.*`, `*.exc`; see wndb(5WN)), opened once and off the event loop."""

import asyncio
import logging
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from typing_extensions import override

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import Synonyms
from gradewire_server.domain.ports import Lexicon

_log = logging.getLogger(__name__)

# Suffixes and their replacements: the detachment rules of morphy(7WN), and NLTK's "ves".
_ENDINGS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
_REMEMBERED_WORDS: Final = 65_536
_FIXED_FIELDS: Final = 6
"""Number of fixed fields in an index line: lemma, part of speech, synsets, pointers, senses, ranked senses."""


class WordNetError(ValueError):
    """A file that does not follow WordNet's format."""


class _PartOfSpeech:
    def __init__(self, directory: Path, name: str) -> None:
        self._index = _mapped(directory / f"index.{name}")
        self._data = _mapped(directory / f"data.{name}")
        self._endings = _ENDINGS[name]
        self._exceptions: dict[str, list[str]] = {}
        for line in (directory / f"{name}.exc").read_text(encoding="ascii").splitlines():
            inflected, *lemmas = line.split()
            self._exceptions[inflected] = lemmas

    def synonyms(self, word: str) -> Iterator[str]:
        """Yield single words that share a sense with `word` or one of its base forms. Words may be repeated."""
        for form in dict.fromkeys((word, *self._base_forms(word))):
            for offset in self._senses(form):
                yield from (name for name in self._members(offset) if "_" not in name)

    def senses(self, lemma: str) -> Iterator[tuple[str, ...]]:
        """Yield the words of each sense, most frequent sense first; `lemma` has underscores for blanks."""
        return (tuple(self._members(offset)) for offset in self._senses(lemma))

    def _base_forms(self, word: str) -> list[str]:
        if word in self._exceptions:
            return self._exceptions[word]
        return [word.removesuffix(old) + new for old, new in self._endings if word.endswith(old)]

    def _senses(self, lemma: str) -> list[int]:
        """Return the offsets of the lemma's synsets in the data file; [] if the index lacks the lemma."""
        key = lemma.encode()
        low, high = 0, len(self._index) if key else 0
        while low < high:
            start = self._index.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._index.find(b"\n", start)
            line = self._index[start:end]
            found = line.partition(b" ")[0]  # lines of the licence at the start of the file begin with a blank
            if found == key:
                return _offsets(line)
            if found < key:
                low = end + 1
            else:
                high = start
        return []

    def _members(self, offset: int) -> Iterator[str]:
        line = self._data[offset : self._data.find(b"\n", offset)].partition(b"|")[0]
        fields = line.decode("ascii").split()
        try:
            if int(fields[0]) != offset:
                raise WordNetError(f"the data at offset {offset} belong to a different synset")
            names = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        except (IndexError, ValueError) as error:
            raise WordNetError(f"the data at offset {offset} cannot be parsed") from error
        # An adjective may end with a marker for its position, for example galore(ip).
        return (name.partition("(")[0] for name in names)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _offsets(line: bytes) -> list[int]:
    fields = line.split()
    try:
        count = int(fields[2])
        offsets = [int(each) for each in fields[len(fields) - count :]]
        complete = len(fields) == _FIXED_FIELDS + int(fields[3]) + count
    except (IndexError, ValueError) as error:
        raise WordNetError("a line of the index cannot be parsed") from error
    if not complete:
        raise WordNetError("a line of the index has the wrong number of fields")
    return offsets


class WordNet:
    """The WordNet files in a directory, opened by the constructor. Thread-safe.

    Raises:
        OSError: A file is missing or cannot be read.
        ValueError: A file is empty or does not follow WordNet's format.
    """

    def __init__(self, directory: Path) -> None:
        self._parts = [_PartOfSpeech(directory, name) for name in _ENDINGS]
        self.synonyms = lru_cache(maxsize=_REMEMBERED_WORDS)(self._synonyms)
        if "cat" not in self.synonyms("cat"):
            raise WordNetError("these are not WordNet's files: they lack the word 'cat'")

    def noun_senses(self, phrase: str) -> tuple[tuple[str, ...], ...]:
        """Return the synonyms in each sense of a noun or name, most frequent sense first.

        `phrase` is a base form in lower case, with blanks between words.

        Raises:
            WordNetError: The files are damaged.
        """
        senses = self._parts[0].senses("_".join(phrase.split()))
        return tuple(tuple(name.replace("_", " ") for name in sense) for sense in senses)

    def _synonyms(self, word: str) -> frozenset[str]:
        """Return the lower-case word and all single words that share a sense with the word.

        If WordNet does not contain the word, return an empty set.

        Raises:
            WordNetError: The files are damaged.
        """
        return frozenset(name for part in self._parts for name in part.synonyms(word))


_DEBIAN: Final = Path("/usr/share/wordnet")
_ADVICE: Final = (
    "install them on the server (Debian: apt-get install wordnet-base), or set wordnet_directory to their directory; "
    "with synonyms=none, METEOR ignores synonyms and its scores are lower"
)


def usual_directory() -> Path:
    """Return $WNSEARCHDIR or $WNHOME/dict. If neither variable is set, return Debian's directory for WordNet."""
    if searched := os.environ.get("WNSEARCHDIR"):
        return Path(searched)
    if home := os.environ.get("WNHOME"):
        return Path(home) / "dict"
    return _DEBIAN


class Thesaurus(Lexicon):
    """A lexicon of WordNet's synonyms that does not block the event loop.

    Args:
        directory: The directory of WordNet's files; None means `usual_directory()`.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory or usual_directory()
        self._opened: WordNet | None = None
        self._opening = asyncio.Lock()

    @override
    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        # Try again in each call, so that files installed later work without a restart.
        async with self._opening:
            if self._opened is None:
                try:
                    self._opened = await asyncio.to_thread(WordNet, self._directory)
                except FileNotFoundError:
                    return _unavailable("WordNet's files are missing")
                except (OSError, ValueError) as error:
                    _log.warning("WordNet's files in %s cannot be used: %s", self._directory, error)
                    return _unavailable("WordNet's files cannot be read; the server's log says why")
        try:
            return await asyncio.to_thread(_look_up, self._opened, words)
        except ValueError as error:
            _log.warning("WordNet's files in %s cannot be used: %s", self._directory, error)
            return _unavailable("WordNet's files are broken; the server's log says how")


def _unavailable(what: str) -> Failure:
    return Failure(Status.MODEL_UNAVAILABLE, f"{what}: {_ADVICE}")


def _look_up(wordnet: WordNet, words: Sequence[str]) -> Synonyms:
    return {word: wordnet.synonyms(word) for word in words}
