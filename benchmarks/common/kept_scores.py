"""Files of scores that later runs go on with, and the code that they were begun with."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What scores depend on; a metric's version need not change with every line of it.
SOURCES = tuple(ROOT / "server" / "src" / "gradewire_server" / part for part in ("metrics", "scoring"))


def sources_digest() -> str:
    """16 hex digits over the code that scores."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(file for folder in SOURCES for file in folder.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def note_sources(out: Path) -> None:
    """Writes down beside a file of scores that the code as it is now begins it."""
    _noted(out).write_text(sources_digest(), "utf-8")


def same_sources(out: Path) -> bool:
    """Whether a file of scores was begun with the code as it is now."""
    noted = _noted(out)
    return noted.exists() and noted.read_text("utf-8") == sources_digest()


def resume_or_overwrite(out: Path) -> str:
    """The option of `gradewire score` for a file of scores: goes on with one of the same code, else begins again."""
    goes_on = out.exists() and same_sources(out)
    note_sources(out)
    return "--resume" if goes_on else "--overwrite"


def _noted(out: Path) -> Path:
    return out.with_suffix(".sources")
