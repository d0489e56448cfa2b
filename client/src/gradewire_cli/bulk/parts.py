"""Parts of a run: the finished pieces of its output, each written all or nothing, on any file system of fsspec."""

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
"""Protocols of fsspec where files have names alone, in buckets."""
_HIDDEN: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?P<kind>new|old)")


def is_object_store(system: Any) -> bool:
    """Tell whether a file system has no folders, and shows a file when all of it is there."""
    return not _OBJECT_STORES.isdisjoint(protocols(system))


def hidden_name(name: str, kind: str) -> str:
    """Return another name for a file, of this process alone: `new` while it is written, `old` while it is replaced."""
    return f".{name}.{uuid.uuid4().hex}.{kind}"


def named_of(name: str) -> str:
    """Return the name of the file that a kill left under this name; the same where it has its own."""
    hidden = _HIDDEN.fullmatch(name)
    return hidden["name"] if hidden else name


def write_atomically(system: Any, folder: str, name: str, data: bytes) -> None:
    """Write a file, in place of what has its name.

    An object store shows the old file or the whole new one; so does a file system that renames onto a file (SFTP). One
    that renames and refuses a name that is taken (SMB, WebHDFS) has a moment without the file: a kill then leaves the
    old one under a hidden name, from which `put_back` takes it. Where moving is copying (fsspec's default) the new file
    is copied over the old one: a reader may see its beginning, and a kill may leave that.

    Raises:
        Exception: Whatever the file system raises; the old file is there, unless it was being copied over.
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
        with contextlib.suppress(Exception):  # what failed is told, not that its rest stays
            system.rm_file(unfinished)
        raise


def put_back(system: Any, folder: str, names: AbstractSet[str]) -> None:
    """Give files that a kill left under a hidden name while they were replaced their own again."""
    there = set(names)
    for hidden in sorted(names):
        if hidden.endswith(".old") and (name := named_of(hidden)) not in there:
            system.mv(f"{folder}/{hidden}", f"{folder}/{name}")
            there.add(name)


def _refused(system: Any, unfinished: str, target: str, data: bytes) -> bool:
    """Move a file to its name; return whether another content has that and was not replaced."""
    try:
        system.mv(unfinished, target)
    except Exception:
        # What a name that is taken raises is another error on each file system.
        if not _exists(system, target):
            raise
        found = system.cat_file(target)
        if found != data and data.startswith(found):
            system.rm_file(target)  # a copy that broke off must not be taken for the file
            raise
    else:
        if not _exists(system, unfinished):
            return False
        found = system.cat_file(target)  # WebHDFS says nothing where it moves nothing
    if found != data:
        return True
    # Another worker has written the same, or what was copied could not be removed.
    _remove(system, unfinished)
    return False


def _replace(system: Any, unfinished: str, target: str, aside: str, data: bytes) -> None:
    """Move a file to a name that is taken."""
    system.mv(target, aside)
    try:
        if _refused(system, unfinished, target, data):
            _remove(system, unfinished)  # another worker was faster, and its file is as good
    except BaseException:
        with contextlib.suppress(Exception):  # what failed is told; `put_back` comes to it later
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
"""File of the folder that says what the parts are made with."""
FOLDER_MANIFEST: Final = "manifest.json"
"""The manifest of a finished run whose output is the folder."""
_OWN_NAMES: Final = frozenset({_STOP, RUN_NAME, FOLDER_MANIFEST})


class PartId(NamedTuple):
    """A part of the input, by the number of its file and its own number there, both from 0."""

    file: int
    number: int

    def name(self, *, answered: bool) -> str:
        """Return its file; `answered`: no row is to be scored again."""
        return f"part-{self.file:05d}-{self.number:07d}.{'done' if answered else 'unanswered'}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRows:
    """The rows of a part; none: it is done already."""

    part: PartId
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class PartStore:
    """The folder of a run's parts; opened by every process for itself."""

    path_or_url: str

    @property
    def display_name(self) -> str:
        """The place as people may see it: without keys of its URL."""
        return redacted_url(self.path_or_url)

    def create(self) -> None:
        """Make the folder where it is not there; raises InputError where it cannot."""
        system, path = file_system(self.path_or_url)
        # Where there are no folders it would make the bucket, whose name may be mistyped.
        if not is_object_store(system):
            with file_errors(self.path_or_url):
                system.makedirs(path, exist_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it while this is open: on this machine's file systems alone.

        What was looked at before has to be looked at again: another run may have ended since. A folder that was made
        here is gone at the end where nothing was written.

        Raises:
            InputError: Another run has it.
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
            with only_run(self.path_or_url, local / _LOCK, way_out="give another OUTPUT", make=self.create):
                yield
        finally:
            if not was_there:
                with contextlib.suppress(OSError):  # it has files, or is gone
                    local.rmdir()

    def names(self) -> set[str]:
        """Return the names of files in the folder but its lock; empty where it is not there."""
        system, path = file_system(self.path_or_url)
        with file_errors(self.path_or_url), contextlib.suppress(FileNotFoundError):
            system.invalidate_cache()
            return {str(found).rsplit("/", 1)[-1] for found in system.ls(path, detail=False)} - {_LOCK}
        return set()

    def parts(self) -> dict[PartId, bool]:
        """Return the parts that are there, and whether each is answered: of two files of a part the answered counts."""
        found: dict[PartId, bool] = {}
        for name in self.names():
            if match := _NAME.fullmatch(name):
                part = PartId(int(match["file"]), int(match["number"]))
                found[part] = found.get(part, False) or match["state"] == "done"
        return found

    def write_part(self, part: PartId, data: bytes, *, answered: bool) -> None:
        """Write a part in place of an earlier try of it; raises InputError."""
        self.write(part.name(answered=answered), data)
        if answered:
            self.remove(part.name(answered=False))

    def read_part(self, part: PartId, *, answered: bool) -> bytes:
        """Return the bytes of a part; raises InputError where it cannot be read."""
        return self.read(part.name(answered=answered))

    def read_latest(self, part: PartId) -> bytes:
        """Return the bytes of a part, answered since or not; raises InputError where it cannot be read."""
        # A worker may have been killed between writing the answered one and telling of it.
        return self.read_part(part, answered=self.parts().get(part, False))

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder, in place of what has its name.

        On this machine and in an object store a reader sees the old file or the whole new one, whatever happens; on
        other file systems as far as `write_atomically` says. On this machine it outlasts a power cut when this returns.
        """
        with file_errors(f"{self.path_or_url}/{name}"):
            local = local_path(self.path_or_url)
            if local is None:
                system, path = file_system(self.path_or_url)
                write_atomically(system, path, name, data)
                return
            with replacing(local / name, unfinished=local / hidden_name(name, "new")) as unfinished:
                unfinished.write_bytes(data)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file of the folder; raises InputError where it cannot be read."""
        system, path = file_system(self.path_or_url)
        with file_errors(f"{self.path_or_url}/{name}"):
            return bytes(system.cat_file(f"{path}/{name}"))

    def remove(self, name: str) -> None:
        """Remove a file of the folder where it is there."""
        system, path = file_system(self.path_or_url)
        with file_errors(f"{self.path_or_url}/{name}"), contextlib.suppress(FileNotFoundError):
            system.rm_file(f"{path}/{name}")

    def empty(self) -> None:
        """Remove the files that a run makes; other files stay.

        After a kill in between nothing calls the rest whole, and what its parts are made with still stands beside them.
        """
        order = {FOLDER_MANIFEST: 0, RUN_NAME: 2}
        for name in sorted(filter(_is_own, self.names()), key=lambda name: (order.get(name, 1), name)):
            self.remove(name)

    def remove_all(self) -> None:
        """Remove the folder with the files that a run makes; where it has others it stays with them."""
        self.empty()
        system, path = file_system(self.path_or_url)
        if local_path(self.path_or_url) is None and "/" not in path.strip("/"):
            return  # a bucket is not ours to remove
        # There may be something else in it, or it is not there.
        with contextlib.suppress(InputError):
            self.remove(_LOCK)
            with file_errors(self.path_or_url):
                system.rmdir(path)

    def request_stop(self) -> None:
        """Tell all workers to begin no further part."""
        self.write(_STOP, b"")

    def forget_stop(self) -> None:
        """Take that back, before a run begins."""
        self.remove(_STOP)

    def is_stopping(self) -> bool:
        """Tell whether workers are asked to begin no further part."""
        system, path = file_system(self.path_or_url)
        with file_errors(self.path_or_url):
            return _exists(system, f"{path}/{_STOP}")


def _is_own(name: str) -> bool:
    """Tell whether a run of bulk makes files of this name."""
    written = named_of(name)
    return written in _OWN_NAMES or _NAME.fullmatch(written) is not None


def missing_parts(found: Collection[PartId], parts_by_file: Mapping[int, int]) -> list[PartId]:
    """Return the parts that are not there, of files with so many parts each."""
    wanted = (PartId(file, number) for file, parts in parts_by_file.items() for number in range(parts))
    return [part for part in wanted if part not in found]


def parts_folder(output: str) -> str:
    """Return the folder of an output's parts: OUTPUT.parts beside it, and of an output that is a folder itself."""
    return output.rstrip("/") if is_folder(output) else f"{output}.parts"


def is_folder(output: str) -> bool:
    """Tell whether an output is a folder of parts, by its last character."""
    return output.endswith("/")


def check_parts_folder(store: PartStore) -> None:
    """Refuse a folder that has files of something else; raises InputError."""
    strange = sorted(name for name in store.names() if not (_is_own(name) or name.startswith(".")))
    if strange:
        raise InputError(f"{store.path_or_url} has files that no run of bulk wrote ({strange[0]}): give another OUTPUT")
