"""gradewire as a user gets it: its wheel in a new environment, beside what the wheel asks for and nothing else."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TRAIN = ROOT / "model_repo/train"
# Each command runs in a fork of a process that has imported what all commands import, which takes most of their time.
_EACH_COMMAND = """
import json, os, sys, tempfile

import gradewire_cli.group
from gradewire_cli import main

done = []
for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["gradewire", *words]
            main()
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
    subprocess.run(build, cwd=project, check=True, capture_output=True, timeout=100)


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
        link(installed.needed(), installed.site_packages)
        return installed

    def add(self, wheel: Path, *options: str) -> None:
        """Installs a wheel, and nothing of what it needs."""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", *options, str(wheel)]
        subprocess.run(install, check=True, capture_output=True, timeout=100)

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
        reach = [*(self._folders(self.needed(*extras) - self.needed()) if extras else ()), *beside]
        if reach:
            settings["PYTHONPATH"] = os.pathsep.join(map(str, reach))
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=self.scratch,
            env=settings,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def run_commands(
        self, commands: Sequence[tuple[str, ...]]
    ) -> dict[tuple[str, ...], subprocess.CompletedProcess[str]]:
        """Run the command with each of these arguments, in an interpreter for all: what each prints, by arguments."""
        done = self.run("python", "-c", _EACH_COMMAND, json.dumps(commands))
        assert done.returncode == 0, done.stderr
        found: list[tuple[int, str, str]] = json.loads(done.stdout)
        results = (subprocess.CompletedProcess(["gradewire"], *each) for each in found)
        return dict(zip(commands, results, strict=True))

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
