"""Check a run's output files, lock out other runs, and resume after an interruption.

Files keep only complete lines. A partial line is cut off after a failed write or by the next run.
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""Suffixes that each option accepts. Names without a suffix and existing paths (including devices) are accepted."""
WAY_ON: Final = "use --resume to continue"
WAY_OUT: Final = "use the same settings, another --out, or --overwrite"
_OWNER_BYTES: Final = 300
_NOT_SYNCED: Final = frozenset({errno.EINVAL, errno.ENOTSUP})
_FOLDER_NOT_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.ENOSYS})
"""Errors from syncing a folder that is unreadable, or whose file system cannot sync folders."""


def check_suffix(option: str, path: Path, usual: Sequence[str] | None) -> None:
    """Raise InputError if a new file has a suffix that is none of `usual`. None allows every suffix."""
    if usual is not None and path.suffix and path.suffix.lower() not in usual and not path.exists():
        raise InputError(
            f"{option} {path}: {path.suffix} means another format. Use a name that ends in {' or '.join(usual)}"
        )


def check_outputs(outputs: Iterable[tuple[str, Path | None]], inputs: Mapping[str, str | Path]) -> None:
    """Refuse outputs that would destroy a file, cannot be written, or have another format's suffix.

    Args:
        outputs: Pairs of an option and the file that the option may write or remove. Pairs with None are skipped.
        inputs: Input files by the name that messages use. "-" means standard input.

    Raises:
        InputError: An output is also an input or another output, its folder is missing, or its suffix belongs to
            another format.
    """
    given = [(option, path) for option, path in outputs if path is not None]
    for option, path in given:
        _refuse_inputs(option, path, inputs)
        if not path.parent.is_dir():
            raise InputError(f"{option}: folder {path.parent} does not exist. Create it first")
        check_suffix(option, path, _SUFFIXES.get(option))
    for (one, path), (other, same) in itertools.combinations(given, 2):
        if one != other and path.resolve() == same.resolve() and not _is_device(path):
            raise InputError(f"{one} and {other} both write {path}. Use different files")


def _refuse_inputs(option: str, output: Path, inputs: Mapping[str, str | Path]) -> None:
    if (written := _regular(output)) is None:
        return
    for name, path in inputs.items():
        read = _regular(path)
        if read is not None and os.path.samestat(written, read):
            raise InputError(f"{option}: {output} is also {name} ({path}). Use another file")


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _regular(path: str | Path) -> os.stat_result | None:
    """Return a regular file's identity. Return None for a missing file or a device, which no write can destroy."""
    try:
        found = os.fstat(_STDIN_DESCRIPTOR) if str(path) == STDIN else Path(path).stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def files_of(path: Path) -> tuple[Path, Path, Path, Path]:
    """Return the output file, FILE.resume, the temporary name of FILE.resume, and FILE.lock."""
    aside = path.with_name(path.name + ".resume")
    followed = path.resolve()
    return path, aside, aside.with_name(aside.name + ".new"), followed.with_name(followed.name + ".lock")


def refuse_existing(*outputs: Path | None) -> None:
    """Raise InputError if an output or its FILE.resume exists."""
    for output in outputs:
        there = () if output is None else files_of(output)[:2]
        if found := [path for path in there if path.exists()]:
            raise InputError(f"{found[0]} exists. Use --resume to continue it, or --overwrite")


def refuse_other_run(output: object, differences: Iterable[str], *, way_out: str = WAY_OUT) -> None:
    """Raise InputError if there are `differences` between the settings of an output and those of this run."""
    if listed := list(differences):
        raise InputError(f"--resume: {output} was made with other settings: {'; '.join(listed)}. To go on, {way_out}")


def identity_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for every value in `here` that differs from the value in `there`."""
    for name, value in here.items():
        if there.get(name) != value:
            yield f"{name} was {shown_value(there.get(name))}, now {shown_value(value)}"


def shown_value(value: Any) -> str:
    """Return a value in the format that messages use."""
    return "nothing" if value in (None, "", [], {}) else str(value)


def whole_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield each complete line with its number (from 1) and end offset in bytes. Skip a partial last line."""
    end = 0
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        end += len(line)
        yield number, end, line


