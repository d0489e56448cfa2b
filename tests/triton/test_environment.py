"""The environment is made once, whoever asks and however an earlier try ended."""

import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradewire_models.runtime import onnxruntime
from gradewire_triton import EnvironmentBrokenError, environment
from gradewire_triton.environment import MARKER_FILE, default_environment, ensure_environment


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Installing puts an empty environment in place; what was installed is listed."""
    made: list[Path] = []

    def install(target: Path, report: environment.Report) -> None:
        report("installing")
        (target / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
        (target / MARKER_FILE).write_text(environment.fingerprint())
        made.append(target)

    monkeypatch.setattr(environment, "_install", install)
    return made


def silent(_line: str) -> None:
    pass


def test_what_it_makes_runs_the_server_with_the_same_onnx_runtime_as_this_process() -> None:
    made = ensure_environment(report=print)
    done = subprocess.run([made.server, "--help"], env=made.variables(), capture_output=True, text=True, check=False)
    assert "--model-control-mode" in done.stdout + done.stderr
    program = "import onnxruntime, numpy; print(onnxruntime.__version__, numpy.__version__)"
    command = [made.directory / "bin" / "python", "-c", program]
    there, numpy = subprocess.check_output(command, env=made.variables(), text=True).split()
    assert there == onnxruntime.__version__
    assert numpy.startswith("1.")


def test_a_finished_environment_is_found_without_a_word(tmp_path: Path, installs: list[Path]) -> None:
    said: list[str] = []
    for _ in range(2):
        assert ensure_environment(tmp_path / "env", report=said.append).directory == tmp_path / "env"
    assert len(installs) == len(said) == 1


def test_two_at_once_install_once(tmp_path: Path, installs: list[Path]) -> None:
    threads = [
        threading.Thread(target=ensure_environment, args=(tmp_path / "env",), kwargs={"report": silent})
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(installs) == 1


@pytest.mark.usefixtures("installs")
def test_what_an_interrupted_install_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".env.building-abc" / "new").mkdir(parents=True)
    ensure_environment(tmp_path / "env", report=silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env.lock", "env"]


def test_an_install_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_venv(target: Path) -> None:
        # Real pip, without the seconds that a virtual environment takes.
        program = target / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\nexec {sys.executable} $@")
        program.chmod(0o755)

    monkeypatch.setattr(environment, "_make_venv", make_venv)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(EnvironmentBrokenError, match="No matching distribution"):
        ensure_environment(tmp_path / "env", report=silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env.lock"]


def test_an_outdated_environment_is_replaced(tmp_path: Path, installs: list[Path]) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / MARKER_FILE).write_text("of an older gradewire")
    ensure_environment(tmp_path / "env", report=silent)
    assert len(installs) == 1
    assert (tmp_path / "env" / MARKER_FILE).read_text() == environment.fingerprint()


def test_a_directory_of_other_files_is_not_touched(tmp_path: Path, installs: list[Path]) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(EnvironmentBrokenError, match="contains files"):
        ensure_environment(tmp_path, report=silent)
    assert (tmp_path / "thesis.tex").exists()
    assert installs == []


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentBrokenError, match="file"):
        ensure_environment(tmp_path / "file" / "env", report=silent)


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("system", "Darwin", "this machine has Darwin"),
        ("machine", "aarch64", "on aarch64"),
        ("libc_ver", ("glibc", "2.31"), "glibc 2.31"),
        ("libc_ver", ("", ""), "another C library"),
    ],
)
def test_a_machine_without_a_wheel_is_told_so(
    what: str, value: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, what, lambda: value)
    with pytest.raises(EnvironmentBrokenError, match=said):
        ensure_environment(tmp_path / "env", report=silent)


def test_an_interpreter_without_a_wheel_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 13, 0, "final", 0))
    with pytest.raises(EnvironmentBrokenError, match=r"CPython 3\.11 or 3\.12"):
        ensure_environment(tmp_path / "env", report=silent)


def test_the_variable_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = default_environment()
    monkeypatch.setenv("GRADEWIRE_TRITON_ENVIRONMENT", str(tmp_path / "elsewhere"))
    assert default_environment() == tmp_path / "elsewhere"
    assert usual != tmp_path / "elsewhere"


def test_the_lock_pins_every_package_with_hashes() -> None:
    lock = environment.lock_text()
    requirements = [line for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
    assert {line.partition("==")[0] for line in requirements} >= {"nvidia-pytriton", "numpy", "onnxruntime"}
    assert all("==" in line and line.endswith("\\") for line in requirements)
