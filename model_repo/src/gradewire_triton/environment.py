"""Install tritonserver's wheel into a virtual environment, and check that the machine can run it."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import platformdirs

from gradewire_models.errors import ModelError
from gradewire_models.locks import exclusive

# Python versions that NumPy 1, ONNX Runtime and Triton's Python backend all support.
_PYTHONS = ((3, 11), (3, 12))
_MINIMUM_GLIBC = (2, 35)

ENVIRONMENT_VARIABLE = "GRADEWIRE_TRITON_ENVIRONMENT"
MARKER_FILE = "gradewire-triton.sha256"

_SHOWN_LINES = 8

Report = Callable[[str], None]


class EnvironmentBrokenError(ModelError):
    """Raised when Triton's environment cannot be installed on this machine; the message states the reason."""


def check_machine() -> None:
    """Check that tritonserver's wheel supports this machine.

    Raises:
        EnvironmentBrokenError: The machine is not supported.
    """
    system, machine = platform.system(), platform.machine()
    libc, version = platform.libc_ver()
    glibc = tuple(int(part) for part in version.split(".")[:2]) if libc == "glibc" else (0, 0)
    if (system, machine) != ("Linux", "x86_64") or glibc < _MINIMUM_GLIBC:
        raise EnvironmentBrokenError(
            f"tritonserver's wheel needs Linux on x86-64 with glibc 2.35 or newer, but this machine has {system} on "
            f"{machine} with {libc or 'another C library'} {version}. Use NVIDIA's container (see "
            "docs/operate/triton-and-gpu.md)"
        )


def libpython_directory() -> Path:
    """Return the directory of this interpreter's shared library, which Triton's Python backend loads.

    Raises:
        EnvironmentBrokenError: The library is missing, or the backend does not support this Python.
    """
    if sys.version_info[:2] not in _PYTHONS:
        raise EnvironmentBrokenError(
            f"Triton's environment needs CPython 3.11 or 3.12, but this is {platform.python_version()}"
        )
    names = [sysconfig.get_config_var(name) for name in ("INSTSONAME", "LIBDIR", "MULTIARCH")]
    library, directory, multiarch = (str(name or "") for name in names)
    candidates = [Path(directory), Path(directory) / multiarch]
    for candidate in candidates:
        if library.startswith("libpython") and ".so" in library and (candidate / library).is_file():
            return candidate
    raise EnvironmentBrokenError(
        f"Triton's Python backend needs this Python's shared library, but {library or 'libpython'} is not in "
        f"{candidates[0]}. Install it (Debian: libpython3.11), or use a Python built with --enable-shared"
    )


@dataclass(frozen=True, slots=True)
class TritonEnvironment:
    """An installed virtual environment; `libpython_directory` contains the interpreter's shared library."""

    directory: Path
    site_packages: Path
    libpython_directory: Path

    @property
    def server(self) -> Path:
        """The program ``tritonserver``."""
        return self._triton / "bin" / "tritonserver"

    @property
    def python_backend(self) -> Path:
        """The directory of Triton's Python backend."""
        return self._triton / "backends" / "python"

    @property
    def python_stub(self) -> Path:
        """The program that Triton's Python backend starts for every model instance."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return self._triton / "python_backend_stubs" / version / "triton_python_backend_stub"

    def variables(self) -> dict[str, str]:
        """Return this process's environment variables with the server's library paths."""
        # The interpreter's library must be first. With the system's library, a stub would load the wrong standard
        # library.
        libraries = (self.libpython_directory, self.site_packages / "nvidia_pytriton.libs")
        changed = {
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
            "PATH": f"{self.directory / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONHOME", "PYTHONPATH"}}
        return inherited | changed

    @property
    def _triton(self) -> Path:
        return self.site_packages / "pytriton" / "tritonserver"


def default_environment() -> Path:
    """Return ``$GRADEWIRE_TRITON_ENVIRONMENT``, or a cache directory whose name depends on `fingerprint`."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Path(named).expanduser()
    return platformdirs.user_cache_path("gradewire") / f"triton-{fingerprint()[:16]}"


def ensure_environment(directory: Path | None = None, *, report: Report) -> TritonEnvironment:
    """Return the environment; if necessary, install it (about 320 MB in half a minute, all pinned by SHA-256).

    Concurrent installations wait for each other.

    Raises:
        EnvironmentBrokenError: The installation failed.
    """
    libpython = libpython_directory()
    target = (directory or default_environment()).absolute()
    try:
        with exclusive(target.with_name(f".{target.name}.lock"), lambda step: report(f"Triton: {step}")):
            if not _is_ready(target):
                check_machine()
                _replace(target, report)
    except OSError as error:
        raise EnvironmentBrokenError(f"cannot install Triton's environment in {target}: {error}") from error
    (site_packages,) = target.glob("lib/python3.*/site-packages")
    return TritonEnvironment(target, site_packages, libpython)


def _replace(target: Path, report: Report) -> None:
    if target.exists() and not (target / MARKER_FILE).is_file() and any(target.iterdir()):
        raise EnvironmentBrokenError(f"{target} contains files, but not Triton's environment. Use an empty directory")
    prefix = f".{target.name}.building-"
    for leftover in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover)
    workspace = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        _install(workspace / "new", report)
        if target.exists():
            target.rename(workspace / "old")
        (workspace / "new").rename(target)
    finally:
        shutil.rmtree(workspace)


def _install(target: Path, report: Report) -> None:
    report("Triton: creating a virtual environment")
    _make_venv(target)
    report("Triton: installing tritonserver 2.51 and ONNX Runtime (about 100 MB to download)")
    lock = target / "environment.lock"
    lock.write_text(lock_text(), encoding="utf-8")
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    _run([str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", *options, "--requirement", str(lock)])
    (target / MARKER_FILE).write_text(fingerprint(), encoding="utf-8")


def _make_venv(target: Path) -> None:
    _run([sys.executable, "-m", "venv", str(target)])


def _run(command: list[str]) -> None:
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-_SHOWN_LINES:]
        raise EnvironmentBrokenError(
            f"cannot install Triton's environment: {' '.join(command[:4])} … failed:\n" + "\n".join(said)
        )


def _is_ready(target: Path) -> bool:
    try:
        return (target / MARKER_FILE).read_text(encoding="utf-8") == fingerprint()
    except FileNotFoundError:
        return False


def fingerprint() -> str:
    """Return a SHA-256 of the packages and the interpreter."""
    return hashlib.sha256(f"{lock_text()} {sys.base_prefix} {sys.version_info[:3]}".encode()).hexdigest()


def lock_text() -> str:
    """Return the packages, with their versions and hashes, in pip's format."""
    return files("gradewire_triton").joinpath("environment.lock").read_text(encoding="utf-8")
