"""Files that a run writes: refused before it begins, kept from other runs, and found again after a break.

A line is there as a whole or not at all: a write that fails is taken back to the last whole line, and what a kill
leaves of a line is cut off when the next run goes on.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import socket
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from gradewire_cli.problems import InputError, named_errors
from gradewire_cli.rows.files import STDIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from io import FileIO


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
"""Suffixes of files of one format only; a file without a suffix, and a device, may have any name."""
WAY_ON: Final = "--resume goes on from what is there"
WAY_OUT: Final = "give the same, another --out, or --overwrite"
_OWNER_BYTES: Final = 300
_NOT_SYNCED: Final = frozenset({errno.EINVAL, errno.ENOTSUP})
"""Errors of pipes and devices, which have nothing to sync."""
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.ENOSYS})
"""Errors of opening or syncing a folder where the file system, or a folder that may not be read, has no such
thing: then the file system alone decides when a new name lasts."""


def check_outputs(outputs: Iterable[tuple[str, Path | None]], inputs: Mapping[str, str | Path]) -> None:
    """Refuse outputs that would destroy a file, cannot be written, or are called like another format.

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
    """Return identity of a regular file; None where there is no file, or a device, which loses nothing."""
    try:
        found = os.fstat(_STDIN_DESCRIPTOR) if str(path) == STDIN else Path(path).stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def files_of(path: Path) -> tuple[Path, Path, Path, Path]:
    """Return the output file, FILE.resume beside it, the name under which that is made, and FILE.lock."""
    aside = path.with_name(path.name + ".resume")
    followed = path.resolve()
    return path, aside, aside.with_name(aside.name + ".new"), followed.with_name(followed.name + ".lock")


def refuse_existing(*outputs: Path | None) -> None:
    """Refuse to write over outputs, or over what waits beside one; raises InputError."""
    for output in outputs:
        there = () if output is None else files_of(output)[:2]
        if found := [path for path in there if path.exists()]:
            raise InputError(f"{found[0]} is there already: give --resume to go on with it, or --overwrite")


def refuse_other_run(output: object, differences: Iterable[str], *, way_out: str = WAY_OUT) -> None:
    """Refuse an output that another run has made, where there are differences between the two; raises InputError."""
    if listed := list(differences):
        raise InputError(f"--resume: {output} was made otherwise: {'; '.join(listed)}: {way_out}")


def identity_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield in what two runs differ: of `here` every value that is another one, or none, in `there`."""
    for name, value in here.items():
        if there.get(name) != value:
            yield f"{name} was {shown_value(there.get(name))} and is {shown_value(value)}"


def shown_value(value: Any) -> str:
    """Return a value as messages have it."""
    return "nothing" if value in (None, "", [], {}) else str(value)


def whole_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield whole lines with their numbers, from 1, and their ends in bytes; a torn last line is left out."""
    end = 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        end += len(line)
        yield number, end, line


@contextlib.contextmanager
def only_run(
    output: object, lock: Path, *, way_out: str = "give another --out", make: Callable[[], object] | None = None
) -> Iterator[None]:
    """Keep other runs away from an output; the kernel lets them in when this process ends, however it ends.

    Args:
        output: The output as people call it.
        lock: File that says who writes there; gone at the end.
        way_out: What to do beside waiting.
        make: Makes the folder of `lock`, which a run that ends may remove.
    """
    if sys.platform == "win32":
        if make is not None:
            make()
        yield
        return
    held = _locked(output, lock, way_out, make)
    try:
        yield
    finally:
        if _is_file(lock, held):
            lock.unlink(missing_ok=True)
        os.close(held)


def _locked(output: object, lock: Path, way_out: str, make: Callable[[], object] | None) -> int:
    import fcntl  # noqa: PLC0415 - not on Windows

    while True:
        if make is not None:
            make()
        with named_errors(lock):
            try:
                held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                if make is None:
                    raise
                continue  # a run that ended just now has removed the folder
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(held, _OWNER_BYTES, 0).decode(errors="replace") or "whose number is not known yet"
            os.close(held)
            raise InputError(
                f"{output}: another run writes there (process {owner}): wait for its end, or {way_out}"
            ) from None
        except OSError:
            pass  # a network file system without locks keeps nobody out
        if _is_file(lock, held):
            os.ftruncate(held, 0)
            os.pwrite(held, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)
            return held
        os.close(held)  # removed since it was opened: its lock keeps nobody out


def _is_file(path: Path, opened: int) -> bool:
    """Tell whether a path still leads to an opened file."""
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def replacing(path: Path, *, unfinished: Path | None = None) -> Iterator[Path]:
    """Give the name to write a file under, and the file its own name then: all or nothing, power cuts included.

    At the end other files may be removed for which this one stands.

    Args:
        path: Its name.
        unfinished: Its name until all is there; None: PATH.new. It is gone at the end, whatever happens.

    Raises:
        OSError: The disk does not take it; under the name is what was there, or the whole new file.
    """
    new = unfinished or path.with_name(f"{path.name}.new")
    try:
        yield new
        # Windows syncs what may be written alone.
        with new.open("r+b") as stream:
            os.fsync(stream.fileno())
        new.replace(path)
        _sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    if sys.platform == "win32":  # has folders that cannot be opened, and journals names
        return
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        if error.errno not in _FOLDER_NOT_SYNCED:
            raise


@dataclass(slots=True)
class Journal:
    """A file that lines are added to; use it with `with`, which keeps other runs away."""

    path: Path
    _stream: FileIO | None = None
    _end: int = 0
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        # A device is nobody's alone, and has no place beside it.
        if self.path.is_file() or not self.path.exists():
            self._held.enter_context(only_run(self.path, files_of(self.path)[3]))
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.close()
        self._held.close()

    def begin(self, at: int = 0) -> None:
        """Open the file to add lines behind its first `at` bytes; the others are cut off."""
        with named_errors(self.path):
            self._stream = self.path.open("ab", buffering=0)
            self._end = at
            if os.fstat(self._stream.fileno()).st_size > at:
                self._stream.truncate(at)

    def write(self, lines: bytes) -> None:
        """Add lines, which are with the operating system when this returns.

        Raises:
            InputError: The file cannot be written, for instance because the disk is full; it has whole lines alone.
        """
        if self._stream is None:
            raise RuntimeError("begin the file first")
        written = 0
        with named_errors(self.path, hint=WAY_ON):
            try:
                while written < len(lines):
                    written += self._stream.write(lines[written:] if written else lines) or 0
            except BaseException:
                self._end += lines.rfind(b"\n", 0, written) + 1
                # A device has nothing to take back; of a disk that fails here too the next run cuts the torn line.
                with contextlib.suppress(OSError):
                    self._stream.truncate(self._end)
                raise
            self._end += len(lines)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Write the whole file anew, all or nothing; raises InputError where that cannot be."""
        with named_errors(self.path, hint=WAY_ON):
            with replacing(self.path) as unfinished, unfinished.open("wb") as stream:
                stream.writelines(lines)
            if self._stream is not None:
                self._stream.close()
        self.begin(self.path.stat().st_size)

    def finish(self) -> None:
        """Make the lines outlast a power cut; raises InputError where the disk does not take them."""
        if self._stream is not None:
            with named_errors(self.path, hint=WAY_ON):
                try:
                    os.fsync(self._stream.fileno())
                except OSError as error:
                    if error.errno not in _NOT_SYNCED:
                        raise
