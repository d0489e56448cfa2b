"""Parts of a run's output. Each part is written atomically, on any fsspec file system."""

from __future__ import annotations

import contextlib
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gradewire_cli.problems import InputError, redacted_url
from gradewire_cli.results.journal import only_run, replacing
from gradewire_cli.rows.files import file_errors, file_system, local_path, protocols

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from gradewire_cli.rows.row import Row


_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "tos"})
"""fsspec protocols of object stores."""
_HIDDEN: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?P<kind>new|old)")


def is_object_store(system: Any) -> bool:
    """Return True if a file system is an object store, which has no folders and shows only complete files."""
    return not _OBJECT_STORES.isdisjoint(protocols(system))


def hidden_name(name: str, kind: str) -> str:
    """Return a unique temporary name. `kind` is "new" for a file to write, and "old" for the file that it replaces."""
    return f".{name}.{uuid.uuid4().hex}.{kind}"


def named_of(name: str) -> str:
    """Return the original name of a hidden file. Return other names unchanged."""
    hidden = _HIDDEN.fullmatch(name)
    return hidden["name"] if hidden else name


def write_atomically(system: Any, folder: str, name: str, data: bytes) -> None:
    """Write or replace a file.

    Object stores, and file systems that rename onto existing files (SFTP), show either the old file or the complete new
    file. On file systems that refuse to replace files (SMB, WebHDFS), the file is missing for a moment. If the process
    is killed at this moment, `put_back` restores the old file. On file systems that move by copying (fsspec's default),
    a killed process may leave only the new file's beginning.

    Raises:
        Exception: Any error of the file system. The old file still exists, unless the new file was copied over it.
    """
    target = f"{folder}/{name}"
    if is_object_store(system):
        system.pipe_file(target, data)
        return
    unfinished = f"{folder}/{hidden_name(name, 'new')}"
    try:
        system.pipe_file(unfinished, data)
        if _refused(system, unfinished, target, data):
            _replace(system, unfinished, target, f"{folder}/{hidden_name(name, 'old')}", data)
    except BaseException:
        with contextlib.suppress(Exception):  # report the first error
            system.rm_file(unfinished)
        raise


def put_back(system: Any, folder: str, names: AbstractSet[str]) -> None:
    """Restore the files that a killed process was replacing."""
    there = set(names)
    for hidden in sorted(names):
        if hidden.endswith(".old") and (name := named_of(hidden)) not in there:
            system.mv(f"{folder}/{hidden}", f"{folder}/{name}")
            there.add(name)


def _refused(system: Any, unfinished: str, target: str, data: bytes) -> bool:
    """Move a file to `target`. If `target` already has other content, leave it unchanged and return True."""
    try:
        system.mv(unfinished, target)
    except Exception:
        if not _exists(system, target):
            raise
        found = system.cat_file(target)
        if found != data and data.startswith(found):
            system.rm_file(target)  # the copy may be incomplete
            raise
    else:
        if not _exists(system, unfinished):
            return False
        found = system.cat_file(target)  # WebHDFS raises no error even if it moved nothing
    if found != data:
        return True
    # Another worker wrote the same content, or the source was copied but not removed.
    _remove(system, unfinished)
    return False


def _replace(system: Any, unfinished: str, target: str, aside: str, data: bytes) -> None:
    system.mv(target, aside)
    try:
        if _refused(system, unfinished, target, data):
            _remove(system, unfinished)  # keep the file of a faster worker
    except BaseException:
        with contextlib.suppress(Exception):
            system.mv(aside, target)
        raise
    _remove(system, aside)


def _exists(system: Any, path: str) -> bool:
    system.invalidate_cache()
    return bool(system.exists(path))


