"""The judges of ``judges.toml`` as typed, checked values."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradewire_models.errors import CatalogError
from gradewire_models.judges.entries import FORMS, CatalogJudge, Form, JudgeSource

_CATALOG_FILE = Path(__file__).with_name("judges.toml")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OPTIONAL: dict[str, Any] = {
    "default": False,
    "test_only": False,
    "sources": (),
    "file": "",
    "sha256": "",
    "bytes": 0,
    "download_bytes": 0,
    "eos_tokens": (),
    "digests": {},
    "numeric_classes": {},
}


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
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("judge", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read the catalog of judges {path}: {error}") from error
    judges: dict[str, CatalogJudge] = {}
    for entry in entries:
        judge = _read(entry, f"{path}: judge {entry.get('name')!r}")
        if judge.name in judges:
            raise CatalogError(f"{path}: judge {judge.name!r} is listed twice")
        judges[judge.name] = judge
    defaults = [judge.name for judge in judges.values() if judge.default]
    if len(defaults) != 1:
        raise CatalogError(f"{path}: exactly one judge must be the default, found {defaults}")
    return MappingProxyType(judges)


def default_judge() -> CatalogJudge:
    """The judge that is meant where none is named."""
    return next(judge for judge in catalog_judges().values() if judge.default)


def find_judge(name: str) -> CatalogJudge:
    """Looks a judge up by name.

    Raises:
        CatalogError: The catalog has no such judge; the message lists those it has.
    """
    judges = catalog_judges()
    if name not in judges:
        raise CatalogError(f"the catalog has no judge {name!r}; it has: {', '.join(judges)}")
    return judges[name]


def _read(entry: dict[str, Any], where: str) -> CatalogJudge:
    known = {field.name: field.type for field in fields(CatalogJudge)}
    if unknown := sorted(set(entry) - set(known)):
        raise CatalogError(f"{where}: {unknown[0]} is not a field")
    values = {**_OPTIONAL, **entry}
    if missing := sorted(set(known) - set(values)):
        raise CatalogError(f"{where}: {missing[0]} is missing")
    for name, kind in known.items():
        if kind in {str, int, bool} and type(values[name]) is not kind:
            raise CatalogError(f"{where}: {name} should be {getattr(kind, '__name__', kind)}, not {values[name]!r}")
    try:
        values["sources"] = tuple(JudgeSource(**source) for source in values["sources"])
    except TypeError as error:
        raise CatalogError(f"{where}: sources: {error}") from error
    for name in ("remarks", "eos_tokens"):
        values[name] = _texts(values[name], f"{where}: {name}")
    for name in ("digests", "numeric_classes"):
        values[name] = _by_form(values[name], f"{where}: {name}")
    judge = CatalogJudge(**values)
    _check(judge, where)
    return judge


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and text for text in value):
        raise CatalogError(f"{where} should be a list of texts, not {value!r}")
    return tuple(value)


def _by_form(value: Any, where: str) -> Mapping[Form, str]:
    if (
        not isinstance(value, dict)
        or not set(value) <= set(FORMS)
        or not all(isinstance(v, str) for v in value.values())
    ):
        raise CatalogError(f"{where} should be a table of texts for {', '.join(FORMS)}, not {value!r}")
    return MappingProxyType(value)


def _check(judge: CatalogJudge, where: str) -> None:
    if not _NAME.fullmatch(judge.name):
        raise CatalogError(f"{where}: the name may have letters, digits, dots, hyphens and underscores only")
    if judge.chat_template != "chatml":
        raise CatalogError(f"{where}: chat_template should be 'chatml', not {judge.chat_template!r}")
    if not judge.buildable:
        return
    pinned = [judge.sha256, *(source.sha256 for source in judge.sources), *judge.digests.values()]
    if wrong := [digest for digest in pinned if not _SHA256.fullmatch(digest)]:
        raise CatalogError(f"{where}: {wrong[0]!r} is not 64 hex characters")
    if judge.bytes <= 0 or judge.download_bytes <= 0 or judge.context_tokens <= 0:
        raise CatalogError(f"{where}: bytes, download_bytes and context_tokens should be positive")
    if set(judge.numeric_classes) != set(FORMS) or not judge.eos_tokens:
        raise CatalogError(
            f"{where}: a judge that can be built has numeric_classes for {', '.join(FORMS)} and eos_tokens"
        )
