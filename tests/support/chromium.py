"""A headless Chromium for tests: the one on PATH, or Debian's, unpacked with the libraries that are missing."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.apt import PackageMissingError, unpacked

_PACKAGE = "chromium-headless-shell"
# A dependency that brings shell scripts for desktops only.
_NOT_NEEDED = {"xdg-utils"}
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Chromium:
    """A program and the environment that it finds its libraries in."""

    program: Path
    environment: Mapping[str, str]


def headless_chromium() -> Chromium:
    """Finds Chromium or takes it from Debian (96 MB with its libraries; 8 s, and 2 s when it is there already).

    Raises:
        PackageMissingError: There is none, and apt cannot get it.
    """
    if installed := shutil.which(_PACKAGE):
        return Chromium(Path(installed), dict(os.environ))
    tree = unpacked(_PACKAGE, *sorted(_missing_dependencies() - {_PACKAGE} - _NOT_NEEDED))
    libraries = [str(folder) for folder in sorted((tree / "usr/lib").glob("*-linux-gnu"))]
    libraries += [f"{folder}/pulseaudio" for folder in libraries]
    known = [path for path in [os.environ.get("LD_LIBRARY_PATH", "")] if path]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join([*libraries, *known])}
    return Chromium(tree / "usr/lib/chromium/chromium-headless-shell", environment)


def _missing_dependencies() -> set[str]:
    """What apt would install with Chromium here; by lists of our own where the machine has none."""
    with tempfile.TemporaryDirectory() as scratch:
        private = ["-o", f"Dir::State={scratch}/state", "-o", f"Dir::Cache={scratch}/cache"]
        private += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
        simulated = _apt("install", "--simulate", "--no-install-recommends", _PACKAGE)
        if simulated.returncode:
            for part in ("state/lists/partial", "cache/archives/partial"):
                (Path(scratch) / part).mkdir(parents=True)
            _apt(*private, "update")
            simulated = _apt(*private, "install", "--simulate", "--no-install-recommends", _PACKAGE)
    if simulated.returncode:
        raise PackageMissingError(f"apt does not know how to install {_PACKAGE}: {simulated.stderr[-500:]}")
    return {line.split()[1] for line in simulated.stdout.splitlines() if line.startswith("Inst ")}


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    if (program := shutil.which("apt-get")) is None:
        raise PackageMissingError(f"there is no {_PACKAGE} on PATH, and no apt to get it with")
    return subprocess.run(
        [program, "--quiet", *arguments], check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
    )
