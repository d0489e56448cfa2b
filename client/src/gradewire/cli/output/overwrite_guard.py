"""Refuses an output that would overwrite what the command reads."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from gradewire.cli.input.opening import STDIN
from gradewire.cli.problems import InputError

_STDIN_DESCRIPTOR = 0


def refuse_overwriting(outputs: Iterable[tuple[str, Path | None]], inputs: Mapping[str, str | Path]) -> None:
    """Refuses to write over a file that is read, under whatever name: links of either kind are followed.

    Args:
        outputs: Option and file that may be written or removed; it need not exist, and None stands for no file.
        inputs: Files that are read, by what the message calls them; "-" is standard input.

    Raises:
        InputError: An output is an input.
    """
    for option, output in outputs:
        written = None if output is None else _regular(output)
        if written is None:
            continue
        for name, path in inputs.items():
            read = _regular(path)
            if read is not None and os.path.samestat(written, read):
                raise InputError(f"{option}: {output} is {name} ({path}) itself: give another file")


def _regular(path: str | Path) -> os.stat_result | None:
    """Identity of a regular file; None where there is no file, or a device, which loses nothing."""
    try:
        found = os.fstat(_STDIN_DESCRIPTOR) if str(path) == STDIN else Path(path).stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