@contextlib.contextmanager
def only_run(
    output: object, lock: Path, *, way_out: str = "use another --out", make: Callable[[], object] | None = None
) -> Iterator[None]:
    """Lock an output against other runs. The operating system releases the lock when this process ends.

    Args:
        output: The output's name in messages.
        lock: The lock file, which is removed at the end.
        way_out: The alternative to waiting that the message suggests.
        make: A function that creates the lock file's folder. Another run that ends may remove this folder.
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
        if _is_still(lock, held):
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
                continue  # a run that just ended removed the folder
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(held, _OWNER_BYTES, 0).decode(errors="replace") or "ID unknown"
            os.close(held)
            raise InputError(
                f"another run is writing to {output} (process {owner}). Wait until that run ends, or {way_out}"
            ) from None
        except OSError:
            pass  # network file systems may have no locks
        if _is_still(lock, held):
            os.ftruncate(held, 0)
            os.pwrite(held, f"{os.getpid()} on {socket.gethostname()}".encode(), 0)
            return held
        os.close(held)  # another run removed the file


def _is_still(path: Path, opened: int) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def replacing(path: Path, *, unfinished: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path. At the end, rename the file at the temporary path to `path`.

    Even after an error or a power cut, `path` is the old file or the complete new file. `unfinished` is the temporary
    path, by default PATH.new.

    Raises:
        OSError: The file cannot be written.
    """
    new = unfinished or path.with_name(f"{path.name}.new")
    try:
        yield new
        # Windows syncs only files that are open for writing.
        with new.open("r+b") as stream:
            os.fsync(stream.fileno())
        new.replace(path)
        _make_names_durable(path.parent)
    finally:
        new.unlink(missing_ok=True)


def _make_names_durable(folder: Path) -> None:
    if sys.platform == "win32":  # Windows makes names durable itself
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
    """A file to append lines to. Its `with` block locks out other runs."""

    path: Path
    _stream: FileIO | None = None
    _end: int = 0
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        if self.path.is_file() or not self.path.exists():
            self._held.enter_context(only_run(self.path, files_of(self.path)[3]))
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.close()
        self._held.close()

    def begin(self, at: int = 0) -> None:
        """Open the file for appending after its first `at` bytes, and cut off the rest."""
        with named_errors(self.path):
            self._stream = self.path.open("ab", buffering=0)
            self._end = at
            if os.fstat(self._stream.fileno()).st_size > at:
                self._stream.truncate(at)

    def write(self, lines: bytes) -> None:
        """Append lines, and pass them to the operating system; raise InputError on failure.

        After a failure, only complete lines remain.
        """
        if self._stream is None:
            raise RuntimeError("call begin before write")
        written = 0
        with named_errors(self.path, hint=WAY_ON):
            try:
                while written < len(lines):
                    written += self._stream.write(lines[written:] if written else lines) or 0
            except BaseException:
                self._end += lines.rfind(b"\n", 0, written) + 1
                with contextlib.suppress(OSError):
                    self._stream.truncate(self._end)
                raise
            self._end += len(lines)

    def replace(self, lines: Iterable[bytes]) -> None:
        """Rewrite the whole file or leave it unchanged; raise InputError on failure."""
        with named_errors(self.path, hint=WAY_ON):
            with replacing(self.path) as unfinished, unfinished.open("wb") as stream:
                stream.writelines(lines)
            if self._stream is not None:
                self._stream.close()
        self.begin(self.path.stat().st_size)

    def finish(self) -> None:
        """Make the lines durable; raise InputError if the disk fails."""
        if self._stream is not None:
            with named_errors(self.path, hint=WAY_ON):
                try:
                    os.fsync(self._stream.fileno())
                except OSError as error:
                    if error.errno not in _NOT_SYNCED:
                        raise
