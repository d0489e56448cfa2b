"""A headless Chromium for tests: the one on PATH, or Debian's, unpacked with the libraries that are missing."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.debian.apt import PackageMissingError, unpacked, unpacked_before

_PACKAGE = "chromium-headless-shell"
# A dependency that brings shell scripts for desktops only.
_NOT_NEEDED = {"xdg-utils"}
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Chromium:
    """A program and the environment that it finds its libraries in."""

    program: Path
    environment: Mapping[str, str]


def headless_chromium(*, cache: Path | None = None) -> Chromium:
    """Finds Chromium or takes it from Debian (96 MB with its libraries, 8 s; from then on without apt or a network).

    Args:
        cache: Directory for what is taken; the user's cache directory unless given.

    Raises:
        PackageMissingError: There is none, and apt cannot get it.
    """
    if installed := shutil.which(_PACKAGE):
        return Chromium(Path(installed), dict(os.environ))
    # What apt would install changes with the machine; a tree that starts is as good as the one it would name today.
    for tree in unpacked_before(_PACKAGE, cache=cache):
        found = _inside(tree)
        if _starts(found):
            return found
    return _inside(unpacked(_PACKAGE, *sorted(_missing_dependencies() - {_PACKAGE} - _NOT_NEEDED), cache=cache))


def _inside(tree: Path) -> Chromium:
    libraries = [str(folder) for folder in sorted((tree / "usr/lib").glob("*-linux-gnu"))]
    libraries += [f"{folder}/pulseaudio" for folder in libraries]
    known = [path for path in [os.environ.get("LD_LIBRARY_PATH", "")] if path]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join([*libraries, *known])}
    return Chromium(tree / "usr/lib/chromium/chromium-headless-shell", environment)


def _starts(chromium: Chromium) -> bool:
    """Whether the program and all its libraries are there."""
    try:
        done = subprocess.run(
            [chromium.program, "--version"],
            check=False,
            capture_output=True,
            env=chromium.environment,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except OSError:
        return False
    return done.returncode == 0


def _missing_dependencies() -> set[str]:
    """What apt would install with Chromium here; by lists of our own where the machine has none."""
    with tempfile.TemporaryDirectory() as scratch:
        private = ["-o", f"Dir::State={scratch}/state", "-o", f"Dir::Cache={scratch}/cache"]
        private += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
        unreachable = ""
        simulated = _apt("install", "--simulate", "--no-install-recommends", _PACKAGE)
        if simulated.returncode:
            for part in ("state/lists/partial", "cache/archives/partial"):
                (Path(scratch) / part).mkdir(parents=True)
            updated = _apt(*private, "-o", "APT::Update::Error-Mode=any", "update")
            unreachable = updated.stderr[:500] if updated.returncode else ""
            simulated = _apt(*private, "install", "--simulate", "--no-install-recommends", _PACKAGE)
    if simulated.returncode:
        raise PackageMissingError(f"apt does not know how to install {_PACKAGE}: {unreachable}{simulated.stderr[:500]}")
    return {line.split()[1] for line in simulated.stdout.splitlines() if line.startswith("Inst ")}


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    if (program := shutil.which("apt-get")) is None:
        raise PackageMissingError(f"there is no {_PACKAGE} on PATH, and no apt to get it with")
    return subprocess.run(
        [program, "--quiet", *arguments], check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
    )
