"""Output that would destroy what the command reads."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gradewire.cli.input.records import STDIN
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_STDIN_DESCRIPTOR = 0


def refuse_clashes(outputs: Iterable[Path], option: str, inputs: Mapping[str, str | Path]) -> None:
    """Refuses to write over a file that is read, under whatever name: links of either kind are followed.

    Args:
        outputs: Files that may be written or removed; they need not exist.
        option: Option that named the first of them, for the message.
        inputs: Files that are read, by what the message calls them; "-" is standard input.

    Raises:
        InputError: An output is an input.
    """
    for output in outputs:
        written = _regular(output)
        if written is None:
            continue
        for name, path in inputs.items():
            read = _regular(path)
            if read is not None and os.path.samestat(written, read):
                raise InputError(f"{option}: {output} is {name} ({path}) itself: give another file")


def _regular(path: str | Path) -> os.stat_result | None:
    """What tells a regular file from another; None where there is none, or a device, which loses nothing."""
    try:
        found = os.fstat(_STDIN_DESCRIPTOR) if str(path) == STDIN else Path(path).stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
