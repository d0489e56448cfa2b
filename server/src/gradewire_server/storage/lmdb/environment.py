"""One LMDB environment, opened so that a damaged file can neither crash the process nor answer wrongly.

LMDB trusts its file: a truncated or overwritten one can kill the process. So a file is looked at before LMDB sees it.
One that was closed cleanly and not touched since is trusted. Any other has every page verified, unless it is large and
survived no more than a crash of its process, which LMDB's order of writes makes harmless: then its size must be what
its meta pages promise.
"""

import json
import logging
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
from lmdb.verify import VerifyError, verify

_verify: Callable[[str], list[str]] = verify
_log = logging.getLogger(__name__)
_DATA, _STATE = "data.mdb", "state.json"
_QUICKLY_VERIFIED_BYTES = 64 << 20
"""Verifying takes 17 s a GiB; files up to this size are verified after every crash."""
_MAX_READERS = 512

# LMDB 0.9, 64 bit: page header (16 bytes), magic, version, address, map size, two database records of 48 bytes whose
# first begins with the page size, last page, transaction.
_META = struct.Struct("<16xII8x8xI92xQQ")


def open_environment(directory: Path, *, max_bytes: int, durable: bool, alone: bool) -> lmdb.Environment:
    """Opens an environment, or a new one in place of a damaged one.

    Args:
        directory: Its own; made if it is not there.
        max_bytes: Size of the map.
        durable: Whether a commit waits for the disk.
        alone: Whether no other process has it open, so that it may be verified and replaced.

    Raises:
        OSError: The directory cannot be made, read or written.
        lmdb.Error: LMDB cannot open it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if alone:
        damage = _damage(directory)
        if damage:
            set_aside(directory, damage, keep=durable)
    if alone or not (directory / _DATA).exists():
        _write_state(directory, clean=None)
    environment = lmdb.open(
        str(directory), map_size=max_bytes, sync=durable, metasync=durable, readahead=False, max_readers=_MAX_READERS
    )
    environment.reader_check()
    return environment


def data_file(directory: Path) -> Path:
    """The file that holds an environment's pages."""
    return directory / _DATA


def mark_clean(directory: Path) -> None:
    """Says of a closed environment that it is as it should be. Nobody may have it open."""
    if (directory / _DATA).exists():
        _write_state(directory, clean=_identity(directory / _DATA))


def mark_suspect(directory: Path) -> None:
    """Has an environment that misbehaved verified at its next opening."""
    (directory / _STATE).unlink(missing_ok=True)


def set_aside(directory: Path, damage: str, *, keep: bool) -> None:
    """Makes room for a new environment; what was meant to last is kept beside it for people to look at."""
    if keep:
        aside = directory.with_name(f"{directory.name}.damaged-{time.time_ns()}")
        directory.rename(aside)
        _log.error("%s was damaged (%s) and starts anew; the old files are in %s", directory, damage, aside)
    else:
        shutil.rmtree(directory)
        _log.warning("%s was damaged (%s) and starts anew", directory, damage)
    directory.mkdir()


def _damage(directory: Path) -> str:
    """What is wrong with the environment at rest, "" for nothing."""
    data = directory / _DATA
    if not data.exists():
        return ""
    if not data.stat().st_size:
        return "empty file"
    state = _read_state(directory)
    if state.get("clean") == _identity(data):
        return ""
    try:
        if state.get("boot") == _boot() and data.stat().st_size > _QUICKLY_VERIFIED_BYTES:
            return _truncation(data)
        problems = _verify(str(directory))
    except (VerifyError, ValueError, LookupError, ArithmeticError, struct.error) as error:
        return str(error) or type(error).__name__
    return problems[0] if problems else ""


def _truncation(data: Path) -> str:
    """Compares a file's size with its meta pages."""
    with data.open("rb") as file:
        first = _META.unpack(file.read(_META.size))
        file.seek(first[2])
        second = _META.unpack(file.read(_META.size))
    if first[:3] != second[:3]:
        return "meta pages disagree"
    _, _, page_bytes, last_page, _ = max(first, second, key=lambda meta: meta[4])
    expected = (last_page + 1) * page_bytes
    found = data.stat().st_size
    return "" if found >= expected else f"{found} bytes instead of {expected}"


def _identity(data: Path) -> list[int]:
    status = data.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _boot() -> str:
    """Names the time since the machine started; pages written before that may not have reached the disk in order."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read_state(directory: Path) -> dict[str, Any]:
    try:
        state = json.loads((directory / _STATE).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(directory: Path, *, clean: list[int] | None) -> None:
    (directory / _STATE).write_text(json.dumps({"boot": _boot(), "clean": clean}))
