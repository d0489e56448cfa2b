"""A WordNet of a few synsets, in its own file format, for tests that say what they need of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A synset: words with blanks, broader synsets, and further links as "symbol name" (with the words' numbers)."""

    words: Sequence[str]
    gloss: str = "a thing"
    above: Sequence[str] = ()
    links: Sequence[str] = ()
    part: str = "n"
    topic: int = 5


def write_wordnet(directory: Path, entries: Mapping[str, Entry], counts: Mapping[str, int] | None = None) -> Path:
    """Writes data.* and cntlist.rev; `above` is written down as well, from the broader synset."""
    offsets = {name: f"{1000 + number:08d}" for number, name in enumerate(entries)}
    lines: dict[str, list[str]] = {"noun": [], "verb": [], "adj": [], "adv": []}
    files = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    for name, entry in entries.items():
        pointers = [f"@ {offsets[parent]} n 0000" for parent in entry.above]
        pointers += [f"~ {offsets[child]} n 0000" for child, other in entries.items() if name in other.above]
        for link in entry.links:
            symbol, target, *ends = link.split()
            part = entries[target].part.replace("s", "a")
            pointers.append(f"{symbol} {offsets[target]} {part} {ends[0] if ends else '0000'}")
        words = " ".join(f"{word.replace(' ', '_')} 0" for word in entry.words)
        lines[files[entry.part]].append(
            f"{offsets[name]} {entry.topic:02d} {entry.part} {len(entry.words):02x} {words} {len(pointers):03d} "
            f"{' '.join(pointers)}{' ' if pointers else ''}| {entry.gloss}  \n"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, found in lines.items():
        (directory / f"data.{name}").write_text("  1 This is the licence.\n" + "".join(found), encoding="ascii")
    kept = "".join(f"{key} 1 {count}\n" for key, count in (counts or {}).items())
    (directory / "cntlist.rev").write_text(kept, encoding="ascii")
    return directory
