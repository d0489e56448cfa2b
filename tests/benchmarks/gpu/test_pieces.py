"""A pack's way to the GPU machine: archives, parts, joined parts. `benchmarks/gpu.sh` itself joins them."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.gpu.pieces import SUMS, archive, cut
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
# It stands for the machine's Python, and reports how it was started.
PYTHON = '#!/bin/sh\necho "$PYTHONPATH|$*"\n'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with the script, a Python that only reports, and a pack in parts of 1 000 bytes."""
    machine = tmp_path / "machine"
    (machine / "benchmarks").mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks" / "gpu.sh", machine / "benchmarks")
    (machine / "python").write_text(PYTHON)
    (machine / "python").chmod(0o755)
    pack(tmp_path / "scratch", machine / ".gpu-pack", b"first")
    return machine


def pack(scratch: Path, into: Path, mark: bytes) -> list[Path]:
    """Pack two directories `site` and one `models`, as a real pack has them."""
    into.mkdir(exist_ok=True)
    archives = []
    for number, (name, file) in enumerate((("site", "python-version"), ("site", "other.py"), ("models", "weights"))):
        directory = scratch / str(number) / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / file).write_bytes(os.urandom(2_000) + mark)
        archives.append(scratch / f"{number}.tar.xz")
        assert archive(directory, archives[-1]) == archives[-1].stat().st_size
    return cut(archives, into, 1_000)


def run(machine: Path, *, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    given = {"PATH": path, "PYTHON": str(machine / "python")}
    command = ["bash", str(machine / "benchmarks" / "gpu.sh"), "run", "--option"]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def test_the_script_joins_the_parts_and_starts_the_run(machine: Path) -> None:
    parts = sorted((machine / ".gpu-pack").glob("part-*"))
    assert len(parts) > 3
    assert all(part.stat().st_size <= 1_000 for part in parts)
    done = run(machine)
    assert done.returncode == 0, done.stderr
    pythonpath, _, arguments = done.stdout.partition("|")
    assert arguments == "-m benchmarks.gpu.run --option\n"
    assert pythonpath.split(":")[:2] == [f"{machine}/.gpu-pack/gpu-site", f"{machine}/.gpu-pack/site"]
    for inside in ("site/python-version", "site/other.py", "models/weights"):
        assert (machine / ".gpu-pack" / inside).read_bytes().endswith(b"first")


def test_parts_are_joined_again_only_if_the_pack_is_another(machine: Path, tmp_path: Path) -> None:
    weights = machine / ".gpu-pack" / "models" / "weights"
    run(machine)
    weights.write_bytes(b"changed")
    run(machine)
    assert weights.read_bytes() == b"changed"
    pack(tmp_path / "scratch", machine / ".gpu-pack", b"second")
    run(machine)
    assert weights.read_bytes().endswith(b"second")


def test_each_part_that_is_missing_or_broken_is_named(machine: Path) -> None:
    missing, broken, *_ = sorted((machine / ".gpu-pack").glob("part-*"))
    content = broken.read_bytes()
    missing.unlink()
    broken.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    done = run(machine)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        ".gpu-pack/part-001 is missing: copy it",
        ".gpu-pack/part-002 is broken: copy it again",
    ]
    assert not (machine / ".gpu-pack" / "site").exists()


def test_without_a_pack_the_script_says_what_to_copy(machine: Path) -> None:
    (machine / ".gpu-pack" / SUMS).unlink()
    done = run(machine)
    assert (done.returncode, done.stdout) == (3, "")
    assert ".gpu-pack/parts.sha256 is missing: copy .gpu-pack from the machine" in done.stderr


def test_a_machine_without_xz_joins_the_parts_with_its_python(machine: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "cat", "tar", "sha256sum", "cmp", "cp", "rm", "timeout", "grep"):
        (tools / name).symlink_to(str(shutil.which(name)))
    real = f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\n'
    (machine / "python").write_text(real + PYTHON.partition("\n")[2])
    done = run(machine, path=str(tools))
    assert done.returncode == 0, done.stderr
    assert (machine / ".gpu-pack" / "models" / "weights").read_bytes().endswith(b"first")


def test_libraries_of_the_machines_torch_are_put_beside_onnx_runtime(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "gpu" / "gpu-site").mkdir(parents=True)
    (tmp_path / "gpu" / "gpu-site" / "onnxruntime.py").touch()
    libraries = tmp_path / "torch-site" / "nvidia"
    libraries.mkdir(parents=True)
    (machine / "python").write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && PYTHONPATH={libraries.parent} exec {sys.executable} "$@"\n'
    )
    archives = [tmp_path / "gpu.tar.xz"]
    archive(tmp_path / "gpu" / "gpu-site", archives[0])
    cut(archives, machine / ".gpu-pack", 1_000)
    run(machine)
    assert (machine / ".gpu-pack" / "gpu-site" / "nvidia").resolve() == libraries


@given(contents=st.lists(st.binary(max_size=60), max_size=4), part_bytes=st.integers(1, 40))
def test_parts_hold_all_bytes_in_order(
    contents: list[bytes], part_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("cut")
    archives = [directory / f"{number}.archive" for number in range(len(contents))]
    for path, content in zip(archives, contents, strict=True):
        path.write_bytes(content)
    parts = cut(archives, directory, part_bytes)
    joined = b"".join(part.read_bytes() for part in parts)
    assert joined == b"".join(contents)
    assert all(part.stat().st_size == part_bytes for part in parts[:-1])
    assert all(0 < part.stat().st_size <= part_bytes for part in parts)
    lines = (directory / SUMS).read_text().splitlines()
    assert lines == [f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {part.name}" for part in parts]
    assert not any(path.exists() for path in archives)


def test_a_part_needs_room(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one byte"):
        cut([], tmp_path, 0)
