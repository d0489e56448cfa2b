"""Read human-labelled rows, and manage score files that later runs continue."""

import hashlib
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

# `python -m benchmarks.data get` writes here; git ignores it.
DATA_DIRECTORY: Final = Path(__file__).resolve().parents[2] / ".data"
DEFAULT_DATA: Final = DATA_DIRECTORY / "evouna_dev.jsonl"
GET_COMMAND: Final = "python -m benchmarks.data get"
HEADLINE_MODELS = ("gpt35", "gpt4")

Row = dict[str, Any]
WARM_UP: Final[Row] = {"id": "0", "question": "?", "references": ["a warm up"], "prediction": "this is only to warm up"}
ROOT = Path(__file__).resolve().parents[2]
# Scores depend on this code, but a metric's version does not change with every line.
SOURCES = tuple(ROOT / "server" / "src" / "gradewire_server" / part for part in ("metrics", "scoring"))


def require_files(*paths: Path) -> None:
    """Exit with code 2 if a file is missing."""
    if missing := [str(path) for path in paths if not path.is_file()]:
        sys.stderr.write(
            f"{', '.join(missing)}: missing. Get the labelled rows with {GET_COMMAND}, or give other files (--data)\n"
        )
        raise SystemExit(2)


def read_lines(path: Path) -> list[Row]:
    """Read all rows from a file of JSON lines; exit with code 2 if it is missing."""
    require_files(path)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_rows(path: Path, models: tuple[str, ...] = HEADLINE_MODELS) -> list[Row]:
    """Read the rows from the given models; exit like `read_lines` if the file is missing."""
    return [row for row in read_lines(path) if row["model"] in models]


def sample_rows(rows: list[Row], count: int, seed: int) -> list[Row]:
    """Draw `count` rows without replacement; the same seed gives the same rows."""
    return random.Random(seed).sample(rows, count)  # noqa: S311 - no secret


def items_of(rows: Iterable[Row]) -> list[Row]:
    """Return the fields that a client sends, without labels and models."""
    return [{name: row[name] for name in ("id", "question", "references", "prediction")} for row in rows]


def sources_digest() -> str:
    """Return a digest of the scoring code, 16 hex digits."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(file for folder in SOURCES for file in folder.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def note_sources(out: Path) -> None:
    """Store the current code's digest next to a new score file."""
    _noted(out).write_text(sources_digest(), "utf-8")


def same_sources(out: Path) -> bool:
    """Return True if the current code started a score file."""
    noted = _noted(out)
    return noted.exists() and noted.read_text("utf-8") == sources_digest()


def resume_or_overwrite(out: Path) -> str:
    """Return --resume for `gradewire score` if the current code started the file, else --overwrite."""
    goes_on = out.exists() and same_sources(out)
    note_sources(out)
    return "--resume" if goes_on else "--overwrite"


def _noted(out: Path) -> Path:
    return out.with_suffix(".sources")
