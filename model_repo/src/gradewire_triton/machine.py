"""Whether tritonserver's wheel and its Python backend run on this machine, with this interpreter."""

import platform
import sys
import sysconfig
from pathlib import Path

from gradewire_triton.errors import EnvironmentBrokenError

# Where NumPy 1, ONNX Runtime and a stub of Triton's Python backend are all to be had.
_PYTHONS = ((3, 11), (3, 12))
_MINIMUM_GLIBC = (2, 35)


def check_machine() -> None:
    """Raises EnvironmentBrokenError where there is no wheel for this machine; the message says what it would need."""
    system, machine = platform.system(), platform.machine()
    libc, version = platform.libc_ver()
    glibc = tuple(int(part) for part in version.split(".")[:2]) if libc == "glibc" else (0, 0)
    if (system, machine) != ("Linux", "x86_64") or glibc < _MINIMUM_GLIBC:
        raise EnvironmentBrokenError(
            f"the wheel that carries tritonserver is for Linux on x86-64 with glibc 2.35 or newer, this is {system} on "
            f"{machine} with {libc or 'another C library'} {version}; use NVIDIA's container, see "
            "docs/operate/triton.md"
        )


def libpython_directory() -> Path:
    """Where this interpreter's shared library lies, which Triton's Python backend loads.

    Raises:
        EnvironmentBrokenError: There is none, or this is a Python that the backend does not know.
    """
    if sys.version_info[:2] not in _PYTHONS:
        raise EnvironmentBrokenError(
            f"Triton's environment needs CPython 3.11 or 3.12, this is {platform.python_version()}"
        )
    names = [sysconfig.get_config_var(name) for name in ("INSTSONAME", "LIBDIR", "MULTIARCH")]
    library, directory, multiarch = (str(name or "") for name in names)
    candidates = [Path(directory), Path(directory) / multiarch]
    for candidate in candidates:
        if library.startswith("libpython") and ".so" in library and (candidate / library).is_file():
            return candidate
    raise EnvironmentBrokenError(
        f"this Python has no shared library ({library or 'libpython'} is not in {candidates[0]}), which Triton's "
        "Python backend loads: install it (Debian: libpython3.11), or use a Python that was built with --enable-shared"
    )
