"""Files that take a name are on the disk first, and so is the name."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest
from tests.support.syncs import Syncs

from gradewire.manifests.durable import replace_synced

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced there")


@POSIX
def test_a_file_is_on_the_disk_before_it_takes_its_name_and_the_name_before_it_is_told(
    tmp_path: Path, syncs: Syncs
) -> None:
    path, unfinished = tmp_path / "out", tmp_path / "out.new"
    path.write_bytes(b"old")
    unfinished.write_bytes(b"the whole")
    replace_synced(unfinished, path)
    assert path.read_bytes() == b"the whole"
    assert not unfinished.exists()
    assert syncs.calls == [("out.new", 9, {"out", "out.new"}), (tmp_path.name, None, {"out"})]


@POSIX
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_folders_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fsync = os.fsync

    def refuse(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(opened)

    monkeypatch.setattr(os, "fsync", refuse)
    (tmp_path / "new").write_bytes(b"new")
    replace_synced(tmp_path / "new", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"


@POSIX
def test_a_disk_that_does_not_take_the_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def fail(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(opened)

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "new").write_bytes(b"new")
    with pytest.raises(OSError, match="Input/output error"):
        replace_synced(tmp_path / "new", tmp_path / "out")


def test_a_disk_that_does_not_take_the_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "out").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"new")
    with pytest.raises(OSError, match="No space left on device"):
        replace_synced(tmp_path / "new", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"old"
