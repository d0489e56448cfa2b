"""WordNet's files, from Debian's package, and NLTK's reader of them."""

import gc
import shutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.debian.apt import unpacked

_TOPICS = {
    "adj": "all pert",
    "adv": "all",
    "noun": "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
    "object person phenomenon plant possession process quantity relation shape state substance time",
    "verb": "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather",
}


@cache
def wordnet_files() -> Path:
    """The directory with index, data and exc files."""
    return unpacked("wordnet-base") / "usr/share/wordnet"


def nltk_reader(directory: Path) -> Any:
    """NLTK's reader; takes seconds. Copies the files to `directory`, with the list of topics that Debian leaves out."""
    import nltk  # noqa: PLC0415 - takes 3 s, and every worker of a run imports what imports this module
    from nltk.corpus.reader.wordnet import WordNetCorpusReader  # noqa: PLC0415 - as above

    class Reader(WordNetCorpusReader):  # type: ignore[misc] # NLTK has no types
        def map_wn(self, version: str = "wordnet") -> None:
            """Leaves out the mapping to other versions, for which files are missing."""

    shutil.copytree(wordnet_files(), directory, dirs_exist_ok=True)
    names = [f"{part}.{topic}" for part, topics in _TOPICS.items() for topic in topics.split()] + ["adj.ppl"]
    (directory / "lexnames").write_text("".join(f"{number:02d}\t{name}\t0\n" for number, name in enumerate(names)))
    nltk.data.path.append(str(directory))  # NLTK opens nothing elsewhere
    gc.disable()  # a third of the time goes into looking through what is being read
    try:
        with warnings.catch_warnings(category=UserWarning, action="ignore"):  # no other languages
            return Reader(str(directory), None)
    finally:
        gc.enable()
