"""A journal has whole lines alone, whatever breaks, and one writer."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows
from tests.cli.results.test_resumable_output_errors import PROGRAM
from tests.support.syncs import Syncs

from gradewire_cli.problems import InputError
from gradewire_cli.results import journal as journal_module
from gradewire_cli.results.journal import Journal, identity_differences, refuse_other_run, whole_lines
from gradewire_cli.results.resumable_output import read_results

ROOT = Path(__file__).parents[3]
HOLDER = """
import sys, time
from pathlib import Path
from gradewire_cli.results.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    journal.begin()
    journal.write(b"one\\n")
    time.sleep(60)
"""


def test_whole_lines_leave_out_a_torn_one() -> None:
    assert list(whole_lines([b"a\n", b"bc\n", b"to"])) == [(1, 2, b"a\n"), (2, 5, b"bc\n")]
    assert list(whole_lines([])) == []


def test_a_run_goes_on_behind_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\ntwo\nto")
    with Journal(path) as journal:
        journal.begin(4)
        journal.write(b"three\nfour\n")
        journal.finish()
    assert path.read_bytes() == b"one\nthree\nfour\n"
    with Journal(path) as journal:
        journal.begin()
        assert not path.read_bytes()
        journal.replace([b"1\n", b"2\n"])
        journal.write(b"3\n")
    assert path.read_bytes() == b"1\n2\n3\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("room", range(14))
def test_a_disk_that_is_full_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    path = tmp_path / "out"
    with Journal(path) as journal:
        journal.begin()
        journal.write(b"zero\n")
        stream = journal._stream
        assert stream is not None

        class Full:
            """Takes two bytes at a time, until there is no more room."""

            left = room

            def write(self, data: bytes) -> int:
                if not self.left:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                count = stream.write(data[: min(2, self.left)])
                self.left -= count
                return count

            truncate = staticmethod(stream.truncate)
            close = staticmethod(stream.close)

        monkeypatch.setattr(journal, "_stream", Full())
        with pytest.raises(InputError, match="No space left on device; use --resume to continue"):
            journal.write(b"one\ntwo\nthree\n" + b"x" * 20)
        Full.left = 0
        monkeypatch.setattr(journal, "_stream", stream)
        lines = b"".join([b"one\n" * (room >= 4), b"two\n" * (room >= 8)])
        assert path.read_bytes() == b"zero\n" + lines
        journal.write(b"again\n")
    assert path.read_bytes() == b"zero\n" + lines + b"again\n"


def test_a_file_that_may_not_grow_is_cut_at_a_whole_row_and_gone_on_with(tmp_path: Path) -> None:
    rows = [{"references": ["a"], "prediction": "x" * (index % 7 + 1)} for index in range(500)]
    file, out = write_rows(tmp_path / "a.jsonl", rows), tmp_path / "out.jsonl"

    def gradewire(*options: str, at_most: int = resource.RLIM_INFINITY) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "score", file, "--out", out, "--quiet", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (at_most, at_most)),
        )
        return done.returncode, done.stderr

    code, said = gradewire(at_most=10_001)
    assert (code, said) == (2, f"Error: {out}: File too large; use --resume to continue\n")
    broken = out.read_bytes()
    assert broken.endswith(b"\n")
    assert 9_000 < len(broken) <= 10_001
    assert gradewire("--resume") == (0, "")
    assert out.read_bytes().startswith(broken)
    assert [row["index"] for _, row in read_results(out)] == list(range(500))


def test_a_second_run_is_told_whose_file_it_is_until_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first = subprocess.Popen([sys.executable, "-c", HOLDER, path], cwd=ROOT)
    try:
        give_up = time.monotonic() + 60
        while not path.exists() or not path.read_bytes():
            assert first.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.01)
        said = rf"another run is writing to {path} \(process {first.pid} on \S+\)\. Wait until that run ends, or use"
        with pytest.raises(InputError, match=said), Journal(path):
            pass
        assert path.read_bytes() == b"one\n"
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    with Journal(path) as journal:
        journal.begin(4)
        journal.write(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["score", "compare", "leaderboard"])
def test_a_command_does_not_write_where_another_run_does(tmp_path: Path, command: Command, name: str) -> None:
    rows = [{"question": f"{number}?", "references": ["a"], "prediction": "x" * (number + 1)} for number in range(5)]
    files = [write_rows(tmp_path / f"{name}.jsonl", rows) for name in ("one", "two")]
    out = tmp_path / "out.jsonl"
    for resume in ([], ["--resume"]):
        with Journal(out):
            done = command(name, *files, "--out", out, *resume, "--quiet")
        assert (done.exit_code, f"another run is writing to {out} (process {os.getpid()}" in done.stderr) == (
            2,
            True,
        )
        assert not out.exists()
    for resume in ([], ["--resume"], ["--resume"]):
        done = command(name, *files, "--out", out, *resume, "--quiet")
        assert done.exit_code == 0, done.output
    assert not list(tmp_path.glob("*.lock"))


_SLOW = """
import functools, sys
from gradewire_cli import group
from gradewire.testing import StubTransport
from tests.cli.conftest import answer
def slow(request):
    if request.items:
        print("asked", flush=True)
        sys.stdin.readline()
    return answer(request)
group.gradewire.main = functools.partial(group.gradewire.main, obj=StubTransport(slow))
group.main()
"""


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_of_two_runs_on_a_new_output_the_second_is_told_the_number_of_the_first(tmp_path: Path, suffix: str) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", [{"references": ["a"], "prediction": "b"}]), tmp_path / f"out{suffix}"
    arguments = ["score", file, "--out", out, "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "asked\n"
        for options in ([], ["--resume"], ["--overwrite"]):
            command = [sys.executable, "-c", PROGRAM, *arguments, *options]
            second = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
            assert second.returncode == 2
            assert "another run is writing to " in second.stderr
            assert f"(process {first.pid} on " in second.stderr
        first.communicate("\n")
    assert first.returncode == 0
    assert out.read_bytes()
    assert not list(tmp_path.glob("*.lock"))


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"")
    link.symlink_to(path)
    with Journal(path), pytest.raises(InputError, match="another run is writing to"), Journal(link):
        pass


def test_a_lock_that_was_removed_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, begun, removed = tmp_path / "out", os.open, []

    def opened(lock: Path, flags: int, mode: int = 0o777) -> int:
        found = begun(lock, flags, mode)
        if not removed:
            # The run before ends between the opening of the file and the lock.
            removed.append(lock)
            Path(lock).unlink()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(journal_module.os, "open", opened)
        with Journal(path):
            assert removed
            with pytest.raises(InputError, match="another run is writing to"), Journal(path):
                pass
    assert not list(tmp_path.iterdir())


def test_finished_lines_outlast_a_power_cut(tmp_path: Path, syncs: Syncs) -> None:
    with Journal(tmp_path / "out") as journal:
        journal.begin()
        journal.write(b"one\n")
        before = len(syncs.calls)
        journal.finish()
    assert len(syncs.calls) == before + 1


def test_what_differs_is_named_with_the_way_out() -> None:
    refuse_other_run("out", identity_differences({"by": "a", "more": 1}, {"by": "a"}))
    with pytest.raises(InputError) as refused:
        refuse_other_run("out", identity_differences({"by": "a"}, {"by": "b", "tie_margin": 0.0}))
    assert str(refused.value) == (
        "--resume: out was made with other settings: by was a, now b; tie_margin was nothing, now 0.0. To go on, "
        "use the same settings, another --out, or --overwrite"
    )