def _remove(system: Any, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        system.rm_file(path)


_NAME: Final = re.compile(r"part-(?P<file>\d+)-(?P<number>\d+)\.(?P<state>done|unanswered)\.jsonl")
_STOP: Final = "stop"
_LOCK: Final = "lock"
RUN_NAME: Final = "run.manifest.json"
FOLDER_MANIFEST: Final = "manifest.json"
_OWN_NAMES: Final = frozenset({_STOP, RUN_NAME, FOLDER_MANIFEST})


class PartId(NamedTuple):
    """The index of a part's input file, and the part's index in this file, both from 0."""

    file: int
    number: int

    def name(self, *, answered: bool) -> str:
        """Return the part's file name. `answered` means that no row needs to be scored again."""
        return f"part-{self.file:05d}-{self.number:07d}.{'done' if answered else 'unanswered'}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRows:
    """A part's rows, or [] if the part is finished."""

    part: PartId
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class PartStore:
    """The folder that contains a run's parts."""

    path_or_url: str

    @property
    def display_name(self) -> str:
        """The folder's path or URL, without keys in the URL."""
        return redacted_url(self.path_or_url)

    def create(self) -> None:
        """Create the folder if it is missing; raise InputError on failure."""
        system, path = file_system(self.path_or_url)
        # An object store would create a bucket.
        if not is_object_store(system):
            with file_errors(self.path_or_url):
                system.makedirs(path, exist_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder and lock it against other runs. Only folders on this machine can be locked.

        Another run may have finished before this run got the lock, so check everything again inside the block. A new
        folder that stays empty is removed at the end.

        Raises:
            InputError: Another run uses the folder.
        """
        local = local_path(self.path_or_url)
        if local is None:
            self.create()
            with file_errors(self.path_or_url):
                put_back(*file_system(self.path_or_url), self.names())
            yield
            return
        was_there = local.exists()
        try:
            with only_run(self.path_or_url, local / _LOCK, way_out="use another OUTPUT", make=self.create):
                yield
        finally:
            if not was_there:
                with contextlib.suppress(OSError):
                    local.rmdir()

    def names(self) -> set[str]:
        """Return the names of the folder's files except the lock."""
        system, path = file_system(self.path_or_url)
        with file_errors(self.path_or_url), contextlib.suppress(FileNotFoundError):
            system.invalidate_cache()
            return {str(found).rsplit("/", 1)[-1] for found in system.ls(path, detail=False)} - {_LOCK}
        return set()

    def parts(self) -> dict[PartId, bool]:
        """Return the existing parts. The value is True if all of the part's rows are answered."""
        found: dict[PartId, bool] = {}
        for name in self.names():
            if match := _NAME.fullmatch(name):
                part = PartId(int(match["file"]), int(match["number"]))
                found[part] = found.get(part, False) or match["state"] == "done"
        return found

    def write_part(self, part: PartId, data: bytes, *, answered: bool) -> None:
        """Write a part, and replace the part's earlier file; raise InputError on failure."""
        self.write(part.name(answered=answered), data)
        if answered:
            self.remove(part.name(answered=False))

    def read_part(self, part: PartId, *, answered: bool) -> bytes:
        """Return a part's bytes; raise InputError on failure."""
        return self.read(part.name(answered=answered))

    def read_latest(self, part: PartId) -> bytes:
        """Return a part's bytes, even if some of its rows are unanswered; raise InputError on failure."""
        # A killed worker may have written the answered file without reporting it.
        return self.read_part(part, answered=self.parts().get(part, False))

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file: durably in a folder on this machine, with `write_atomically` in any other folder."""
        with file_errors(f"{self.path_or_url}/{name}"):
            local = local_path(self.path_or_url)
            if local is None:
                system, path = file_system(self.path_or_url)
                write_atomically(system, path, name, data)
                return
            with replacing(local / name, unfinished=local / hidden_name(name, "new")) as unfinished:
                unfinished.write_bytes(data)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file in the folder; raise InputError on failure."""
        system, path = file_system(self.path_or_url)
        with file_errors(f"{self.path_or_url}/{name}"):
            return bytes(system.cat_file(f"{path}/{name}"))

    def remove(self, name: str) -> None:
        """Remove a file in the folder if it exists."""
        system, path = file_system(self.path_or_url)
        with file_errors(f"{self.path_or_url}/{name}"), contextlib.suppress(FileNotFoundError):
            system.rm_file(f"{path}/{name}")

    def empty(self) -> None:
        """Remove the run's files in an order that keeps the folder consistent if the process is killed."""
        order = {FOLDER_MANIFEST: 0, RUN_NAME: 2}
        for name in sorted(filter(_is_written_by_bulk, self.names()), key=lambda name: (order.get(name, 1), name)):
            self.remove(name)

    def remove_all(self) -> None:
        """Remove the run's files, then the folder if it is empty."""
        self.empty()
        system, path = file_system(self.path_or_url)
        if local_path(self.path_or_url) is None and "/" not in path.strip("/"):
            return  # never remove a bucket
        with contextlib.suppress(InputError):
            self.remove(_LOCK)
            with file_errors(self.path_or_url):
                system.rmdir(path)

    def request_stop(self) -> None:
        """Tell all workers to start no more parts."""
        self.write(_STOP, b"")

    def forget_stop(self) -> None:
        """Withdraw an earlier run's stop request."""
        self.remove(_STOP)

    def is_stopping(self) -> bool:
        """Return True if workers must start no more parts."""
        system, path = file_system(self.path_or_url)
        with file_errors(self.path_or_url):
            return _exists(system, f"{path}/{_STOP}")


def _is_written_by_bulk(name: str) -> bool:
    written = named_of(name)
    return written in _OWN_NAMES or _NAME.fullmatch(written) is not None


def missing_parts(found: Collection[PartId], parts_by_file: Mapping[int, int]) -> list[PartId]:
    """Return the missing parts, given each file's number of parts."""
    wanted = (PartId(file, number) for file, parts in parts_by_file.items() for number in range(parts))
    return [part for part in wanted if part not in found]


def parts_folder(output: str) -> str:
    """Return the folder for an output's parts: OUTPUT.parts, or OUTPUT if it is a folder."""
    return output.rstrip("/") if is_folder(output) else f"{output}.parts"


def is_folder(output: str) -> bool:
    """Return True if an output ends in /, which makes it a folder of parts."""
    return output.endswith("/")


def check_parts_folder(store: PartStore) -> None:
    """Raise InputError if a folder contains files that bulk did not write."""
    strange = sorted(name for name in store.names() if not (_is_written_by_bulk(name) or name.startswith(".")))
    if strange:
        raise InputError(f"{store.path_or_url} has files that bulk did not write ({strange[0]}). Use another OUTPUT")
