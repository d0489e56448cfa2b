"""An output that cannot be written is named, on one line; one that cannot be synced is fine."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.results.resumable_output import read_results
from gradewire_proto.v1 import scoring_pb2

ROWS = [{"references": ["a"], "prediction": "x" * (index % 7 + 1), "label": index % 2} for index in range(500)]
# The entry point itself with a stub behind it: what the interpreter says at its exit counts too.
PROGRAM = """
import functools
from gradewire_cli import group
from gradewire.testing import StubTransport
from tests.cli.conftest import answer
group.gradewire.main = functools.partial(group.gradewire.main, obj=StubTransport(answer))
group.main()
"""


def gradewire(*arguments: str | Path, stdout: str = "/dev/null") -> tuple[int, str]:
    with Path(stdout).open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdout"])
def test_devices_that_cannot_be_synced_are_fine(tmp_path: Path, device: str) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    assert gradewire("score", file, "--out", device, "--overwrite", "--quiet") == (0, "")


def test_a_full_device_is_named_with_the_way_on(tmp_path: Path) -> None:
    code, err = gradewire("score", write_rows(tmp_path / "a.jsonl", ROWS), "--out", "/dev/full", "--overwrite")
    said = "Error: /dev/full: No space left on device; use --resume to continue\n"
    assert (code, err) == (2, said)


@pytest.mark.parametrize("format_", ["jsonl", "table"])
def test_a_full_standard_output_is_named_with_the_way_out(tmp_path: Path, format_: str) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    code, err = gradewire("score", file, "--format", format_, stdout="/dev/full")
    way_out = "With --out FILE you can continue a run with --resume"
    assert (code, err) == (2, f"Error: standard output: No space left on device. {way_out}\n")


def test_figures_on_a_full_standard_output_are_one_line(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", ROWS)
    code, err = gradewire("agree", file, "--resamples", "100", "--quiet", stdout="/dev/full")
    assert (code, err) == (2, "Error: [Errno 28] No space left on device (writing to standard output)\n")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts, also where the tests were started in the background: a shell has them ignore it there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_counts_the_rows_of_the_file(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"

    def at_once(_: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        raise KeyboardInterrupt

    interrupts: list[int] = []

    def later(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        # Once: a second SIGINT while the first ends the run would reach the test's own process.
        if any(item.id == "300" for item in request.items) and not interrupts:
            interrupts.append(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return answer(request)

    done = command("score", file, "--out", out, stub=StubTransport(at_once))
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")
    done = command("score", file, "--out", out, stub=StubTransport(later))
    there = len(list(read_results(out)))
    assert 0 < there <= 300
    said = f"interrupted; {there} rows are in {out}. Continue with --resume\n"
    assert (done.exit_code, done.stderr) == (130, said)
    # Before a single row of the earlier run is looked at, they are there all the same.
    done = command("score", file, "--out", out, "--resume", stub=StubTransport(at_once))
    assert (done.exit_code, done.stderr) == (130, said)
