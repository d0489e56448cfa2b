"""The judges of ``judges.toml`` as typed, checked values."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gradewire_models.catalog.table import NAME, SHA256, by_name, find, read_entry, read_table, read_toml
from gradewire_models.judges.entries import FORMS, CatalogJudge

_CATALOG_FILE = Path(__file__).with_name("judges.toml")


@cache
def catalog_judges(path: Path = _CATALOG_FILE) -> Mapping[str, CatalogJudge]:
    """Reads the catalog of judges.

    Args:
        path: A catalog in TOML; the one of this package unless a test says otherwise.

    Returns:
        The judges by name, in the order of the file.

    Raises:
        CatalogError: The file cannot be read, a field is missing, unknown or of a wrong kind, a name or digest is
            malformed, or there is not exactly one default.
    """
    entries = read_toml(path, "the catalog of judges").get("judge", [])
    return by_name((read_entry(entry, _read, path, "judge") for entry in entries), path, "judge")


def default_judge() -> CatalogJudge:
    """The judge that is meant where none is named."""
    return next(judge for judge in catalog_judges().values() if judge.default)


def find_judge(name: str) -> CatalogJudge:
    """Looks a judge up by name.

    Raises:
        CatalogError: The catalog has no such judge; the message lists those it has.
    """
    return find(catalog_judges(), name, "judge")


def _read(entry: dict[str, Any]) -> CatalogJudge:
    judge = read_table(CatalogJudge, entry)
    if not NAME.fullmatch(judge.name):
        raise ValueError("the name may have letters, digits, dots, hyphens and underscores only")
    if not all((*judge.remarks, *judge.eos_tokens)):
        raise ValueError("remarks and eos_tokens should hold no empty text")
    if judge.chat_template != "chatml":
        raise ValueError(f"chat_template should be 'chatml', not {judge.chat_template!r}")
    if not judge.buildable:
        return judge
    pinned = [judge.sha256, *(source.sha256 for source in judge.sources), *judge.digests.values()]
    if wrong := [digest for digest in pinned if not SHA256.fullmatch(digest)]:
        raise ValueError(f"{wrong[0]!r} is not 64 hex characters")
    if judge.bytes <= 0 or judge.download_bytes <= 0 or judge.context_tokens <= 0:
        raise ValueError("bytes, download_bytes and context_tokens should be positive")
    if set(judge.numeric_classes) != set(FORMS) or not judge.eos_tokens:
        raise ValueError(f"a judge that can be built has numeric_classes for {', '.join(FORMS)} and eos_tokens")
    return judge
