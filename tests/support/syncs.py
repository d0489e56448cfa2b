"""What a test's folder would have after a power cut: which files and names were on the disk, and when."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(slots=True)
class Syncs:
    """Calls of fsync about files in a folder and about the folder.

    Attributes:
        folder: The one that is looked at.
        calls: In their order: name, bytes of the file (None: it is the folder itself), and all names there then.
    """

    folder: Path
    calls: list[tuple[str, int | None, set[str]]] = field(default_factory=list)

    def take(self, opened: int) -> None:
        """Notes a call."""
        told = os.fstat(opened)
        here = {path.name: path.stat() for path in self.folder.iterdir()}
        if stat.S_ISDIR(told.st_mode):
            if os.path.samestat(told, self.folder.stat()):
                self.calls.append((self.folder.name, None, set(here)))
            return
        for name, found in here.items():
            if os.path.samestat(told, found):
                self.calls.append((name, told.st_size, set(here)))

    def assert_lasts(self, path: Path) -> None:
        """Asserts that a file was whole on the disk, and its name after that."""
        size = path.stat().st_size
        files = [place for place, (_, bytes_, _) in enumerate(self.calls) if bytes_ == size]
        names = [place for place, (_, bytes_, there) in enumerate(self.calls) if bytes_ is None and path.name in there]
        assert size
        assert files
        assert names
        assert files[0] < names[-1]


@pytest.fixture
def syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Syncs:
    """Those of the test's own folder."""
    found, fsync = Syncs(tmp_path), os.fsync

    def noted(opened: int) -> None:
        found.take(opened)
        fsync(opened)

    monkeypatch.setattr(os, "fsync", noted)
    return found
