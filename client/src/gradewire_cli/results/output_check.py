"""Refuses outputs that cannot be what was asked for, before anything is computed for them."""

import itertools
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import STDIN

_STDIN_DESCRIPTOR = 0
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "--csv": (".csv",),
    "--latex": (".tex", ".latex"),
    "--markdown": (".md", ".markdown", ".txt"),
    "--json": (".json",),
    "--manifest": (".json",),
    "--summary-json": (".json",),
    "--report": (".html", ".htm"),
    "--html": (".html", ".htm"),
}
"""How files of one format only are called; one without a suffix, and a device, may be called anything."""


def check_outputs(outputs: Iterable[tuple[str, Path | None]], inputs: Mapping[str, str | Path]) -> None:
    """Refuses outputs that would destroy a file, cannot be written, or are called like another format.

    Links of either kind are followed.

    Args:
        outputs: Option and file that may be written or removed; it need not exist, and None stands for no file.
        inputs: Files that are read, by what the message calls them; "-" is standard input.

    Raises:
        InputError: An output is an input or another option's output, its folder is not there, or its suffix says that
            it is of another format.
    """
    given = [(option, path) for option, path in outputs if path is not None]
    for option, path in given:
        _refuse_inputs(option, path, inputs)
        if not path.parent.is_dir():
            raise InputError(f"{option}: there is no folder {path.parent} for {path.name}: make it first")
        usual = _SUFFIXES.get(option)
        if usual is not None and path.suffix and path.suffix.lower() not in usual and not path.exists():
            raise InputError(f"{option} {path}: this file is no {path.suffix}: end its name in {' or '.join(usual)}")
    for (one, path), (other, same) in itertools.combinations(given, 2):
        if one != other and path.resolve() == same.resolve() and not _is_device(path):
            raise InputError(f"{one} and {other} both write {path}: give another file for one of them")


def _refuse_inputs(option: str, output: Path, inputs: Mapping[str, str | Path]) -> None:
    if (written := _regular(output)) is None:
        return
    for name, path in inputs.items():
        read = _regular(path)
        if read is not None and os.path.samestat(written, read):
            raise InputError(f"{option}: {output} is {name} ({path}) itself: give another file")


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _regular(path: str | Path) -> os.stat_result | None:
    """Identity of a regular file; None where there is no file, or a device, which loses nothing."""
    try:
        found = os.fstat(_STDIN_DESCRIPTOR) if str(path) == STDIN else Path(path).stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
