"""gradewire as a user gets it: its wheel in a new environment, beside what the wheel asks for and nothing else."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def build_wheel(directory: Path) -> Path:
    """The wheel of this checkout, built as pip builds it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = directory.glob("gradewire-*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """A plain install, and packages of extras that a single run may see beside it.

    Attributes:
        folder: The environment.
        scratch: Where extras are put together.
    """

    folder: Path
    scratch: Path

    @classmethod
    def plain(cls, folder: Path, wheel: Path) -> "Installed":
        """A new environment with the wheel and the packages that it needs without any extra."""
        venv.create(folder / "venv", symlinks=True)
        installed = cls(folder / "venv", folder)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(installed.python)]
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
        subprocess.run(install, check=True, capture_output=True, timeout=100)
        link(installed.needed(), installed.site_packages)
        return installed

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    @property
    def metadata(self) -> Distribution:
        """What the wheel says of itself."""
        (found,) = self.site_packages.glob("gradewire-*.dist-info")
        return Distribution.at(found)

    def needed(self, *extras: str) -> set[str]:
        """Names of all packages that gradewire needs with some extras, as this test's own environment has them."""
        return closure(self.metadata, frozenset(extras), {})

    def run(self, *command: str, extras: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, with the packages of some extras in reach."""
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRADEWIRE"))}
        if extras:
            settings["PYTHONPATH"] = os.pathsep.join(map(str, self._folders(self.needed(*extras) - self.needed())))
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=self.scratch,
            env=settings,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def _folders(self, names: Iterable[str]) -> list[Path]:
        """A folder for each package, so that extras share them."""
        folders = {name: self.scratch / "packages" / name for name in sorted(names)}
        for name, folder in folders.items():
            if not folder.exists():
                link([name], folder)
        return list(folders.values())


def closure(of: Distribution, extras: frozenset[str], found: dict[str, frozenset[str]]) -> set[str]:
    """Names of the packages that a distribution asks for, and of those that these ask for."""
    for line in of.requires or ():
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if not _applies(requirement, extras):
            continue
        if name == canonicalize_name(of.metadata["Name"]):
            closure(of, frozenset(requirement.extras), found)
        elif name not in found or not requirement.extras <= found[name]:
            found[name] = found.get(name, frozenset()) | requirement.extras
            closure(distribution(name), found[name], found)
    return set(found)


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate(environment) for environment in _environments(extras))


def _environments(extras: Iterable[str]) -> list[Mapping[str, str]]:
    return [{"extra": extra} for extra in ("", *extras)]


def link(names: Iterable[str], folder: Path) -> None:
    """Shows packages of this test's own environment in another one, file by file: folders may be shared."""
    for name in names:
        there = distribution(name)
        for path in there.files or ():
            place = folder / path
            if ".." in path.parts or path.suffix == ".pth":
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(there.locate_file(path))
