"""gradewire as a user gets it: its wheel in a new environment, beside what the wheel asks for and nothing else."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TRAIN = ROOT / "model_repo/train"
_WAIT_S: Final = 500.0
"""Seconds for a program, on a machine that does much else."""
# Each program runs in a fork of a process that has imported what all import, which takes most of their time.
_EACH = """
import json, os, sys, tempfile

import gradewire.testing
import gradewire_cli.group
from gradewire_cli import main

done = []
for reach, program, words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["gradewire", *words]
            sys.path[1:1] = reach
            exec(program or "main()", {"__name__": "__main__", "main": main})
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        done.append([code, out.read().decode(), err.read().decode()])
json.dump(done, sys.stdout)
"""


def build_wheel(project: Path, directory: Path) -> Path:
    """The wheel of a distribution of this checkout, made of its source archive, as the tools that publish make it."""
    _build(project, "sdist", directory)
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(directory, filter="data")
    _build(directory / archive.name.removesuffix(".tar.gz"), "wheel", directory)
    (wheel,) = directory.glob("*.whl")
    return wheel


def _build(project: Path, target: str, directory: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    subprocess.run(build, cwd=project, check=True, capture_output=True, timeout=_WAIT_S)


def packages_of(project: Path) -> dict[str, Path]:
    """The import packages that a distribution of this checkout ships: name and folder."""
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    folders = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return {Path(each).name: project / each for each in folders}


def files_of(project: Path) -> dict[str, Path]:
    """The files of those packages: name in a wheel and place in the tree."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for name, folder in packages_of(project).items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def unlike(wheel: Path, project: Path) -> list[str]:
    """Names of files that a wheel lacks, has beside those of the tree, or has with other content."""
    here = files_of(project)
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        other = {name for name in names & here.keys() if archive.read(name) != here[name].read_bytes()}
        return sorted((names ^ here.keys()) | other)


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
        installed.add(wheel)
        installed._share_byte_code()
        link(installed.needed(), installed.site_packages)
        return installed

    def add(self, wheel: Path, *options: str) -> None:
        """Installs a wheel, and nothing of what it needs."""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", *options, str(wheel)]
        subprocess.run(install, check=True, capture_output=True, timeout=_WAIT_S)

    def _share_byte_code(self) -> None:
        """Take the byte code of the modules from the tree, as `link` does for other packages."""
        for name, original in files_of(ROOT).items():
            place = self.site_packages / name
            if original.suffix != ".py" or place.read_bytes() != original.read_bytes():
                continue
            status = original.stat()
            os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
            compiled = place.with_name("__pycache__")
            if not compiled.is_symlink():
                original.with_name("__pycache__").mkdir(exist_ok=True)
                compiled.symlink_to(original.with_name("__pycache__"), target_is_directory=True)

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

    def run(
        self, *command: str, extras: Iterable[str] = (), beside: Iterable[Path] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, with the packages of some extras and of some folders in reach."""
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRADEWIRE"))}
        if reach := [*self._reach(extras), *beside]:
            settings["PYTHONPATH"] = os.pathsep.join(map(str, reach))
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=self.scratch,
            env=settings,
            capture_output=True,
            text=True,
            timeout=_WAIT_S,
            check=False,
        )

    def run_commands(
        self, commands: Sequence[tuple[str, ...]]
    ) -> dict[tuple[str, ...], subprocess.CompletedProcess[str]]:
        """Run the command with each of these arguments, in an interpreter for all: what each prints, by arguments."""
        return dict(zip(commands, self._run_each([([], "", words) for words in commands]), strict=True))

    def run_programs(
        self, programs: Sequence[tuple[str, tuple[str, ...]]]
    ) -> dict[tuple[str, tuple[str, ...]], subprocess.CompletedProcess[str]]:
        """Run each of these programs beside extras, in an interpreter for all: what each prints, by program and extras.

        That interpreter has imported gradewire before an extra is in reach.
        """
        given = [(list(map(str, self._reach(extras))), program, ()) for program, extras in programs]
        return dict(zip(programs, self._run_each(given), strict=True))

    def _run_each(
        self, given: Sequence[tuple[list[str], str, tuple[str, ...]]]
    ) -> Iterator[subprocess.CompletedProcess[str]]:
        done = self.run("python", "-c", _EACH, json.dumps(given))
        assert done.returncode == 0, done.stderr
        found: list[tuple[int, str, str]] = json.loads(done.stdout)
        return (subprocess.CompletedProcess(["gradewire"], *each) for each in found)

    def _reach(self, extras: Iterable[str]) -> list[Path]:
        """Folders with the packages of extras, one for each package, so that extras share them."""
        names = self.needed(*extras) - self.needed()
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
    """Shows packages of this test's own environment in another one, file by file: folders may be shared.

    Byte code is shared with this environment: else every new one would compile all that its programs import.
    """
    for name in names:
        there = distribution(name)
        for path in there.files or ():
            place = folder / path
            if ".." in path.parts or path.suffix == ".pth" or "__pycache__" in path.parts:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            original = Path(str(there.locate_file(path)))
            place.symlink_to(original)
            compiled = place.with_name("__pycache__")
            if path.suffix == ".py" and path.parent.parts and not compiled.is_symlink():
                original.with_name("__pycache__").mkdir(exist_ok=True)
                compiled.symlink_to(original.with_name("__pycache__"), target_is_directory=True)
