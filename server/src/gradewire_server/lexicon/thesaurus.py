"""WordNet's synonyms for metrics, opened once, off the event loop; where files are missing, says what to install."""

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from gradewire_server.domain.needs import Synonyms
from gradewire_server.domain.ports import Lexicon
from gradewire_server.domain.result import Failure, Status
from gradewire_server.lexicon.wordnet import WordNet

_DEBIAN: Final = Path("/usr/share/wordnet")
_ADVICE: Final = (
    "install them on the server (Debian: apt-get install wordnet-base) or name their directory in the setting "
    "wordnet_directory; synonyms=none gives METEOR's lower score without synonyms"
)

_log = logging.getLogger(__name__)


def usual_directory() -> Path:
    """Where WordNet's own programs look: $WNSEARCHDIR, $WNHOME/dict; else where Debian puts the files."""
    if searched := os.environ.get("WNSEARCHDIR"):
        return Path(searched)
    if home := os.environ.get("WNHOME"):
        return Path(home) / "dict"
    return _DEBIAN


class Thesaurus(Lexicon):
    """Looks up synonyms; used on the event loop.

    Args:
        directory: Of WordNet's files; None for the usual one.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory or usual_directory()
        self._opened: WordNet | None = None
        self._opening = asyncio.Lock()

    @override
    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        # Files that come later are found without a restart.
        async with self._opening:
            if self._opened is None:
                try:
                    self._opened = await asyncio.to_thread(WordNet, self._directory)
                except FileNotFoundError:
                    return _unavailable("WordNet's files are not there")
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
