"""Measure how long pip takes to resolve and install gradewire with each extra, and what an environment then takes.

The program builds the wheels of this checkout, and installs them into a new environment for each extra and release of
pip. pip begins with an empty cache. `pip install --dry-run` resolves and downloads, and the installation afterwards
finds the downloads in the cache. --write writes the table into benchmarks/results/installation.md.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.common.measurements import machine, write_block

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "benchmarks/results/installation.md"
BLOCK: Final = "installation"
PROJECTS: Final = (ROOT, ROOT / "model_repo/train")
NO_EXTRA: Final = "none"
NEWEST: Final = "newest"
TOO_LARGE: Final = ("gpu",)
"""Extras that are only resolved, because they bring gigabytes of NVIDIA's libraries."""
_RELEASE: Final = re.compile(
    r"^ *(?:Downloading|Processing|Using cached) (?:\S*/)?(\S+\.(?:whl|tar\.gz))", re.MULTILINE
)
"""The file of a release that pip looked at."""
_TIMEOUT_S: Final = 1800.0
_BYTES_PER_MB: Final = 1e6


class InstallationError(Exception):
    """Raised when pip fails or takes too long."""


@dataclass(frozen=True)
class Installation:
    """The time and the space that one extra takes.

    Attributes:
        pip: pip's version.
        resolve_s: Seconds of `pip install --dry-run` with an empty cache, downloads included.
        resolve_cpu_s: Seconds of processor time in it.
        tried: Number of releases that pip looked at and did not choose.
        install_s: Seconds to install what is downloaded; None if the extra was only resolved.
        size_mb: Size of the environment without pip and byte code; None as before.
        packages: Number of packages.
        load: Load average of the machine after resolving.
    """

    extra: str
    pip: str
    resolve_s: float
    resolve_cpu_s: float
    tried: int
    install_s: float | None
    size_mb: float | None
    packages: int
    load: float


class Environment:
    """A new virtual environment in `folder`, with a cache of its own."""

    def __init__(self, folder: Path, constraints: Path) -> None:
        self._folder = folder
        self._cache = folder / "cache"
        self._constraints = constraints
        venv.create(folder / "venv", symlinks=True, with_pip=True)

    def change_pip(self, version: str) -> None:
        """Install this version of pip, or the newest, and empty the cache again."""
        self._run("install", "--upgrade", "pip" if version == NEWEST else f"pip=={version}")
        shutil.rmtree(self._cache, ignore_errors=True)

    def measure(self, requirement: str, wheels: Path, *, extra: str, install: bool) -> Installation:
        """Resolve a requirement, and install it if `install` is True."""
        report = self._folder / "report.json"
        given = ("install", "--find-links", str(wheels), "-c", str(self._constraints), requirement)
        cpu_s = _cpu_of_children_s()
        began_s = time.perf_counter()
        output = self._run(*given, "--dry-run", "--report", str(report))
        resolve_s = time.perf_counter() - began_s
        cpu_s = _cpu_of_children_s() - cpu_s
        load = os.getloadavg()[0]
        document = json.loads(report.read_text(encoding="utf-8"))
        packages = len(document["install"])
        install_s = size_mb = None
        if install:
            before = _size_bytes(self._folder / "venv")
            began_s = time.perf_counter()
            self._run(*given, "--no-compile")
            install_s = time.perf_counter() - began_s
            size_mb = (_size_bytes(self._folder / "venv") - before) / _BYTES_PER_MB
        tried = len(set(_RELEASE.findall(output))) - packages
        return Installation(extra, document["pip_version"], resolve_s, cpu_s, tried, install_s, size_mb, packages, load)

    def _run(self, *arguments: str) -> str:
        command = [str(self._folder / "venv/bin/python"), "-m", "pip", *arguments]
        command += ["--cache-dir", str(self._cache), "--disable-pip-version-check"]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise InstallationError(f"pip did not end within {_TIMEOUT_S:.0f} s: {' '.join(arguments)}") from None
        if done.returncode:
            raise InstallationError(f"pip failed: {' '.join(arguments)}\n{done.stderr}")
        return done.stdout


def _cpu_of_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _size_bytes(folder: Path) -> int:
    return sum(
        path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def extras() -> list[str]:
    """Return the names of gradewire's extras, after the plain install."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [NO_EXTRA, *settings["project"]["optional-dependencies"]]


def build_wheels(folder: Path) -> Path:
    """Build the wheels of this checkout into `folder`. Return gradewire's own wheel."""
    for project in PROJECTS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("gradewire-*.whl")
    return wheel


def table(measured: Iterable[Installation]) -> str:
    """Return the measurements as a Markdown table, with one line for each extra and release of pip."""
    heads = (
        "extra",
        "pip",
        "resolve, s",
        "of it CPU, s",
        "others tried",
        "install, s",
        "MB",
        "packages",
        "load",
    )
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for each in measured:
        cells = (
            f"`{each.extra}`" if each.extra != NO_EXTRA else each.extra,
            each.pip,
            f"{each.resolve_s:.0f}",
            f"{each.resolve_cpu_s:.0f}",
            str(each.tried),
            "-" if each.install_s is None else f"{each.install_s:.0f}",
            "-" if each.size_mb is None else f"{each.size_mb:.0f}",
            str(each.packages),
            f"{each.load:.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--extras", nargs="+", metavar="EXTRA", default=extras(), help="measure these; none: the client"
    )
    parser.add_argument("--pip", nargs="+", metavar="VERSION", default=["23.0.1", NEWEST], help="use these pips")
    parser.add_argument("--resolve-only", nargs="*", metavar="EXTRA", default=TOO_LARGE, help="do not install these")
    parser.add_argument("--constraint", action="append", default=[], help="hold a package, such as torch==2.13.0")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def main() -> None:
    """Measure every extra, and print a line for each and then the table."""
    options = _arguments()
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build_wheels(folder)
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(options.constraint), encoding="utf-8")
        for extra in options.extras:
            suffix = "" if extra == NO_EXTRA else f"[{extra}]"
            for pip in options.pip:
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    place = Environment(Path(scratch), constraints)
                    place.change_pip(pip)
                    measured.append(
                        place.measure(
                            f"gradewire{suffix} @ {wheel.as_uri()}",
                            folder,
                            extra=extra,
                            install=extra not in options.resolve_only,
                        )
                    )
                print(table(measured[-1:]).splitlines()[-1], flush=True)
    print(table(measured))
    if options.write:
        held = f"Constraints: {', '.join(options.constraint)}. " if options.constraint else ""
        write_block(PAGE, BLOCK, f"{held}Machine: {machine()}.\n\n{table(measured)}")


if __name__ == "__main__":
    main()
