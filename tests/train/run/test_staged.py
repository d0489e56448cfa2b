"""Files of a training appear together, or not at all."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gradewire_train.run.staged import remove_unfinished, staged

_WRITER = """
import sys
from pathlib import Path
from gradewire_train.run.staged import staged

with staged(Path(sys.argv[1])) as fresh:
    (fresh / "adapter_model.safetensors").write_text("weights")
    print("written", flush=True)
    sys.stdin.readline()
"""


def test_all_of_it_is_there_at_the_end_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "README.md").write_text("old")
    with staged(tmp_path) as fresh:
        (fresh / "README.md").write_text("new")
        (fresh / "1_Pooling").mkdir()
        (fresh / "1_Pooling" / "config.json").write_text("{}")
        (fresh / "model.safetensors").write_text("weights")
        assert (tmp_path / "README.md").read_text() == "old"
    found = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    written = {"README.md": "new", "1_Pooling/config.json": "{}", "model.safetensors": "weights"}
    assert found == {"mine.txt": "mine", **written}
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "README.md", "1_Pooling", "model.safetensors"}


def test_no_folder_of_anybody_else_goes(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "mine.txt").write_text("mine")
    with staged(tmp_path) as one, staged(tmp_path) as other:
        assert one != other
        (one / "README.md").write_text("new")
    assert (tmp_path / "unfinished" / "mine.txt").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"unfinished", "README.md"}


def test_after_an_error_nothing_of_it_is_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk"), staged(tmp_path) as fresh:  # noqa: PT012 - what is written before
        (fresh / "adapter_model.safetensors").write_text("weights")
        raise OSError("disk")
    assert list(tmp_path.iterdir()) == []


def test_no_old_weights_stand_beside_half_of_the_new(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").write_text("old")
    (tmp_path / "card.md").mkdir()  # in the way of the second file
    with pytest.raises(OSError, match="card"), staged(tmp_path) as fresh:  # noqa: PT012 - what is written before
        for name in ("adapter_config.json", "adapter_model.safetensors", "card.md"):
            (fresh / name).write_text("new")
    assert (tmp_path / "adapter_config.json").read_text() == "new"
    assert not (tmp_path / "adapter_model.safetensors").exists()


@contextmanager
def writer(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has written into its folder, and goes on when it is told to."""
    command = [sys.executable, "-c", _WRITER, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "written\n"
            yield process
        finally:
            process.kill()


def test_what_a_killed_process_left_goes_and_what_a_live_one_writes_arrives(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with writer(tmp_path) as killed:
        killed.kill()
        killed.wait()
    (left,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert left.name.startswith(".gradewire-unfinished-")
    with writer(tmp_path) as alive:
        remove_unfinished(tmp_path)
        assert not left.exists()
        assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
        alive.communicate("go on\n")
        assert alive.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "adapter_model.safetensors"}


def test_no_folder_goes_that_only_has_such_a_name(tmp_path: Path) -> None:
    for path in (tmp_path / ".gradewire-unfinished-thesis" / "mine.txt", tmp_path / "unfinished" / "lock"):
        path.parent.mkdir()
        path.write_text("mine")
    (tmp_path / ".gradewire-unfinished-file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    remove_unfinished(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
